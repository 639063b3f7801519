"""What the window tells: of a round, of what was learned, of a start, and what to do next."""
