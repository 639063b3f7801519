"""Kills, churn and long soaks."""
