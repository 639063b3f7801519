"""The State that the window shows; it signals a redraw at most ten times a second, and once a minute as time passes."""

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from waggle.protocol.state import AnyEvent, State, apply

TICK_MS = 100
MINUTE_MS = 60_000


class StateStore(QObject):
    """Applies every event at once, and emits `changed` once for all events of a tick, and every minute.

    Without events, words such as "now" and "today" become outdated: hence the minute.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(parent)
        self.state = State()
        self._clock = clock
        self._tick = QTimer(self)
        self._tick.setSingleShot(True)
        self._tick.setInterval(TICK_MS)
        self._tick.timeout.connect(self.changed)
        minute = QTimer(self)
        minute.timeout.connect(self._pass_time)
        minute.start(MINUTE_MS)

    def take(self, event: AnyEvent) -> None:
        self.state = apply(self.state, event)
        if not self._tick.isActive():
            self._tick.start()

    def flush(self) -> None:
        """Emit `changed` now instead of at the end of the tick."""
        self._tick.stop()
        self.changed.emit()

    def _pass_time(self) -> None:
        if hasattr(time, "tzset"):
            time.tzset()  # a process keeps the time zone of its start; a laptop travels
        self.flush()

    def now(self) -> float:
        return self._clock()

    def tell_time_by_events(self) -> None:
        """Use the time of the last event as the current time, for a recorded run."""
        before = self._clock
        self._clock = lambda: self.state.at or before()
