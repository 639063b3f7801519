"""Progress: held-out scores and reward over rounds."""
