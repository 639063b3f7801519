"""How commands reach the engine: through its standard input and the control socket of its home."""
