"""The control socket, through which `waggle ctl` and scripts reach the engine. Only this user can open its folder."""

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from filelock import FileLock, Timeout

from waggle.core import paths
from waggle.core.errors import EngineError, WaggleError
from waggle.core.message import Message
from waggle.core.paths import Home, is_private
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of
from waggle.engine.control import windows_loopback
from waggle.protocol import commands, events, json_lines
from waggle.protocol.commands import AnyCommand
from waggle.protocol.state import AnyEvent

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
UNIX = hasattr(asyncio, "start_unix_server")  # else a port of the loopback, see windows_loopback.py
CONNECT_SECONDS = 5.0  # for a running engine to accept a connection
RESTART_SECONDS = 60.0  # for an engine that restarts to leave the old swarm and take commands again
PAUSE_SECONDS = 30.0  # one decoding step of a large model on a slow computer, with some margin
ANSWER_SECONDS = RESTART_SECONDS + PAUSE_SECONDS + CONNECT_SECONDS  # longer than the engine waits, to get its own refusal
DRAIN_SECONDS = 1.0  # at the end, for clients to read the last events
NOT_LISTENING = (FileNotFoundError, ConnectionError)  # what connecting raises then
log = logging.getLogger(__name__)
Obey = Callable[[AnyCommand], Awaitable[tuple[AnyEvent, ...]]]
Follow = Callable[[asyncio.StreamWriter], Callable[[], None]]  # sends it every event from now on; returns how to end that


def socket_path(home: Home) -> Path:
    """The path of a home's control socket."""
    return paths.socket_path(home, "engine.sock")


def _private(home: Home) -> Path:
    """The same path, in a folder that is this user's alone. Raises EngineError if it is not, and OSError."""
    path = socket_path(home)
    if path.parent != home.control and not is_private(path.parent):
        raise EngineError(
            Message("The folder %1 is not yours alone.", path.parent),
            "Remove it, or choose a folder with a shorter name with --home.",
        )
    return path


def remove_socket(home: Home) -> None:
    """Remove a socket that lies outside the home, as its path would be too long. The home must have been claimed."""
    if UNIX and socket_path(home).parent != home.control:
        with contextlib.suppress(OSError, EngineError):  # nothing there, or not this user's
            path = _private(home)
            file_moves.unlink(path, missing_ok=True)
            path.parent.rmdir()


def refuse_follower(_writer: asyncio.StreamWriter) -> Callable[[], None]:
    """Refuse: an engine that a window started ends with that window, and no other follows it."""
    raise EngineError("This engine belongs to a window.", "Close that window first.")


@contextlib.asynccontextmanager
async def serve(home: Home, obey: Obey, follow: Follow = refuse_follower) -> AsyncIterator[asyncio.Server]:
    """Listen for commands until the context ends; then let clients read the last events. The home must have been claimed.

    Raises EngineError where the folder takes no socket.
    """
    connected: set[asyncio.StreamWriter] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(
                contextlib.suppress(asyncio.CancelledError)
            )  # at the server's end; Python 3.11 would log an error
            stack.callback(writer.close)
            connected.add(writer)
            stack.callback(connected.remove, writer)

            async def obey_here(command: AnyCommand) -> tuple[AnyEvent, ...]:
                if not isinstance(command, commands.Follow):
                    return await obey(command)
                stack.callback(follow(writer))
                return (events.CommandDone(id=command.id),)

            async def answer(line: bytes) -> None:
                for event in await answer_line(line, obey_here):
                    writer.write(json_lines.line(event))

            answering: set[asyncio.Task[None]] = set()  # a slow command must not delay the next
            with contextlib.suppress(ConnectionError):  # the client left before its answer
                while line := await reader.readline():
                    task = asyncio.create_task(answer(line))
                    answering.add(task)
                    task.add_done_callback(answering.discard)
                await asyncio.gather(*answering)
                await writer.drain()

    try:
        server = await _listen(home, handle)
    except OSError as error:  # FAT, exFAT and many network folders take no socket
        raise EngineError(
            Message("The engine cannot listen in %1: %2.", home.root, fault_of(error).reason),
            "Not every disk takes sockets: choose a folder on another with --home.",
        ) from error
    try:
        yield server
    finally:
        server.close()
        for writer in connected:
            writer.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await asyncio.gather(*(writer.wait_closed() for writer in connected), return_exceptions=True)


