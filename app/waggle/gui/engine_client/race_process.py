"""The race of two practice swarms as a process: its messages, and how it ended."""

from PySide6.QtCore import QObject, Signal

from waggle.core import paths
from waggle.core.errors import LabError
from waggle.gui.engine_client.line_process import LineProcess
from waggle.protocol import events_race


class RaceProcess(QObject):
    """`message_received` carries every message, `ended` why it ended by itself; empty after a complete race."""

    message_received = Signal(object)
    ended = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._program = LineProcess(self)
        self._program.line.connect(self._emit_message)
        self._program.ended.connect(self._emit_end)
        self.process = self._program.process

    def live_with(self, parent: QObject) -> None:
        """Move to a new parent, which connects the signals again."""
        for signal in (self.message_received, self.ended):
            signal.disconnect()
        self.setParent(parent)

    def start(self, *options: str) -> None:
        """Start a new race."""
        self._program.start([*paths.module_command("waggle"), "race", "--stdio", *options])

    @property
    def is_running(self) -> bool:
        return self._program.is_running

    def stop(self) -> None:
        """Kill it; nothing is saved and `ended` does not follow."""
        self._program.stop()

    def _emit_message(self, line: bytes) -> None:
        try:
            self.message_received.emit(events_race.read(line))
        except LabError as error:  # both programs ship together: anything else would show wrong data
            self.stop()
            self.ended.emit(error.title)

    def _emit_end(self, code: int, complaints: list[str]) -> None:
        self.ended.emit((complaints[-1] if complaints else f"code {code}") if code else "")
