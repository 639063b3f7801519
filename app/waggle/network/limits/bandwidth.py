"""Counts payload bytes in both directions over the last seconds, and holds each direction, and the directory, to a limit."""

import math
import time
from collections import deque
from collections.abc import Callable

WINDOW_S = 5.0
PAY_S = 0.25  # between two checks whether a limit lets more through
DIRECTORY = 0.25  # the part of a limit that the directory may use, and that light clients may use; the rest is for groups
SHARE = 0.25  # the part of what goes out, and of what the directory sends, that one peer or address range gets if others ask
# So long a receiver that got nothing has precedence over those that got something: most ask again sooner.
WAITS_S = 300.0
REMEMBERED = 1024  # receivers that wait; a stranger may come under any number of names
OUT, IN, DIRECTORY_OUT, DIRECTORY_IN, UPLOADS_IN = range(5)


class _FairTurns:
    """A source that had its share gives way to waiting sources that had none, until its share is paid for."""

    def __init__(self) -> None:
        self._had: dict[bytes, float] = {}  # source -> until when its share is being paid for
        self._waiting: dict[bytes, float] = {}  # source -> until when others give way to it

    def forgive(self) -> None:
        self._had.clear()

    def may(self, source: bytes, now: float) -> bool:
        self._had, self._waiting = _unexpired(self._had, now), _unexpired(self._waiting, now)
        return not (source in self._had and self._waiting.keys() - self._had.keys())

    def wait(self, source: bytes, now: float) -> None:
        self._waiting.pop(source, None)
        self._waiting[source] = now + WAITS_S
        if len(self._waiting) > REMEMBERED:
            del self._waiting[next(iter(self._waiting))]

    def take(self, source: bytes, until: float) -> None:
        self._waiting.pop(source, None)
        self._had[source] = until


class BandwidthLimiter:
    """Sums of the last five seconds, and a limit. Belongs to one thread.

    `limit` is in bytes per second, each way; None: no limit. What is larger than one second's worth is paid for afterwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moved: deque[tuple[float, int, int]] = deque()  # time, bytes out, bytes in
        self._limit: float | None = None
        self._send_turns, self._upload_turns = _FairTurns(), _FairTurns()
        self._forgive()

    def _forgive(self) -> None:
        self._refused_at = -math.inf  # when something had to wait for the limit last
        self._free_at = [0.0] * 5  # by direction or part of one: when it is paid for
        self._directory_debts: dict[bytes, float] = {}  # receiver of directory entries -> until when these are paid for
        self._send_turns.forgive()
        self._upload_turns.forgive()

    @property
    def limit(self) -> float | None:
        """Bytes per second, each way; None: no limit."""
        return self._limit

    @limit.setter
    def limit(self, limit: float | None) -> None:
        """Debts under another limit are forgotten: under a low one they would block everything for minutes."""
        if limit != self._limit:
            self._limit = limit
            self._forgive()

    def count_sent(self, receiver: bytes, size: int) -> None:
        """Count bytes that went to a receiver, and charge them."""
        self._moved.append((self._clock(), size, 0))
        self._pay(OUT, size)
        if self.limit is not None:
            self._send_turns.take(receiver, self._clock() + size / (SHARE * self.limit))

    def count_received(self, size: int) -> None:
        """Count bytes that came in. They are charged by `charge_received`."""
        self._moved.append((self._clock(), 0, size))

    def may_send(self, receiver: bytes) -> bool:
        """Whether a payload may go to this receiver now. One that asks often does not get everything while others wait."""
        if self.limit is None or (self._send_turns.may(receiver, self._clock()) and self._may(OUT, 0)):
            return True
        self._send_turns.wait(receiver, self._clock())
        return False

    def may_receive(self) -> bool:
        """Whether a payload may be asked for now."""
        return self._may(IN, 0)

    def charge_received(self, size: int) -> None:
        """Charge bytes that came in, whatever size was announced."""
        self._pay(IN, size)

    def may_send_directory(self, receiver: bytes, size: int) -> bool:
        """Whether `size` bytes of the directory may go to this receiver now; if so they are charged."""
        self._directory_debts = _unexpired(self._directory_debts, self._clock())
        if receiver in self._directory_debts or not self._may_in_part(DIRECTORY_OUT, OUT, size):
            return False
        if self.limit is not None:
            self._directory_debts[receiver] = self._clock() + size / (SHARE * DIRECTORY * self.limit)
        return True

    def may_accept_upload(self, source: bytes, size: int) -> bool:
        """Whether a light client may upload `size` bytes now; if so they are charged."""
        if self.limit is None:
            return True
        if self._upload_turns.may(source, self._clock()) and self._may_in_part(UPLOADS_IN, IN, size):
            self._upload_turns.take(source, self._clock() + size / (SHARE * DIRECTORY * self.limit))
            return True
        self._upload_turns.wait(source, self._clock())
        return False

    def may_read_directory(self) -> bool:
        """Whether the directory may be read now."""
        return self._may(DIRECTORY_IN, 0)

    def charge_directory(self, size: int) -> None:
        """Charge bytes that reading the directory brought."""
        self._pay(DIRECTORY_IN, size / DIRECTORY)
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
            self._refused_at = now
            return False
        self._free_at[way] = now + size / self.limit
        return True

    @property
    def is_short(self) -> bool:
        """Whether something had to wait for the limit within the last seconds."""
        return self.limit is not None and self._clock() - self._refused_at < WINDOW_S

    def rates(self) -> tuple[float, float]:
        """(up, down) in bytes per second."""
        start = self._clock() - WINDOW_S
        while self._moved and self._moved[0][0] < start:
            self._moved.popleft()
        up = sum(sent for _, sent, _ in self._moved)
        return up / WINDOW_S, sum(received for _, _, received in self._moved) / WINDOW_S


def _unexpired(until: dict[bytes, float], now: float) -> dict[bytes, float]:
    return {source: end for source, end in until.items() if end > now}
