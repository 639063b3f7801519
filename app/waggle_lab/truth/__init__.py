"""The truth audit: whether the answers that datasets call true are true, whether a level can be taught, and what it pays for."""
