"""A swarm of one: being alone by choice, and a stand-in for tests. Shares nothing, receives nothing."""

from collections.abc import Sequence

from waggle.tasks.rollout_group import Group, JudgedGroup


class SoloSwarm:
    """The same doors as SwarmNode, with nobody behind them."""

    async def start(self) -> None:
        """Nothing to start."""

    async def run(self) -> None:
        """Nothing runs."""

    async def close(self) -> None:
        """Nothing to close."""

    async def addresses(self) -> list[str]:
        """Nobody can reach it."""
        return []

    def limit(self, rate: float | None) -> None:
        """There is no traffic."""

    def share(self, number: int, epoch: int, groups: Sequence[Group], model: str) -> tuple[int, int]:
        """Nobody is told."""
        return 0, 0

    def waiting(self) -> tuple[JudgedGroup, ...]:
        """Nobody gives."""
        return ()

    def take(self, groups: Sequence[JudgedGroup]) -> None:
        """Nothing can have been taken."""

    def discard(self, groups: Sequence[JudgedGroup]) -> None:
        """Nothing can have come."""
