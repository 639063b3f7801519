"""Attacks on a live swarm, fuzzing, and the audit of scorers."""
