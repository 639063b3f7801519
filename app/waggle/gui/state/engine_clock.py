"""The clock of an engine on another computer, which may be wrong there, or here: ages, pauses and days go by it."""

import time
from collections.abc import Callable

from waggle.gui.i18n.formatting import duration, tr, visible
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


def clock_words(ahead: float, host: str) -> str:
    """That the clock of a far computer is ahead or behind; empty if it is not."""
    if not ahead:
        return ""
    behind, in_front = tr("The clock on %1 is %2 behind this computer's."), tr("The clock on %1 is %2 ahead of this computer's.")
    words = in_front if ahead > 0 else behind
    words = words.replace("%2", duration(abs(ahead))).replace("%1", visible(host))
    return f"{words} {tr('Times shown here follow that clock.')}"


def zone_words(there: str, host: str) -> str:
    """That a far computer is in another time zone, where it is `there` o'clock, and whose all times are; empty if it is not."""
    if not there:
        return ""
    zone = tr("%1 is in another time zone, where it is %2.").replace("%2", there).replace("%1", visible(host))
    whose = tr("All times, days and your week are told as they are there.")
    return f"{zone} {whose}"
