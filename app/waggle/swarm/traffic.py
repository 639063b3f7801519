"""Counts payload bytes in both directions over the last few seconds, and holds each direction to a limit."""

import time
from collections import deque
from collections.abc import Callable

WINDOW_S = 5.0


class Traffic:
    """Sums of the last five seconds. Belongs to one thread.

    `limit` is in bytes a second, each way; None: none. What is larger than a second's worth is paid for afterwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moved: deque[tuple[float, int, int]] = deque()
        self.limit: float | None = None
        self._free_at = [0.0, 0.0]  # when what went out, and what came in, is paid for

    def sent(self, size: int) -> None:
        """Count bytes that went out."""
        self._moved.append((self._clock(), size, 0))

    def received(self, size: int) -> None:
        """Count bytes that came in."""
        self._moved.append((self._clock(), 0, size))

    def may_send(self, size: int) -> bool:
        """Whether so much may go out now; it is then taken from what may go out next."""
        return self._may(0, size)

    def may_receive(self) -> bool:
        """Whether anything may be asked for now."""
        return self._may(1, 0)

    def pay(self, size: int) -> None:
        """Take what came in, whatever it was said to be, from what may be asked for next."""
        if self.limit is not None:
            self._free_at[1] = max(self._free_at[1], self._clock()) + size / self.limit

    def _may(self, way: int, size: int) -> bool:
        now = self._clock()
        if self.limit is None:
            return True
        if self._free_at[way] > now:
            return False
        self._free_at[way] = now + size / self.limit
        return True

    def rates(self) -> tuple[float, float]:
        """(up, down) in bytes per second."""
        start = self._clock() - WINDOW_S
        while self._moved and self._moved[0][0] < start:
            self._moved.popleft()
        up = sum(sent for _, sent, _ in self._moved)
        return up / WINDOW_S, sum(received for _, _, received in self._moved) / WINDOW_S
