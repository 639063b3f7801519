"""How models of a swarm compare: answer sheets exchanged, and scored on this computer."""
