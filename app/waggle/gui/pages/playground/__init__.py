"""The page Try it."""
