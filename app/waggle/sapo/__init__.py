"""The round of Swarm sAmpling Policy Optimisation (SAPO, arXiv 2509.08721), over protocols only. Read round.py first."""
