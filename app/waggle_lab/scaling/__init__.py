"""How traffic and directory grow with the swarm."""
