"""What a tool of research takes."""

from collections.abc import Mapping
from typing import Protocol


class TrackingTool(Protocol):
    """Takes the figures of one run at a time. All methods are called in one thread, and raise OSError where the disk refuses."""

    def begin(self, run: str, facts: Mapping[str, str]) -> None:
        """A run begins, or goes on: its name, and what is known of it."""

    def log(self, step: int, at: float, figures: Mapping[str, float]) -> None:
        """Figures of the round `step`, of the time `at` (unix seconds)."""

    def close(self) -> None:
        """Write what has not been written yet."""
