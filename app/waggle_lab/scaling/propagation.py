"""How far a group travels: who was reached by it, and in how many rounds.

The group itself is pulled from its origin by about ten nodes, however large the swarm. What it teaches goes on: whoever learned
it answers so, and the groups that such a node shares from then on carry it to others.
"""

import random
from collections.abc import Collection, Hashable, Sequence

MOST_ROUNDS = 30  # after which a group that has not reached half of the nodes is given up


class Spread:
    """Follows some groups through a swarm, a bit of every mask for each. Whoever hears one learns it with this chance."""

    def __init__(self, chance: float, draw: random.Random) -> None:
        self._chance, self._draw = chance, draw
        self._origins = 0
        self._heard: dict[bytes, int] = {}
        self._learned: dict[bytes, int] = {}
        self._carried: dict[Hashable, int] = {}
        self._taken: dict[int, int] = {}  # which followed group -> rounds until it had reached half

    def follow(self, origins: Sequence[bytes]) -> None:
        """From now on, what each of these shares next."""
        self._origins = len(origins)
        self._heard = {origin: 1 << place for place, origin in enumerate(origins)}
        self._learned = dict(self._heard)

    def shared(self, peer_id: bytes, payload: Hashable) -> None:
        """A node shares what it has learned so far."""
        if learned := self._learned.get(peer_id, 0):
            self._carried[payload] = learned

    def pulled(self, peer_id: bytes, payload: Hashable) -> None:
        """A node pulled that."""
        carried = self._carried.get(payload, 0)
        self._heard[peer_id] = self._heard.get(peer_id, 0) | carried
        fresh = carried & ~self._learned.get(peer_id, 0)
        for place in range(self._origins if fresh else 0):
            if fresh >> place & 1 and self._draw.random() < self._chance:
                self._learned[peer_id] = self._learned.get(peer_id, 0) | 1 << place

    def count(self, rounds: int, alive: Collection[bytes]) -> bool:
        """So many rounds have been played since; True once each followed group has reached half of these nodes."""
        masks = [self._heard.get(peer_id, 0) for peer_id in alive]
        for place in range(self._origins):
            if place not in self._taken and 2 * sum(mask >> place & 1 for mask in masks) >= len(masks):
                self._taken[place] = rounds
        return len(self._taken) == self._origins

    def rounds(self) -> int:
        """Within how many rounds every followed group had reached half of the nodes; -1 where one did not."""
        return max(self._taken.values()) if len(self._taken) == self._origins else -1
