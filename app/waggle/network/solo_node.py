"""A node without a network: for training alone by choice, and as a stand-in in tests. It shares and receives nothing."""

import time
from collections.abc import Sequence

from waggle.core.errors import EngineError
from waggle.network.exchange.outbox_log import OutboxLog
from waggle.network.limits.reputation import Choice
from waggle.tasks.rollout_group import Group, JudgedGroup


class SoloNode:
    """What a round and the engine use of a node (see SwarmConnection), without effect."""

    leaderboard = None  # nobody to compare with

    @property
    def outbox(self) -> OutboxLog:
        """Empty: nothing leaves this computer."""
        return OutboxLog(time.time)

    async def run(self) -> None:
        """Return at once."""

    async def addresses(self) -> list[str]:
        """No address: nobody can call this node."""
        return []

    def limit(self, rate: float | None) -> None:
        """Do nothing: there is no traffic."""

    @property
    def is_limited(self) -> bool:
        """Never: there is no traffic."""
        return False

    @property
    def is_away(self) -> bool:
        """There is no network process that could be away."""
        return False

    def choose(self, peer_id: bytes, choice: Choice) -> None:
        """Raise EngineError: there is no peer to mute or block."""
        raise EngineError("There are no peers in a swarm of one computer.")

    def share(self, number: int, epoch: int, groups: Sequence[Group], model: str) -> tuple[int, int]:
        """No group is sent, in no bytes."""
        return 0, 0

    def waiting(self) -> tuple[JudgedGroup, ...]:
        """No external group waits."""
        return ()

    def take(self, groups: Sequence[JudgedGroup]) -> None:
        """Do nothing: there are no external groups."""

    def discard(self, groups: Sequence[JudgedGroup]) -> None:
        """Do nothing: there are no external groups."""