async def _listen(home: Home, handle: windows_loopback.HandleConnection) -> asyncio.Server:
    if not UNIX:
        return await windows_loopback.listen(home.control, handle, limit=json_lines.MAX_LINE)
    with contextlib.suppress(FileExistsError):  # whose it is, `_private` checks
        socket_path(home).parent.mkdir(mode=0o700, parents=True)
    path = _private(home)
    path.parent.chmod(0o700)
    file_moves.unlink(path, missing_ok=True)
    return await asyncio.start_unix_server(handle, path=path, limit=json_lines.MAX_LINE)


def claim_home(home: Home, seconds: float = 0.0) -> FileLock:
    """Lock the home for this process, and wait up to `seconds` for it. Raises EngineError if another one has it, and OSError."""
    lock = FileLock(home.control / "engine.lock", thread_local=False)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        raise EngineError(
            "Another engine, or a seed, is running for this folder.",
            "Stop it (an engine with `waggle ctl stop`), or use another --home.",
        ) from None
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in NO_LOCKS:
            raise
        raise EngineError(
            Message("The disk of %1 has no locks, so nothing keeps two engines apart.", home.root),
            "Some network disks lack them: choose a folder on a local disk with --home.",
        ) from error
    return lock


async def answer_line(line: bytes, obey: Obey) -> tuple[AnyEvent, ...]:
    """Obey one line; return the answers, or CommandRefused with the reason."""
    name = ""
    try:
        command = json_lines.command(line)
        name = command.id
        return await obey(command)
    except WaggleError as error:
        return (events.CommandRefused(id=name, title=error.title, advice=error.advice, at=time.time()),)
    except Exception as error:  # the one place where commands are answered: no client may wait for ever
        log.exception("a command could not be carried out")
        why = fault_of(error).reason if isinstance(error, OSError) else type(error).__name__
        return (
            events.CommandRefused(
                id=name,
                title=Message("The engine could not do that: %1.", why),
                advice=Message("The log has the details."),
                at=time.time(),
            ),
        )


def is_running(home: Home) -> bool:
    """Whether an engine listens for this home. Raises OSError and EngineError if that cannot be found out."""
    try:
        connect(home, CONNECT_SECONDS).close()
    except (TimeoutError, BlockingIOError):  # there is one, too busy to answer
        return True
    except NOT_LISTENING:
        return False
    return True


def send_command(home: Home, command: AnyCommand, seconds: float = ANSWER_SECONDS) -> list[AnyEvent]:
    """Send one command and return the answers, CommandDone or CommandRefused last; raises EngineError."""
    try:
        with connect(home, seconds) as connection:
            connection.sendall(json_lines.line(command))
            answers: list[AnyEvent] = []
            for line in connection.makefile("rb"):
                answers.append(json_lines.event(line))
                if isinstance(answers[-1], events.CommandDone | events.CommandRefused):
                    return answers
    except TimeoutError as error:
        raise EngineError("The engine does not answer.", "Wait a moment, or look at its log.") from error
    except NOT_LISTENING as error:
        raise EngineError("No engine is running for this folder.", "Start one with `waggle engine`.") from error
    except OSError as error:  # another user's, or no folder
        title = Message("The engine of %1 cannot be asked: %2.", home.root, fault_of(error).reason)
        raise EngineError(title, "Ask as who started it, or name its folder with --home.") from error
    raise EngineError("The engine ended before it answered.", "Look at its log.")


def connect(home: Home, seconds: float) -> socket.socket:
    """Connect to the engine of a home. Raises OSError if none listens, and EngineError if another user could listen there."""
    if not UNIX:
        return windows_loopback.connect(home.control, seconds)
    path = _private(home)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(seconds)
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection
