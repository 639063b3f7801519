"""The page Progress: held-out scores and reward over rounds, and models compared."""
