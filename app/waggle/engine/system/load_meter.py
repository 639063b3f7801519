"""What the engine takes of this computer now, for the person who watches it."""

import time
from collections.abc import Callable

from waggle.core.system.machine import usable_cores
from waggle.engine.system import sensors
from waggle.protocol.events import LoadMeasured

EVERY_SECONDS = 10.0


class LoadMeter:
    """Measures this process from one reading to the next. A call blocks for milliseconds, so make it in a thread.

    `worked` counts seconds of a core.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, worked: Callable[[], float] = time.process_time,
        celsius: Callable[[], float | None] = sensors.celsius,
    ) -> None:  # fmt: skip
        self._clock, self._worked, self._celsius = clock, worked, celsius
        self._at, self._worked_then = clock(), worked()
        self._last: LoadMeasured | None = None

    def read(self) -> LoadMeasured | None:
        """The load since the last reading; None if that was less than EVERY_SECONDS ago, or if nothing changed."""
        seconds = self._clock() - self._at
        if seconds < EVERY_SECONDS:
            return None
        cpu = (self._worked() - self._worked_then) / seconds / usable_cores()
        self._at, self._worked_then = self._clock(), self._worked()
        degrees = self._celsius()
        load = LoadMeasured(cpu=round(min(1.0, cpu), 2), celsius=None if degrees is None else float(round(degrees)))
        if load == self._last:
            return None
        self._last = load
        return load
