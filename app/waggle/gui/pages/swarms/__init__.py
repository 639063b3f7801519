"""Swarms: joining, creating, inviting, racing, and the models to train."""
