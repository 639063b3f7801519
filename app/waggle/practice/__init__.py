"""The race of two small swarms that ships with Waggle: simulated nodes of one process that play the engine's own round."""
