"""The page Welcome, shown at the first start."""
