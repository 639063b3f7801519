"""Waggle: ordinary computers train small language models together."""

__version__ = "0.1.0"
