"""Studies of security: attacks on a live swarm, fuzzing of decoders, and the audit of scorers."""
