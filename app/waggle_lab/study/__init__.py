"""Controlled studies: swarms simulated in one process, and compared over seeds."""
