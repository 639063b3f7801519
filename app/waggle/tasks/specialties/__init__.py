"""Waggle's own datasets, one a file: specialties that reasoning-gym does not have."""
