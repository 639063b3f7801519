"""The page Home: what this computer does now, and why."""
