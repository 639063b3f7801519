"""What the config.json of a model says, and how the fast path reads it."""
