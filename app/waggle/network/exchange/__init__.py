"""Rollout groups on their way: offered to peers, fetched from them, checked, and pooled for training."""
