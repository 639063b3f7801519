"""The control socket: `waggle ctl` and scripts ask the engine through it. Only this user can open its folder."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from filelock import FileLock, Timeout

from waggle.core import paths
from waggle.core.errors import EngineError, WaggleError
from waggle.core.paths import Home, is_private
from waggle.engine.control import windows_loopback
from waggle.protocol import commands, events, json_lines
from waggle.protocol.commands import AnyCommand
from waggle.protocol.state import AnyEvent

UNIX = hasattr(asyncio, "start_unix_server")  # else a port of the loopback, see windows_loopback.py
CONNECT_SECONDS = 5.0  # seconds for an engine that runs to be noticed
RESTART_SECONDS = 60.0  # for an engine that starts again to leave the old swarm and take commands
PAUSE_SECONDS = 30.0  # one decode step of a large model on a slow machine, with room
ANSWER_SECONDS = (
    RESTART_SECONDS + PAUSE_SECONDS + CONNECT_SECONDS
)  # a client waits longer than the engine, so that it gets the engine's own answer
DRAIN_SECONDS = 1.0  # for who is connected to read the last that an engine said
NOT_LISTENING = (FileNotFoundError, ConnectionError)  # listens
log = logging.getLogger(__name__)
Obey = Callable[[AnyCommand], Awaitable[tuple[AnyEvent, ...]]]
Follow = Callable[[asyncio.StreamWriter], Callable[[], None]]  # begins to tell it everything, and returns how to end that


def socket_path(home: Home) -> Path:
    """Where a home's engine listens."""
    return paths.socket_path(home, "engine.sock")


def _private(home: Home) -> Path:
    """The same, where nobody else can listen. Raises EngineError, OSError."""
    path = socket_path(home)
    if path.parent != home.control and not is_private(path.parent):
        raise EngineError(
            f"The folder {path.parent} is not yours alone.", "Remove it, or choose a folder with a shorter name with --home."
        )
    return path


def remove_socket(home: Home) -> None:
    """Remove what listening left outside the home; that must have been claimed."""
    if UNIX and socket_path(home).parent != home.control:
        with contextlib.suppress(OSError, EngineError):  # nothing is there, or nothing of ours
            path = _private(home)
            path.unlink(missing_ok=True)
            path.parent.rmdir()


def refuse_follower(_writer: asyncio.StreamWriter) -> Callable[[], None]:
    """An engine that a window started leaves with it, and nobody else follows it."""
    raise EngineError("This engine belongs to a window.", "Close that window first.")


@contextlib.asynccontextmanager
async def serving(home: Home, obey: Obey, follow: Follow = refuse_follower) -> AsyncIterator[asyncio.Server]:
    """Listen for commands; the folder must have been claimed. Who is connected at the end hears the last that was told.

    Raises EngineError where one cannot listen.
    """
    connected: set[asyncio.StreamWriter] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(contextlib.suppress(asyncio.CancelledError))  # at our end; Python 3.11 would log it as an error
            stack.callback(writer.close)
            connected.add(writer)
            stack.callback(connected.remove, writer)

            async def obeyed(command: AnyCommand) -> tuple[AnyEvent, ...]:
                if not isinstance(command, commands.Follow):
                    return await obey(command)
                stack.callback(follow(writer))
                return (events.CommandDone(id=command.id),)

            async def answer(line: bytes) -> None:
                for event in await answers_to(line, obeyed):
                    writer.write(json_lines.line(event))

            answering: set[asyncio.Task[None]] = set()  # one that takes its time keeps no other waiting
            with contextlib.suppress(ConnectionError):  # the asker left before the answer
                while line := await reader.readline():
                    task = asyncio.create_task(answer(line))
                    answering.add(task)
                    task.add_done_callback(answering.discard)
                await asyncio.gather(*answering)
                await writer.drain()

    try:
        server = await _listen(home, talk)
    except OSError as error:  # FAT, exFAT and many shared folders take no socket
        raise EngineError(
            f"The engine cannot listen in {home.root}: {error.strerror or error}.",
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


async def _listen(home: Home, talk: windows_loopback.Talk) -> asyncio.Server:
    if not UNIX:
        return await windows_loopback.listen(home.control, talk, limit=json_lines.MAX_LINE)
    with contextlib.suppress(FileExistsError):  # who made it is looked at next
        socket_path(home).parent.mkdir(mode=0o700, parents=True)
    path = _private(home)
    path.parent.chmod(0o700)
    path.unlink(missing_ok=True)
    return await asyncio.start_unix_server(talk, path=path, limit=json_lines.MAX_LINE)


def claim(home: Home, seconds: float = 0.0) -> FileLock:
    """Take this folder for as long as the process lives; raises EngineError when another one still has it by then, OSError."""
    lock = FileLock(home.control / "engine.lock", thread_local=False)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        raise EngineError(
            "Another engine, or a seed, is running for this folder.",
            "Stop it (an engine with `waggle ctl stop`), or use another --home.",
        ) from None
    return lock


async def answers_to(line: bytes, obey: Obey) -> tuple[AnyEvent, ...]:
    """Obey one command line; what cannot be read or done is refused in words."""
    name = ""
    try:
        command = json_lines.command(line)
        name = command.id
        return await obey(command)
    except WaggleError as error:
        return (events.CommandRefused(id=name, title=error.title, advice=error.advice, at=time.time()),)
    except Exception as error:  # the one place where commands are answered: nobody may wait for ever
        log.exception("a command could not be carried out")
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return (
            events.CommandRefused(
                id=name, title=f"The engine could not do that: {why}.", advice="The log has the details.", at=time.time()
            ),
        )


def runs(home: Home) -> bool:
    """Whether an engine listens for this folder; raises OSError and EngineError where that cannot be told."""
    try:
        connect(home, CONNECT_SECONDS).close()
    except (TimeoutError, BlockingIOError):  # it is there, and too busy to answer
        return True
    except NOT_LISTENING:
        return False
    return True


def ask(home: Home, command: AnyCommand, seconds: float = ANSWER_SECONDS) -> list[AnyEvent]:
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
    except OSError as error:  # somebody else's, or no folder at all
        title = f"The engine of {home.root} cannot be asked: {error.strerror or error}."
        raise EngineError(title, "Ask as who started it, or name its folder with --home.") from error
    raise EngineError("The engine ended before it answered.", "Look at its log.")


def connect(home: Home, seconds: float) -> socket.socket:
    """A connection to the engine of a home; raises OSError where nobody listens, EngineError where somebody else could."""
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
