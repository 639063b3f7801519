"""The page Live: the training loop as it happens."""
