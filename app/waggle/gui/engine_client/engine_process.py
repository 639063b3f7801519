"""The engine process, behind one QObject: talks to it in JSON lines and restarts it when it dies."""

import asyncio
import logging
import shlex
import time
from collections import deque
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QProcess, Signal

from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.message import Message, in_turn
from waggle.gui.coroutines import Task, start
from waggle.gui.i18n.formatting import one_line
from waggle.protocol import PROTOCOL, events, json_lines
from waggle.protocol.commands import AnyCommand, SendMessage, Stop
from waggle.protocol.events_chat import TurnProgress
from waggle.protocol.state import AnyEvent, Snapshot, State
from waggle.protocol.text.status_text import SAFE

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

    Signals: `event_received` carries every event; `ended` follows `stop`; `stopped` every end of the process, after which
    `is_running` may have changed: it is true while the process runs or will be started again.
    """

    event_received = Signal(object)
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
        self.is_running = False
        self._life: Task | None = None
        self._exit: asyncio.Future[int | None] | None = None  # the code of the present run; None: it could not be started

    def start(self) -> None:
        """Start, also after a failure; earlier deaths no longer count."""
        if not self.is_running:
            self._restarts, self._breaks, self._any_event = 0, 0, False
            self.is_running = True
            self._life = start(self, self._live())

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
        start(self, self._leave())

    async def _leave(self) -> None:
        if self._exit is not None and not self._exit.done():
            self.send(Stop(id="window-closed"))
            self._process.closeWriteChannel()
            await asyncio.wait({self._exit}, timeout=self._farewell)
            self._process.kill()
            await asyncio.wait({self._exit})
        if self._life is not None:
            self._life.cancel()  # it may wait for another start
        self.is_running = False
        self.ended.emit()
        self.stopped.emit()

    async def _live(self) -> None:
        """Run the engine, and again after each death, until it ended by itself or another start would not help."""
        wait: float | None = 0.0
        while wait is not None:
            await asyncio.sleep(wait)
            wait = self._wait_after(await self._run())
            self.is_running = wait is not None
            self.stopped.emit()

    async def _run(self) -> int | None:
        """Run it once; returns its exit code, or None if it could not be started."""
        self._buffer, self._over, self._hopeless, self._awaiting_old_engine = b"", False, False, False
        self._kinds.clear()
        self._complaints.clear()
        self._started_at = self._clock()
        self._exit = asyncio.get_running_loop().create_future()
        program, *rest = self._command()
        self._process.start(program, rest)
        return await asyncio.shield(self._exit)

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
                Message("ssh is missing on this computer.") if self._host else Message("Training cannot be started."),
                Message("Install OpenSSH, then start again.") if self._host else Message("Install Waggle again."),
                self._process.errorString(),
            )
            self._end_run(None)

    def _handle_exit(self, code: int, _status: QProcess.ExitStatus) -> None:
        self._read()
        self._listen()
        self._end_run(code)

    def _end_run(self, code: int | None) -> None:
        if self._exit is not None and not self._exit.done():
            self._exit.set_result(code)

    def _wait_after(self, code: int | None) -> float | None:
        """The seconds until another start after a run with this exit code; None: there is none."""
        if self._awaiting_old_engine:
            return LONGEST_BACKOFF
        if self._leaving or self._hopeless or self._over or not code:
            return None
        if self._host and not self._any_event and code in (SSH_FAILED, NOT_FOUND):
            self._report_unreachable(code)
            return None
        if self._clock() - self._started_at > HEALTHY:
            self._restarts = self._breaks = 0
        if self._host and code == SSH_FAILED:
            return self._wait_to_reconnect(code)
        if self._restarts >= len(self._backoff):
            self._report_repeated_end(code)
            return None
        wait = self._backoff[self._restarts]
        self._restarts += 1
        self.event_received.emit(events.EngineGone(code=code, restarts=self._restarts, wait=wait, at=self._clock()))
        return wait

    def _report_repeated_end(self, code: int) -> None:
        killed = abs(code) in events.KILLED
        why = (
            Message("This computer may have too little memory for this model.")
            if killed
            else Message("Copy the report and send it to us.")
        )
        self._report_failure(
            Message("Training stopped %1 times in a row.", self._restarts + 1),
            in_turn(why, SAFE),
            "\n".join((f"code {code}", *self._complaints)),
            short_of_memory=killed,
        )

    def _wait_to_reconnect(self, code: int) -> float:
        """The connection broke, not the engine: keep trying, since the network may return at any time."""
        wait = self._backoff[self._breaks] if self._breaks < len(self._backoff) else LONGEST_BACKOFF
        self._breaks += 1
        self.event_received.emit(events.EngineGone(code=code, restarts=self._breaks, host=self._host, at=self._clock()))
        return wait

    def _report_unreachable(self, code: int) -> None:
        """Report a failure that another try would only repeat: unknown key or host, or no Waggle there."""
        host, complaint = self._host, next((line for line in reversed(self._complaints) if line.strip()), "")
        self._report_failure(
            Message("%1 cannot be reached by ssh.", host) if code == SSH_FAILED else Message("There is no Waggle on %1.", host),
            Message("%1", one_line(complaint[:LONGEST_COMPLAINT])),
            "\n".join(self._complaints),
        )

    def _report_failure(self, title: Message, advice: Message, detail: str, *, short_of_memory: bool = False) -> None:
        self.event_received.emit(
            events.EngineFailed(title=title, advice=advice, detail=detail, short_of_memory=short_of_memory, at=self._clock())
        )
