"""Settings: every choice, found by a word."""
