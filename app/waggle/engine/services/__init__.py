"""What a person can ask a running engine for, one service a file."""
