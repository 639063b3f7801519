"""The comparison of a swarm's models: answer sheets are exchanged, and scored on this computer."""
