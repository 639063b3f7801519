"""The event log of the window: the engine's events and stderr, and the window's own warnings, one entry a line."""

import logging
import time
from collections import deque
from collections.abc import Iterable

import msgspec
from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from waggle.core.log import RedactingFormatter
from waggle.core.peer_id import fingerprint
from waggle.core.text.round_number import round_number
from waggle.gui.i18n.formatting import local, tooltip_text, visible
from waggle.protocol import events
from waggle.protocol.state import AnyEvent

MOST_ENTRIES = 2000
PLAIN = RedactingFormatter("%(message)s")
NO_INDEX = QModelIndex()


class LogEntry(msgspec.Struct, frozen=True):
    """One line of the log."""

    at: float
    who: str
    words: str

    def line(self) -> str:
        return f"{time.strftime('%H:%M:%S', local(self.at))}  {self.who:<7} {self.words}"


def entry_of(event: AnyEvent) -> LogEntry | None:
    """The log entry of an event; None for most, which the pages show."""
    match event:
        case events.Preparing():
            words = f"{event.part} ({event.done + 1} of {event.parts})"
        case events.Ready():
            words = f"Ready: {event.model} on {event.device}, Waggle {event.version}, protocol {event.protocol}"
        case events.PhaseChanged():
            words = f"Now {event.phase}, round {round_number(event.round)}"
        case events.EngineFailed():
            words = f"Failed: {event.title} {event.advice} {event.detail}"
        case events.EngineGone() if event.host:
            words = f"The connection to {event.host} broke; tried again ({event.restarts})"
        case events.EngineGone():
            words = f"The engine ended with code {event.code}; started again ({event.restarts})"
        case events.Warned():
            words = f"Warning: {event.title} {event.advice}"
        case events.CommandRefused():
            words = f"Refused: {event.title} {event.advice}"
        case events.PartRestarted():
            words = f"The {event.part} was started again: {event.reason}"
        case events.RecordRejected():
            words = f"Dropped what {fingerprint(event.origin)} sent: {event.reason}"
        case events.ReachChanged():
            words = f"Reach: {event.reach}, {event.peers} peer{'' if event.peers == 1 else 's'}"
        case events.CheckpointSetAside():
            words = f"A saved state was set aside: {event.reason}"
        case events.HeldOutMeasured():
            words = f"New questions: {event.score.right} of {event.score.total} right after round {event.score.round}"
        case events.EngineStopped():
            words = f"The engine left after round {event.round}"
        case _:
            return None
    return LogEntry(event.at, "engine", visible(words.strip()))


class EventLog(QObject):
    """The newest entries; `added` is emitted for each new one."""

    added = Signal()
    noted = Signal(object)  # a logging.LogRecord of this process, from any thread

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.entries: deque[LogEntry] = deque(maxlen=MOST_ENTRIES)
        self.count = 0  # of all entries ever added
        self.noted.connect(self._note)

    def take(self, event: AnyEvent) -> None:
        if entry := entry_of(event):
            self._add(entry)

    def add_stderr(self, line: str) -> None:
        """Add a line of the engine's stderr."""
        self._add(LogEntry(time.time(), "stderr", visible(line)))

    def lines(self) -> list[str]:
        """Newest first."""
        return [entry.line() for entry in reversed(self.entries)]

    def _note(self, record: logging.LogRecord) -> None:
        self._add(LogEntry(record.created, "window", visible(PLAIN.format(record))))

    def _add(self, entry: LogEntry) -> None:
        self.entries.append(entry)
        self.count += 1
        self.added.emit()


class EventLogHandler(logging.Handler):
    """Logging handler that adds warnings and errors of this process, with traceback, to an event log."""

    def __init__(self, event_log: EventLog) -> None:
        super().__init__(logging.WARNING)
        self._event_log = event_log

    def emit(self, record: logging.LogRecord) -> None:
        self._event_log.noted.emit(record)


class EventLogModel(QAbstractListModel):
    """List model of the lines that contain every word of the search, newest first."""

    def __init__(self, event_log: EventLog, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._event_log, self._search = event_log, ""
        self._lines: list[str] = []
        self._read = 0  # how many of the log's entries were read
        self.find("")

    def find(self, words: str) -> None:
        """Search the whole log for these words; case does not matter."""
        self._search, self._read = words, self._event_log.count
        self.beginResetModel()
        self._lines = list(_matching_lines(self._event_log.lines(), words.lower().split()))
        self.endResetModel()

    def catch_up(self) -> None:
        """Add new lines at the top; drop lines beyond the log's capacity."""
        new = min(self._event_log.count - self._read, MOST_ENTRIES)
        self._read = self._event_log.count
        fresh = list(_matching_lines(self._event_log.lines()[:new], self._search.lower().split()))
        if not fresh:
            return
        self.beginInsertRows(NO_INDEX, 0, len(fresh) - 1)
        self._lines[:0] = fresh
        self.endInsertRows()
        if len(self._lines) > MOST_ENTRIES:
            self.beginRemoveRows(NO_INDEX, MOST_ENTRIES, len(self._lines) - 1)
            del self._lines[MOST_ENTRIES:]
            self.endRemoveRows()

    def text(self) -> str:
        return "\n".join(self._lines)

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self._lines)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        if not index.isValid():
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole:
                return self._lines[index.row()]
            case Qt.ItemDataRole.ToolTipRole:  # a long line is cut
                return tooltip_text(self._lines[index.row()])
            case _:
                return None


def _matching_lines(lines: Iterable[str], search_words: list[str]) -> Iterable[str]:
    return (line for line in lines if all(word in line.lower() for word in search_words))
