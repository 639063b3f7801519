"""The engine process, behind one QObject: talks to it in JSON lines and restarts it when it dies."""

import logging
import shlex
import time
from collections import deque
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QProcess, QTimer, Signal

from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.message import Message
from waggle.gui.i18n.formatting import one_line
from waggle.protocol import PROTOCOL, events, json_lines
from waggle.protocol.commands import AnyCommand, SendMessage, Stop
from waggle.protocol.events_chat import TurnProgress
from waggle.protocol.state import AnyEvent, Snapshot, State

BACKOFF = (1.0, 4.0, 15.0)  # seconds before the first, second and third start after a death
LONGEST_BACKOFF = 60.0  # seconds before each further reconnection to a remote engine: a laptop travels, a router restarts
HEALTHY = 600.0  # seconds of life after which earlier deaths no longer count
STOP_TIMEOUT = 50.0  # seconds until an engine that was asked to stop is killed: saving a large model takes time
KEPT_LINES = 80  # of stderr, for a report
SSH_FAILED, NOT_FOUND = 255, 127  # exit codes: ssh's own failure, and a shell's for a missing program
LONGEST_COMPLAINT = 300  # characters of ssh's error, in a sentence

log = logging.getLogger(__name__)


def command_line(arguments: Sequence[str] = ()) -> list[str]:
    """The command that starts the engine on this computer."""
    return [*paths.module_command("waggle"), "engine", "--stdio", *arguments]


