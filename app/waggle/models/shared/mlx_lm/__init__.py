"""The model modules of mlx-lm: their settings, their weights, and what must be put right in them."""
