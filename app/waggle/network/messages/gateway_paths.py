"""The paths of a node's web port that light clients use, and how many of a client's messages are read ahead."""

GATEWAY, CHARTER = "/gateway", "/charter"
# Messages that are read before the current one is answered. With more, a client whose rate limit is used up could fill our
# memory.
WAITING = 0
