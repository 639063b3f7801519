"""A Waggle program beside the window, read line by line; it ends with the window."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, QProcess, Signal
from PySide6.QtWidgets import QApplication

from waggle.core import paths
from waggle.core.message import Message
from waggle.protocol import json_lines

STOP_TIMEOUT_MS = 3000
KEPT_LINES = 20  # of stderr


class LineProcess(QObject):
    """`line` carries each line of its stdout; `ended` its exit code and the last lines of its stderr, unless it was stopped."""

    line = Signal(bytes)
    ended = Signal(int, list)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._buffer = b""
        self._complaints: deque[str] = deque(maxlen=KEPT_LINES)
        self._stopped = False
        self.process = QProcess(self)
        self.process.readyReadStandardOutput.connect(self._read)
        self.process.readyReadStandardError.connect(self._listen)
        self.process.finished.connect(self._handle_exit)
        self.process.errorOccurred.connect(self._report_start_failure)
        QApplication.instance().aboutToQuit.connect(self.stop)  # type: ignore[union-attr]

    def start(self, command: Sequence[str]) -> None:
        """Start the command; a running one is killed first."""
        self.stop()
        self._buffer, self._stopped = b"", False
        self._complaints.clear()
        self.process.start(command[0], list(command[1:]))

    def live_with(self, parent: QObject) -> None:
        """Move to a new parent, which connects the signals again."""
        for signal in (self.line, self.ended):
            signal.disconnect()
        self.setParent(parent)

    @property
    def is_running(self) -> bool:
        return self.process.state() != QProcess.ProcessState.NotRunning

    def stop(self) -> None:
        """Kill it; `ended` does not follow."""
        self._stopped = True
        if self.is_running:
            self.process.kill()
            self.process.waitForFinished(STOP_TIMEOUT_MS)

    def _read(self) -> None:
        self._buffer += bytes(self.process.readAllStandardOutput().data())
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            if not self._stopped:  # a receiver of a line may call `stop`
                self.line.emit(line.removesuffix(b"\r"))  # as Windows ends lines
        if len(self._buffer) > json_lines.MAX_LINE and not self._stopped:
            self.stop()
            self.ended.emit(1, [Message("It said something endless.")])

    def _listen(self) -> None:
        output = bytes(self.process.readAllStandardError().data()).decode("utf-8", "replace")
        self._complaints.extend(words.strip().removeprefix("waggle: ") for words in output.splitlines() if words.strip())

    def _handle_exit(self, code: int, _status: QProcess.ExitStatus) -> None:
        if not self._stopped:
            self._read()
            self._listen()
            self.ended.emit(code, list(self._complaints))

    def _report_start_failure(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self.ended.emit(1, ["It cannot be started. Install Waggle again."])


@dataclass
class Output:
    """What a program wrote: the lines of its stdout, its exit code, and the last lines of its stderr."""

    lines: list[bytes] = field(default_factory=list)
    code: int = 0
    complaints: list[str] = field(default_factory=list)


async def output_of(*arguments: str) -> Output:
    """Run a command of `waggle` to its end. If this is cancelled, it is killed."""
    program, output = LineProcess(), Output()
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(code: int, complaints: list[str]) -> None:
        output.code, output.complaints = code, complaints
        if not ended.done():
            ended.set_result(None)

    program.line.connect(output.lines.append)
    program.ended.connect(end)
    program.start([*paths.module_command("waggle"), *arguments])
    try:
        await ended
    finally:
        program.stop()
    return output
