"""What the state of an engine is called in words, for the window and for terminals."""
