"""The gate between two steps of a round: open while contributing, closed while paused, gone when stopping."""

import threading
from collections.abc import Callable

from waggle.errors import Stopped


class Gate:
    """Called by the policy thread between steps; opened and closed from the engine's loop. Stopping is for good."""

    def __init__(self, waiting: Callable[[], None]) -> None:
        self._changed = threading.Condition()
        self._closed = False
        self._opened = 0  # times; whoever waits may wake only when it is closed again, and has to say so again
        self._stopping = False
        self._waiting = waiting

    def __call__(self) -> None:
        """Pass, or say that the policy thread is waiting and wait; raises Stopped when the engine ends."""
        with self._changed:
            while self._closed and not self._stopping:
                self._waiting()
                seen = self._opened
                self._changed.wait_for(lambda: self._stopping or self._opened != seen)  # noqa: B023 - called in this turn only
            if self._stopping:
                raise Stopped

    def rest(self, seconds: float) -> None:
        """Let some time pass; raises Stopped as soon as the engine ends."""
        with self._changed:
            if self._changed.wait_for(lambda: self._stopping, seconds):
                raise Stopped

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._changed:
            self._closed = True

    def open(self) -> None:
        with self._changed:
            self._closed = False
            self._opened += 1
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
