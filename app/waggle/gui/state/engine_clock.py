"""The clock of an engine on another computer, which may be wrong there, or here: ages, pauses and days go by it."""

import time
from collections.abc import Callable

from waggle.protocol.events import EngineFailed, EngineGone
from waggle.protocol.state import AnyEvent

NOTICED_S = 60.0  # smaller differences are delays of the way, and change no words
TRUSTED_S = 600.0  # after which a larger delay counts: the clock there may have been set back


class EngineClock:
    """Compares the times of events with the time at which they arrive. The quickest event of the last minutes is the nearest."""

    def __init__(self, here: Callable[[], float] = time.time, passed: Callable[[], float] = time.monotonic) -> None:
        self._here, self._passed = here, passed
        self._ahead: float | None = None
        self._measured_at = 0.0

    def observe(self, event: AnyEvent) -> None:
        if not event.at or isinstance(event, EngineGone | EngineFailed):  # the window may have created these itself
            return
        ahead, now = event.at - self._here(), self._passed()
        if self._ahead is None or ahead > self._ahead or now - self._measured_at > TRUSTED_S:
            self._ahead, self._measured_at = ahead, now

    @property
    def ahead(self) -> float:
        """Seconds by which the clock there is ahead of the one here; 0 if they agree, or before the first event."""
        return self._ahead if self._ahead is not None and abs(self._ahead) > NOTICED_S else 0.0
