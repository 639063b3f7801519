"""The one State that the window shows, and when it is redrawn: ten times a second at most, and once a minute as time goes by."""

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from waggle.protocol.state import AnyEvent, State, apply

TICK_MS = 100
MINUTE_MS = 60_000


class StateStore(QObject):
    """Folds every event at once, and says `changed` for all that came within one tick, and every minute.

    While nothing is told, what is "now" or "today" grows old all the same.
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
        """Say `changed` now instead of at the end of the tick."""
        self._tick.stop()
        self.changed.emit()

    def _pass_time(self) -> None:
        if hasattr(time, "tzset"):
            time.tzset()  # of a computer that travels: a process keeps the time zone that it began in
        self.flush()

    def now(self) -> float:
        return self._clock()

    def tell_time_by_events(self) -> None:
        """A recorded run is shown at its own time, once it has told one."""
        before = self._clock
        self._clock = lambda: self.state.at or before()
