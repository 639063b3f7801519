"""Figures from the State and the history, for every surface: each is decided here, once."""