def remote_command_line(host: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command that starts, or attaches to, an engine on another computer; an engine it started stops with the connection.

    ssh starts no login shell, so the PATH is extended by pipx's folder; every shell but Windows' reads the words the same way.
    """
    far = 'env "PATH=$HOME/.local/bin:$PATH" ' + shlex.join(["waggle", "engine", "--stdio", *arguments])
    return ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "--", host, far]


class EngineProcess(QObject):
    """`command` is called before each start; `host` is the ssh destination, empty for an engine on this computer.

    Signals: `event_received` carries every event; `refused` the title, advice and id of a command that was not carried out;
    `ended` follows `stop`; `stopped` every end of the process, after which `is_running` may have changed.
    """

    event_received = Signal(object)
    refused = Signal(object, object, str)  # messages: Qt would carry a text without their id
    ended = Signal()
    stopped = Signal()
    complained = Signal(str)  # a line of its stderr

    def __init__(
        self, command: Callable[[], Sequence[str]], parent: QObject | None = None, *, host: str = "",
        backoff: Sequence[float] = BACKOFF, farewell: float = STOP_TIMEOUT, clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._command, self._host = command, host
        self._backoff, self._farewell, self._clock = tuple(backoff), farewell, clock
        self._buffer = b""
        self._complaints: deque[str] = deque(maxlen=KEPT_LINES)
        self._restarts = self._breaks = 0
        self._last_message_id = ""  # id of the last chat message to the model
        self._started_at = 0.0
        self._leaving = self._hopeless = self._over = False  # _over: the engine announced its own end
        self._kinds = set[type[AnyEvent]]()  # of events since this start
        self._awaiting_old_engine = False  # the engine of a broken connection holds its home until it notices
        self._any_event = False  # since `start`
        self._process = QProcess(self)
        self._process.readyReadStandardOutput.connect(self._read)
        self._process.readyReadStandardError.connect(self._listen)
        self._process.finished.connect(self._handle_exit)
        self._process.errorOccurred.connect(self._report_start_failure)
        self._restart_timer = _single_shot_timer(self, self._start)
        self._patience = _single_shot_timer(self, self._process.kill)

    def start(self) -> None:
        """Start, also after a failure; earlier deaths no longer count."""
        if not self.is_running:
            self._restarts, self._breaks, self._any_event = 0, 0, False
            self._start()

    @property
    def is_running(self) -> bool:
        return self._process.state() != QProcess.ProcessState.NotRunning or self._restart_timer.isActive()

    def send(self, command: AnyCommand) -> bool:
        """Send a command; False if no engine reads it, such as one that is ending."""
        if self._over or self._hopeless or self._process.state() != QProcess.ProcessState.Running:
            return False
        self._process.write(json_lines.line(command))
        if isinstance(command, SendMessage):
            self._last_message_id = command.id
        return True

    def stop(self) -> None:
        """Ask the engine to stop and close its stdin; a second call, or `farewell` seconds, kill it. `ended` follows."""
        if self._leaving:
            self._process.kill()
            return
        self._leaving = True
        self._restart_timer.stop()
        if self._process.state() == QProcess.ProcessState.NotRunning:
            self.ended.emit()
            return
        self.send(Stop(id="window-closed"))
        self._process.closeWriteChannel()
        self._patience.start(int(self._farewell * 1000))

    def _start(self) -> None:
        self._buffer, self._over, self._hopeless, self._awaiting_old_engine = b"", False, False, False
        self._kinds.clear()
        self._complaints.clear()
        self._started_at = self._clock()
        program, *rest = self._command()
        self._process.start(program, rest)

    def _read(self) -> None:
        self._buffer += bytes(self._process.readAllStandardOutput().data())
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            if line and not self._hopeless:
                self._handle_line(line)
        if len(self._buffer) > json_lines.MAX_LINE and not self._hopeless:
            self._give_up(EngineError("The engine said something endless.", "Window and engine must be of one version."), b"")

    def _handle_line(self, line: bytes) -> None:
        try:
            event = json_lines.event(line)
        except EngineError as error:  # window and engine ship together: anything else would show wrong data
            self._give_up(error, line)
            return
        match event:
            case events.Ready(protocol=protocol) | Snapshot(state=State(ready=events.Ready(protocol=protocol))) if (
                protocol != PROTOCOL
            ):
                other = EngineError(
                    Message("The engine speaks protocol %1, this window %2.", protocol, PROTOCOL),
                    "Window and engine must be of one version.",
                )
                self._give_up(other, line)
                return
            case TurnProgress() if event.command_id != self._last_message_id:
                return  # a chat in another window attached to the same engine
            case events.CommandRefused():
                self.refused.emit(event.title, event.advice, event.id)
            case events.EngineFailed() if self._breaks and self._kinds == {events.Preparing}:
                self._over = self._awaiting_old_engine = True
                return  # keep showing that the old engine is waited for
            case events.EngineFailed() | events.EngineStopped():
                self._over = True
            case events.Preparing():  # attached to a service that ended: wait for the next
                self._over = False
            case _:
                pass
        self._any_event = True
        self._kinds.add(type(event))
        self.event_received.emit(event)

    def _listen(self) -> None:
        for line in bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace").splitlines():
            self._complaints.append(line)
            self.complained.emit(line)
            log.info("engine: %s", line)

    def _give_up(self, error: EngineError, line: bytes) -> None:
        """The engine cannot be understood: kill it and do not restart it."""
        self._hopeless = True
        self._report_failure(error.title, error.advice, line[:2000].decode("utf-8", "replace"))
        self._process.kill()

    def _report_start_failure(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._hopeless = True
            self._report_failure(
                Message("ssh is missing on this computer.") if self._host else Message("The engine cannot be started."),
                Message("Install OpenSSH, then start again.") if self._host else Message("Install Waggle again."),
                self._process.errorString(),
            )
            if self._leaving:
                self.ended.emit()

    def _handle_exit(self, code: int, _status: QProcess.ExitStatus) -> None:
        self._patience.stop()
        self._read()
        self._listen()
        if self._leaving:
            self.ended.emit()
        elif self._awaiting_old_engine:
            self._restart_timer.start(int(LONGEST_BACKOFF * 1000))
        elif not (self._hopeless or self._over or code == 0):
            self._handle_crash(code)
        self.stopped.emit()

    def _handle_crash(self, code: int) -> None:
        if self._host and not self._any_event and code in (SSH_FAILED, NOT_FOUND):
            self._report_unreachable(code)
            return
        if self._clock() - self._started_at > HEALTHY:
            self._restarts = self._breaks = 0
        if self._host and code == SSH_FAILED:
            self._reconnect_later(code)
            return
        if self._restarts >= len(self._backoff):
            self._report_failure(
                Message("Training keeps stopping: %1 times in a row.", self._restarts + 1),
                Message(
                    "This computer may have too little memory. Your model is safe: everything up to the last saved round is kept."
                ),
                "\n".join((f"code {code}", *self._complaints)),
            )
            return
        wait = self._backoff[self._restarts]
        self._restarts += 1
        self.event_received.emit(events.EngineGone(code=code, restarts=self._restarts, at=self._clock()))
        self._restart_timer.start(int(wait * 1000))

    def _reconnect_later(self, code: int) -> None:
        """The connection broke, not the engine: keep trying, since the network may return at any time."""
        wait = self._backoff[self._breaks] if self._breaks < len(self._backoff) else LONGEST_BACKOFF
        self._breaks += 1
        self.event_received.emit(events.EngineGone(code=code, restarts=self._breaks, host=self._host, at=self._clock()))
        self._restart_timer.start(int(wait * 1000))

    def _report_unreachable(self, code: int) -> None:
        """Report a failure that another try would only repeat: unknown key or host, or no Waggle there."""
        host, complaint = self._host, next((line for line in reversed(self._complaints) if line.strip()), "")
        self._report_failure(
            Message("%1 cannot be reached by ssh.", host) if code == SSH_FAILED else Message("There is no Waggle on %1.", host),
            Message("%1", one_line(complaint[:LONGEST_COMPLAINT])),
            "\n".join(self._complaints),
        )

    def _report_failure(self, title: Message, advice: Message, detail: str) -> None:
        self.event_received.emit(events.EngineFailed(title=title, advice=advice, detail=detail, at=self._clock()))


def _single_shot_timer(parent: QObject, act: Callable[[], object]) -> QTimer:
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.timeout.connect(act)
    return timer
