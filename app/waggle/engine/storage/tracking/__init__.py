"""Writes the figures of rounds for tools of research, through their own libraries."""
