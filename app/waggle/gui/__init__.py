"""The window: the only room that knows Qt. It sees an engine's events, and nothing else of it."""
