"""Processes beside the window: the engine, a replay, a race."""
