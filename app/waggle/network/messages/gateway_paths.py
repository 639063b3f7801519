"""The paths of a node's web port that light clients ask for."""

GATEWAY, CHARTER = "/gateway", "/charter"


WAITING = 0  # messages read before the one in hand is dealt with: with more, whoever has used up its quota would fill our memory
