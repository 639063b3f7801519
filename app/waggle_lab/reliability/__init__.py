"""Studies of reliability: kills, churn, pauses and long soaks."""
