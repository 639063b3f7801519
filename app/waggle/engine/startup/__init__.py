"""Prepares the node of an engine."""
