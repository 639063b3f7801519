"""Checks of a model's folder by a process of its own, before the program that trains opens it."""
