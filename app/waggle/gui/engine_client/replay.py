"""Replays a recorded run in place of an engine: for demonstrations, screenshots, tests and problem reports."""

import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from waggle.core import paths
from waggle.core.errors import WaggleError
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of
from waggle.protocol import events, json_lines
from waggle.protocol.commands import AnyCommand, Pause, Resume
from waggle.protocol.state import AnyEvent

TICK_MS = 50
LONGEST_WAIT = 3.0  # seconds: nobody watches a night's pause


class Replay(QObject):
    """Emits the events of a file at their recorded times, `speed` times as fast; skips and counts lines of other versions.

    Raises WaggleError for a file that cannot be read or holds no event.
    """

    event_received = Signal(object)
    ended = Signal(int)  # number of skipped lines

    def __init__(
        self, path: Path, speed: float = 1.0, parent: QObject | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(parent)
        self.is_example = path == paths.example()
        self.over = False
        self._path, self._lines = path, json_lines.recording(path)
        self._speed, self._clock = max(0.01, speed), clock
        self._at = 0.0  # recorded time of the last event emitted
        self._due = 0.0  # time of `clock` at which the next event is due
        self._phase: events.PhaseChanged | None = None
        self.skipped = 0
        self._tick = QTimer(self)
        self._tick.setInterval(TICK_MS)
        self._tick.timeout.connect(self._play)
        try:
            self._next = self._read()
        except OSError as error:
            raise WaggleError(Message("%1 cannot be read: %2.", path, fault_of(error).reason), fault_of(error).advice) from error
        if self._next is None:
            raise WaggleError(Message("%1 is no recorded run.", path), "Waggle keeps its own in the folder events of its home.")

    def start(self) -> None:
        """Start or continue; after the end, start from the beginning."""
        if self.over:
            self.over, self.skipped, self._lines = False, 0, json_lines.recording(self._path)
        self._due = self._clock()
        self._tick.start()

    def play_all(self) -> None:
        """Emit everything at once, without the end of the recorded engine: a screenshot shows it running."""
        while (event := self._next or self._read()) is not None:
            self._next = None
            if not isinstance(event, events.EngineStopped):
                self.event_received.emit(event)
        self.ended.emit(self.skipped)

    def send(self, command: AnyCommand) -> bool:
        """Pause and resume the replay; False for any other command."""
        match command:
            case Pause() if self._tick.isActive():
                self._tick.stop()
                until = command.until if command.seconds is None else self._at + command.seconds
                self.event_received.emit(events.PhaseChanged(phase="paused", round=self._round(), at=self._at, until=until))
            case Resume() if self._next is not None:
                self.event_received.emit(events.PhaseChanged(phase="contributing", round=self._round(), at=self._at))
                self.start()
            case _:
                return False
        return True

    def stop(self) -> None:
        """Stop for good: the file is closed."""
        self._tick.stop()
        self._lines.close()

    def _round(self) -> int:
        return self._phase.round if self._phase else 0

    def _play(self) -> None:
        now = self._clock()
        while self._due <= now:
            event = self._next or self._read()
            if event is None:
                self._tick.stop()
                self.over = True
                self.ended.emit(self.skipped)
                return
            self._next = None
            self._emit_event(event)
            self._next = self._read()
            if self._next is not None:
                wait = max(0.0, self._next.at - self._at) if self._next.at else 0.0
                self._due += min(LONGEST_WAIT, wait / self._speed)

    def _emit_event(self, event: AnyEvent) -> None:
        self._at = event.at or self._at
        match event:
            case events.PhaseChanged():
                self._phase = event
            case events.QuestionsDrawn():
                self._phase = events.PhaseChanged(phase="contributing", round=event.round)
            case _:
                pass
        self.event_received.emit(event)

    def _read(self) -> AnyEvent | None:
        for event in self._lines:
            if event is not None:
                return event
            self.skipped += 1
        return None
