"""Controlled studies: whole swarms simulated in one process, compared over seeds."""
