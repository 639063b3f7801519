"""The State that the window shows; it signals a redraw at most ten times a second."""

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from waggle.gui.i18n import zone
from waggle.gui.state.engine_clock import EngineClock
from waggle.protocol.state import AnyEvent, State, apply

TICK_MS = 100
AGE_MS = 10_000


class StateStore(QObject):
    """Applies every event at once, and emits `changed` once for all events of a tick. `far`: the engine runs elsewhere.

    `applied` carries each event and the State after it.
    """

    changed = Signal()
    applied = Signal(object, object)

    def __init__(self, parent: QObject | None = None, *, clock: Callable[[], float] = time.time, far: bool = False) -> None:
        super().__init__(parent)
        self.state = State()
        self._clock = clock
        self._engine_clock = EngineClock(clock) if far else None
        self._tick = QTimer(self)
        self._tick.setSingleShot(True)
        self._tick.setInterval(TICK_MS)
        self._tick.timeout.connect(self.changed)
        self._ages = QTimer(self)
        self._ages.timeout.connect(self._pass_time)

    def keep_ages_current(self) -> None:
        """Emit `changed` every ten seconds from now on, also without events: "20 s ago" would stand still."""
        self._ages.start(AGE_MS)

    def take(self, event: AnyEvent) -> None:
        if self._engine_clock is not None:
            self._engine_clock.observe(event)
        self.state = apply(self.state, event)
        if self._engine_clock is not None:
            zone.use(self.state.utc_offset)
        self.applied.emit(event, self.state)
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

    @property
    def ahead(self) -> float:
        """Seconds by which the clock of a far engine is ahead of this computer's; 0 if they agree, or if it runs here."""
        return 0.0 if self._engine_clock is None else self._engine_clock.ahead

    def now(self) -> float:
        """The time now by the engine's clock, which all its times are of."""
        return self._clock() + self.ahead

    def tell_time_by_events(self) -> None:
        """Use the time of the last event as the current time, for a recorded run."""
        before = self._clock
        self._clock = lambda: self.state.at or before()
