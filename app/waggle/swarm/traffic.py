"""Counts payload bytes in both directions over the last few seconds."""

import time
from collections import deque
from collections.abc import Callable

WINDOW_S = 5.0


class Traffic:
    """Sums of the last five seconds. Belongs to one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moved: deque[tuple[float, int, int]] = deque()

    def sent(self, size: int) -> None:
        """Count bytes that went out."""
        self._moved.append((self._clock(), size, 0))

    def received(self, size: int) -> None:
        """Count bytes that came in."""
        self._moved.append((self._clock(), 0, size))

    def rates(self) -> tuple[float, float]:
        """(up, down) in bytes per second."""
        start = self._clock() - WINDOW_S
        while self._moved and self._moved[0][0] < start:
            self._moved.popleft()
        up = sum(sent for _, sent, _ in self._moved)
        return up / WINDOW_S, sum(received for _, _, received in self._moved) / WINDOW_S
