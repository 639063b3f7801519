"""Sieges: swarms of honest and hostile nodes, live or simulated, and what an attack costs both sides."""
