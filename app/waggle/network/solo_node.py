"""A node without a network: for training alone by choice, and as a stand-in in tests. It shares and receives nothing."""

from collections.abc import Sequence

from waggle.tasks.rollout_group import Group, JudgedGroup


class SoloNode:
    """The methods of SwarmNode that a round and the engine call, without effect; there is no outbox and no leaderboard."""

    async def start(self) -> None:
        """Do nothing."""

    async def run(self) -> None:
        """Return at once."""

    async def close(self) -> None:
        """Do nothing."""

    async def addresses(self) -> list[str]:
        """No address: nobody can call this node."""
        return []

    def limit(self, rate: float | None) -> None:
        """Do nothing: there is no traffic."""

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
