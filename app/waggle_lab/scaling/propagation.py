"""How far the lesson of a group travels: which nodes it reaches, and in how many rounds.

About ten nodes pull the group itself from its origin, however large the swarm is. Its lesson travels further: a node that learned
it shows it in its own completions, so the groups that this node shares from then on carry the lesson to others.
"""

import random
from collections.abc import Collection, Hashable, Sequence

MAX_ROUNDS = 30  # stop following a group that has not reached half of the nodes by then


class Propagation:
    """Follow the lessons of some groups through a swarm; bit i of every mask is lesson i.

    A node that pulls a lesson learns it with probability `learning_chance`.
    """

    def __init__(self, learning_chance: float, random_stream: random.Random) -> None:
        self._learning_chance, self._random_stream = learning_chance, random_stream
        self._origins = 0
        self._reached: dict[bytes, int] = {}
        self._learned: dict[bytes, int] = {}
        self._lessons_in_payload: dict[Hashable, int] = {}
        self._rounds_to_half: dict[int, int] = {}  # lesson -> rounds until it had reached half of the nodes

    def follow(self, origins: Sequence[bytes]) -> None:
        """Start to follow the group that each of these origins shares next."""
        self._origins = len(origins)
        self._reached = {origin: 1 << index for index, origin in enumerate(origins)}
        self._learned = dict(self._reached)

    def record_share(self, peer_id: bytes, payload: Hashable) -> None:
        """Record that a node shares a payload; it carries every lesson that the node has learned."""
        if lessons := self._learned.get(peer_id, 0):
            self._lessons_in_payload[payload] = lessons

    def record_pull(self, peer_id: bytes, payload: Hashable) -> None:
        """Record that a node pulled a payload."""
        lessons = self._lessons_in_payload.get(payload, 0)
        self._reached[peer_id] = self._reached.get(peer_id, 0) | lessons
        new_lessons = lessons & ~self._learned.get(peer_id, 0)
        for index in range(self._origins if new_lessons else 0):
            if new_lessons >> index & 1 and self._random_stream.random() < self._learning_chance:
                self._learned[peer_id] = self._learned.get(peer_id, 0) | 1 << index

    def count(self, rounds: int, alive: Collection[bytes]) -> bool:
        """Count whom the lessons have reached after `rounds`; True once each has reached half of the nodes alive."""
        masks = [self._reached.get(peer_id, 0) for peer_id in alive]
        for index in range(self._origins):
            if index not in self._rounds_to_half and 2 * sum(mask >> index & 1 for mask in masks) >= len(masks):
                self._rounds_to_half[index] = rounds
        return len(self._rounds_to_half) == self._origins

    def rounds(self) -> int:
        """The rounds until every lesson had reached half of the nodes; -1 if one has not."""
        return max(self._rounds_to_half.values()) if len(self._rounds_to_half) == self._origins else -1
