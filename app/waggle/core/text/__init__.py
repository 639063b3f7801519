"""Text of strangers and of people: what may be shown of it, and how it is read."""
