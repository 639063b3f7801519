"""One QObject around one QProcess: a race, which ends with whoever watches it."""

from PySide6.QtCore import QObject, QProcess, Signal
from PySide6.QtWidgets import QApplication

from waggle import paths
from waggle.errors import LabError
from waggle.protocol import race, wire

FAREWELL_MS = 3000


class RaceProcess(QObject):
    """`told` carries every message, `ended` why it ended by itself: empty where it was played to its end."""

    told = Signal(object)
    ended = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._buffer, self._complaint = b"", ""
        self._stopped = False
        self.process = QProcess(self)
        self.process.readyReadStandardOutput.connect(self._read)
        self.process.readyReadStandardError.connect(self._listen)
        self.process.finished.connect(self._finished)
        self.process.errorOccurred.connect(self._not_started)
        QApplication.instance().aboutToQuit.connect(self.stop)  # type: ignore[union-attr]

    def start(self, *options: str) -> None:
        """Race anew."""
        self.stop()
        self._buffer, self._complaint, self._stopped = b"", "", False
        command = [*paths.program("waggle"), "lab", "race", "--stdio", *options]
        self.process.start(command[0], command[1:])

    @property
    def running(self) -> bool:
        return self.process.state() != QProcess.ProcessState.NotRunning

    def stop(self) -> None:
        """End it at once: nothing of it is kept. `ended` does not follow."""
        self._stopped = True
        if self.running:
            self.process.kill()
            self.process.waitForFinished(FAREWELL_MS)

    def _read(self) -> None:
        self._buffer += bytes(self.process.readAllStandardOutput().data())
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines if not self._stopped else ():
            try:
                self.told.emit(race.read(line))
            except LabError as error:  # both ends ship together: going on would show something false
                self._give_up(error)
                return
        if len(self._buffer) > wire.MAX_LINE:
            self._give_up(LabError("The race said something endless."))

    def _give_up(self, error: LabError) -> None:
        self.stop()
        self.ended.emit(error.title)

    def _listen(self) -> None:
        """Its last word is what is shown where it fails."""
        said = bytes(self.process.readAllStandardError().data()).decode("utf-8", "replace")
        for words in said.splitlines():
            if words.strip():
                self._complaint = words.strip().removeprefix("waggle: ")

    def _finished(self, code: int, _status: QProcess.ExitStatus) -> None:
        if not self._stopped:
            self._read()
            self._listen()
            self.ended.emit((self._complaint or f"code {code}") if code else "")

    def _not_started(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self.ended.emit("It cannot be started. Install Waggle again.")
