"""Studies of scaling: how traffic and the directory grow with the swarm."""
