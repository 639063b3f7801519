"""Counts payload bytes in both directions over the last few seconds, and holds each direction, the directory too, to a limit."""

import time
from collections import deque
from collections.abc import Callable

WINDOW_S = 5.0
PAY_S = 0.25  # between two looks whether a limit lets more through
DIRECTORY = 0.25  # of a limit: so much of it the directory may take, as much light clients, and the rest is for groups
SOURCE = 0.25  # of what goes out, and of what the directory sends: so much one peer or address range has, where others ask
WAITS_S = 300.0  # for which somebody who was given nothing holds the others to that: most come again sooner
OUT, IN, TOLD, READ, LODGED = range(5)


class Traffic:
    """Sums of the last five seconds. Belongs to one thread.

    `limit` is in bytes a second, each way; None: none. What is larger than a second's worth is paid for afterwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moved: deque[tuple[float, int, int]] = deque()
        self._limit: float | None = None
        self._waiting: dict[bytes, float] = {}  # who was given no payload, until when others give way for it
        self._queued: dict[bytes, float] = {}  # who could leave nothing here, likewise
        self._forgive()

    def _forgive(self) -> None:
        self._free_at = [0.0] * 5  # when what went out, what came in, and what of each had only a part of it is paid for
        self._told: dict[bytes, float] = {}  # who was told of the directory, until that is paid for
        self._given: dict[bytes, float] = {}  # who was given a payload, likewise
        self._left: dict[bytes, float] = {}  # who left one here, likewise

    @property
    def limit(self) -> float | None:
        return self._limit

    @limit.setter
    def limit(self, limit: float | None) -> None:
        """What went over another limit is forgotten: at a low one it would hold everything up for minutes more."""
        if limit != self._limit:
            self._limit = limit
            self._forgive()

    def sent(self, to: bytes, size: int) -> None:
        """Count bytes that went out to this source, and take them from what may go out next."""
        self._moved.append((self._clock(), size, 0))
        self._pay(OUT, size)
        self._waiting.pop(to, None)
        if self.limit is not None:
            self._given[to] = self._clock() + size / (SOURCE * self.limit)

    def received(self, size: int) -> None:
        """Count bytes that came in."""
        self._moved.append((self._clock(), 0, size))

    def may_send(self, to: bytes) -> bool:
        """Whether anything may go out to this source now: whoever asks most often must not have it all while others wait."""
        self._given, self._waiting = self._lasting(self._given), self._lasting(self._waiting)
        others = self._waiting.keys() - self._given.keys()  # who had its part gives way to those who had none, not to its like
        if self.limit is None or (self._may(OUT, 0) and not (to in self._given and others)):
            return True
        self._waiting[to] = self._clock() + WAITS_S
        return False

    def may_receive(self) -> bool:
        """Whether anything may be asked for now."""
        return self._may(IN, 0)

    def pay(self, size: int) -> None:
        """Take what came in, whatever it was said to be, from what may be asked for next."""
        self._pay(IN, size)

    def may_tell(self, source: bytes, size: int) -> bool:
        """Whether so much of the directory may go out to whoever this is now; it is then taken from what may go out next."""
        self._told = self._lasting(self._told)
        if source in self._told or not self._may_in_part(TOLD, OUT, size):
            return False
        if self.limit is not None:
            self._told[source] = self._clock() + size / (SOURCE * DIRECTORY * self.limit)
        return True

    def may_lodge(self, source: bytes, size: int) -> bool:
        """Whether so much may come from light clients here now; it is then taken from what may come next.

        Who left something gives way to those who could leave nothing, until that is paid for.
        """
        self._left, self._queued = self._lasting(self._left), self._lasting(self._queued)
        others = self._queued.keys() - self._left.keys()
        if (source in self._left and others) or not self._may_in_part(LODGED, IN, size):
            self._queued[source] = self._clock() + WAITS_S
            return False
        self._queued.pop(source, None)
        if self.limit is not None:
            self._left[source] = self._clock() + size / (SOURCE * DIRECTORY * self.limit)
        return True

    def may_read(self) -> bool:
        """Whether the directory may be looked into now."""
        return self._may(READ, 0)

    def read(self, size: int) -> None:
        """Take what came of the directory from what may come next."""
        self._pay(READ, size / DIRECTORY)
        self._pay(IN, size)

    def _lasting(self, until: dict[bytes, float]) -> dict[bytes, float]:
        return {each: end for each, end in until.items() if end > self._clock()}

    def _may_in_part(self, part: int, way: int, size: int) -> bool:
        if not self._may(part, size / DIRECTORY):
            return False
        self._pay(way, size)
        return True

    def _pay(self, way: int, size: float) -> None:
        if self.limit is not None:
            self._free_at[way] = max(self._free_at[way], self._clock()) + size / self.limit

    def _may(self, way: int, size: float) -> bool:
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
