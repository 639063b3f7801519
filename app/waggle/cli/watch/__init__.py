"""What an engine does, live in a terminal."""
