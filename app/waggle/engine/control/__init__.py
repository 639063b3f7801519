"""How commands reach the engine: its standard input, and the control socket of its home."""
