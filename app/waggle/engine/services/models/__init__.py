"""The models that a person can train: their list, the choice of one, its download, and its snapshots."""
