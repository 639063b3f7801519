"""The gate between two steps of a round: open while contributing, closed while paused, gone when stopping."""

import threading
from collections.abc import Callable

from waggle.errors import Stopped


class Gate:
    """Called by the policy thread between steps; opened and closed from the engine's loop."""

    def __init__(self, waiting: Callable[[], None]) -> None:
        self._open = threading.Event()
        self._open.set()
        self._stopping = False
        self._waiting = waiting

    def __call__(self) -> None:
        """Pass, or say that the policy thread is waiting and wait; raises Stopped when the engine ends."""
        if not self._open.is_set():
            self._waiting()
            self._open.wait()
        if self._stopping:
            raise Stopped

    @property
    def closed(self) -> bool:
        return not self._open.is_set()

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def stop(self) -> None:
        self._stopping = True
        self._open.set()
