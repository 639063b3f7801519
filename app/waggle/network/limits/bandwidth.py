"""Counts payload bytes in both directions over the last few seconds, and holds each direction, the directory too, to a limit."""

import time
from collections import deque
from collections.abc import Callable

WINDOW_S = 5.0
PAY_S = 0.25  # between two looks whether a limit lets more through
DIRECTORY = 0.25  # of a limit: so much of it the directory may take, as much light clients, and the rest is for groups
SOURCE = 0.25  # of what goes out, and of what the directory sends: so much one peer or address range has, where others ask
WAITS_S = 300.0  # for which somebody who was given nothing holds the others to that: most come again sooner
OUT, IN, ANNOUNCED, READ, LODGED = range(5)


class _FairTurns:
    """Who had a part gives way to those who had none, until that is paid for; not to its like."""

    def __init__(self) -> None:
        self._had: dict[bytes, float] = {}  # until when that is paid for
        self._waiting: dict[bytes, float] = {}  # until when others give way for it

    def forgive(self) -> None:
        self._had.clear()

    def may(self, source: bytes, now: float) -> bool:
        self._had, self._waiting = _lasting(self._had, now), _lasting(self._waiting, now)
        return not (source in self._had and self._waiting.keys() - self._had.keys())

    def wait(self, source: bytes, now: float) -> None:
        self._waiting[source] = now + WAITS_S

    def take(self, source: bytes, until: float) -> None:
        self._waiting.pop(source, None)
        self._had[source] = until


class BandwidthLimiter:
    """Sums of the last five seconds. Belongs to one thread.

    `limit` is in bytes a second, each way; None: none. What is larger than a second's worth is paid for afterwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moved: deque[tuple[float, int, int]] = deque()
        self._limit: float | None = None
        self._sent_turns, self._lodged_turns = (
            _FairTurns(),
            _FairTurns(),
        )  # payloads that went to a source, and that one left here
        self._forgive()

    def _forgive(self) -> None:
        self._free_at = [0.0] * 5  # when what went out, what came in, and what of each had only a part of it is paid for
        self._directory_debts: dict[bytes, float] = {}  # who was told of the directory, until that is paid for
        self._sent_turns.forgive()
        self._lodged_turns.forgive()

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
        if self.limit is not None:
            self._sent_turns.take(to, self._clock() + size / (SOURCE * self.limit))

    def received(self, size: int) -> None:
        """Count bytes that came in."""
        self._moved.append((self._clock(), 0, size))

    def may_send(self, to: bytes) -> bool:
        """Whether anything may go out to this source now: whoever asks most often must not have it all while others wait."""
        if self.limit is None or (self._sent_turns.may(to, self._clock()) and self._may(OUT, 0)):
            return True
        self._sent_turns.wait(to, self._clock())
        return False

    def may_receive(self) -> bool:
        """Whether anything may be asked for now."""
        return self._may(IN, 0)

    def pay(self, size: int) -> None:
        """Take what came in, whatever it was said to be, from what may be asked for next."""
        self._pay(IN, size)

    def may_tell(self, source: bytes, size: int) -> bool:
        """Whether so much of the directory may go out to whoever this is now; it is then taken from what may go out next."""
        self._directory_debts = _lasting(self._directory_debts, self._clock())
        if source in self._directory_debts or not self._may_in_part(ANNOUNCED, OUT, size):
            return False
        if self.limit is not None:
            self._directory_debts[source] = self._clock() + size / (SOURCE * DIRECTORY * self.limit)
        return True

    def may_lodge(self, source: bytes, size: int) -> bool:
        """Whether so much may come from light clients here now; it is then taken from what may come next."""
        if self.limit is None:
            return True
        if self._lodged_turns.may(source, self._clock()) and self._may_in_part(LODGED, IN, size):
            self._lodged_turns.take(source, self._clock() + size / (SOURCE * DIRECTORY * self.limit))
            return True
        self._lodged_turns.wait(source, self._clock())
        return False

    def may_read(self) -> bool:
        """Whether the directory may be looked into now."""
        return self._may(READ, 0)

    def read(self, size: int) -> None:
        """Take what came of the directory from what may come next."""
        self._pay(READ, size / DIRECTORY)
        self._pay(IN, size)

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


def _lasting(until: dict[bytes, float], now: float) -> dict[bytes, float]:
    return {each: end for each, end in until.items() if end > now}
