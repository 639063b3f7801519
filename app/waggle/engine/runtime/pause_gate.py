"""The pause gate between two steps of a round: open while contributing, closed while paused; it raises Stopped at the end.

It is also where the policy thread rests, so that it works for some part of the time only.
"""

import threading
import time
from collections.abc import Callable

from waggle.core.errors import Stopped

MIN_REST_SECONDS = 0.01  # seconds; less is saved up
MAX_WORK_SECONDS = 60.0  # seconds between two calls that are made up for: nobody rests for an hour after one long step
MAX_STRETCH_SECONDS = 600.0  # seconds between two calls that count: the clock of Windows goes on while a computer sleeps


class PauseGate:
    """Called by the policy thread between steps; opened and closed from the engine's loop. Stopping is for good.

    `percent` of the time is worked, the rest is rested.
    """

    def __init__(self, waiting: Callable[[], None], clock: Callable[[], float] = time.perf_counter) -> None:
        self._percent = 100
        self._counted = 0.0
        self._clock = clock
        self._passed: float | None = None
        self._owed = 0.0  # seconds of rest
        self._changed = threading.Condition()
        self._closed = False
        self._opened = 0  # how often: a waiting thread may wake only after the gate has closed again, and must then report again
        self._stopping = False
        self._waiting = waiting

    @property
    def percent(self) -> int:
        return self._percent

    @percent.setter
    def percent(self, percent: int) -> None:
        """It holds at once: a rest that was owed by what held before has an end."""
        with self._changed:
            self._percent = percent
            self._changed.notify_all()

    def __call__(self) -> None:
        """Pass, or say that the policy thread is waiting and wait; raises Stopped when the engine ends."""
        with self._changed:
            self._rest()
            self._count()
            self._wait()
            self._passed = self._clock()

    def hold(self) -> None:
        """The same for who does no work of the policy thread's, as a download."""
        with self._changed:
            self._wait()

    def _count(self) -> None:
        """What was worked since the gate was passed; nothing more is, until it is passed again."""
        self._counted, self._passed = self.seconds, None

    def _wait(self) -> None:
        while self._closed and not self._stopping:
            self._waiting()
            times_opened = self._opened
            self._changed.wait_for(lambda: self._stopping or self._opened != times_opened)  # noqa: B023 - called in this turn only
        if self._stopping:
            raise Stopped

    def _rest(self) -> None:
        """Make up for the work since the gate was passed last; a pause, a stop or another percentage ends it early."""
        if self._passed is None:
            return
        worked = min(MAX_WORK_SECONDS, self._clock() - self._passed)
        self._owed += worked * (100 / self.percent - 1)
        if self._owed >= MIN_REST_SECONDS:
            percent_before = self.percent
            self._changed.wait_for(lambda: self._stopping or self._closed or self.percent != percent_before, self._owed)
            self._owed = 0.0

    def rest(self, seconds: float) -> None:
        """Let some time pass in which nothing is worked; raises Stopped as soon as the engine ends."""
        with self._changed:
            self._count()
            if self._changed.wait_for(lambda: self._stopping, seconds):
                raise Stopped

    @property
    def seconds(self) -> float:
        """For how long the policy thread has worked and rested; a pause is neither, nor is a night's sleep."""
        with self._changed:
            return self._counted + (0.0 if self._passed is None else min(MAX_STRETCH_SECONDS, self._clock() - self._passed))

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def open(self) -> None:
        with self._changed:
            self._closed = False
            self._opened += 1
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
