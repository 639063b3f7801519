"""Windows attached to an engine that runs as a service: they show and control it, and it keeps running when they close.

The engine's side sends every event to such a connection of its control socket. The window's side runs in the process that the
window started as its engine, and forwards lines in both directions.
"""

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from waggle.core.errors import EngineError
from waggle.core.message import NOTHING, Message
from waggle.core.paths import Home
from waggle.engine.control import server
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.control.stdio import LineWriter
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.startup_parts import PARTS
from waggle.protocol import events, json_lines
from waggle.protocol.commands import AnyCommand, Follow, Stop
from waggle.protocol.state import AnyEvent, Snapshot

log = logging.getLogger(__name__)

# The service manager starts a killed engine again after half a minute, on Windows after five; the rest is for its startup.
RECONNECT_SECONDS, RECONNECT_POLL_SECONDS = 330.0 if sys.platform == "win32" else 90.0, 0.5
MAX_UNREAD_BYTES, POLL_SECONDS = 256 * 1024, 0.05  # that the window has not read; beyond that, stop reading from the engine

ANSWER_PREFIX = b'{"type":"Command'


def follow_handler(publisher: EventPublisher, queue: CommandQueue) -> server.Follow:
    """Return how the control socket serves an attached window: it sends a Snapshot, then every event."""

    def follow(writer: asyncio.StreamWriter) -> Callable[[], None]:
        if queue.stopped:
            raise EngineError("The engine is leaving.", "Try again in a moment.")
        writer.write(json_lines.line(publisher.stamp(Snapshot(state=publisher.state))))
        return publisher.attach(writer.write, writer.transport.get_write_buffer_size)

    return follow


async def follow_service(home: Home, queue: CommandQueue, writer: LineWriter, *, has_overrides: bool) -> bool:
    """Follow the service of this home until the window closes or the service ends for good; return False if there is none.

    With `has_overrides`, warn that the settings of the command line are ignored.
    """
    connection = await connect(home)
    if connection is None:
        return False
    last: AnyEvent | None = None
    while connection is not None:
        with contextlib.closing(connection.stream):
            writer(connection.first)
            if has_overrides:
                writer(json_lines.line(_ignored_settings_warning()))
            has_overrides = False
            last = await _forward(connection, writer, queue)
        if queue.stopped or isinstance(last, events.EngineFailed):
            return True
        connection = await _reconnect(home, queue, writer)
    if not queue.stopped:
        failed = events.EngineFailed(
            title=Message("The engine that ran without a window has ended."), advice=NOTHING, at=time.time()
        )
        writer(json_lines.line(last if isinstance(last, events.EngineStopped) else failed))
    return True


@dataclass(frozen=True)
class Connection:
    """A connection to the followed engine, and its first line, a Snapshot."""

    reader: asyncio.StreamReader
    stream: asyncio.StreamWriter
    first: bytes


async def connect(home: Home) -> Connection | None:
    """Begin to follow the engine of a home. Returns None if no engine is running, or if it belongs to a window."""
    try:
        sock = await asyncio.to_thread(server.connect, home, server.CONNECT_SECONDS)
        sock.setblocking(False)
        reader, stream = await asyncio.open_connection(sock=sock, limit=json_lines.MAX_LINE)
    except OSError as error:
        log.debug("no engine to follow: %s", error)
        return None
    first = await _first_snapshot(reader, stream)
    if not first:
        stream.close()
        return None
    return Connection(reader, stream, first)


async def _reconnect(home: Home, queue: CommandQueue, writer: LineWriter) -> Connection | None:
    """Connect to the engine that follows one that ended; return None if none starts in time, or the window closes."""
    part = Message("Waiting for the engine that runs without a window")
    writer(json_lines.line(events.Preparing(part=part, done=0, parts=len(PARTS), at=time.time())))
    log.info("the followed engine is gone, reconnect for %.0f s", RECONNECT_SECONDS)
    ends = time.monotonic() + RECONNECT_SECONDS
    while not queue.stopped and time.monotonic() < ends:
        await asyncio.sleep(RECONNECT_POLL_SECONDS)
        if connection := await connect(home):
            return connection
    return None


def _ignored_settings_warning() -> events.Warned:
    title = Message("Settings of the command line were left out: the engine runs already.")
    return events.Warned(title=title, advice=Message("Change them on the page Settings."), at=time.time())


async def _first_snapshot(reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> bytes:
    """Ask the engine to be followed and return its Snapshot; empty if it refuses, ends, or does not answer in time."""
    stream.write(json_lines.line(Follow(id="follow")))
    try:
        async with asyncio.timeout(server.CONNECT_SECONDS):
            line = await reader.readline()
    except (OSError, ValueError):  # TimeoutError is an OSError; ValueError: a line over the limit
        return b""
    return line if line.endswith(b"\n") and isinstance(json_lines.event(line), Snapshot) else b""


async def _forward(connection: Connection, writer: LineWriter, queue: CommandQueue) -> AnyEvent | None:
    """Forward lines until the connection ends or the window closes; return the last event."""
    last, followed = b"", FollowedEngine(connection.stream)
    queue.attach(followed)
    with contextlib.suppress(ConnectionError, ValueError):  # ValueError: a line over the limit
        while (line := await connection.reader.readline()).endswith(
            b"\n"
        ) and not queue.stopped:  # without a newline: the rest of a killed engine's line
            writer(line)
            last = line
            followed.note_answer(line)
            while writer.unwritten_bytes() > MAX_UNREAD_BYTES and not queue.stopped:
                await asyncio.sleep(POLL_SECONDS)
    queue.detach()
    for name in () if queue.stopped else followed.unanswered:
        refused = events.CommandRefused(
            id=name, title=Message("The engine ended before it answered."), advice=NOTHING, at=time.time()
        )
        writer(json_lines.line(refused))
    return json_lines.event(last) if last else None


class FollowedEngine:
    """The `CommandHandler` for a followed engine: it forwards every command except a stop.

    `unanswered` has the ids of the commands that wait for an answer.
    """

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream
        self.unanswered: list[str] = []

    async def obey(self, command: AnyCommand) -> tuple[AnyEvent, ...]:
        """Forward a command; its answer comes among the events. A stop only disconnects: the service keeps running."""
        if isinstance(command, Stop):
            self.stop()
            return (events.CommandDone(id=command.id),)
        self.unanswered.append(command.id)
        self._stream.write(json_lines.line(command))
        return ()

    def note_answer(self, line: bytes) -> None:
        """Look at a line of the engine, which may be an answer."""
        if line.startswith(ANSWER_PREFIX):
            answered = json_lines.event(line)
            assert isinstance(answered, events.CommandDone | events.CommandRefused)
            self.unanswered = [name for name in self.unanswered if name != answered.id]

    def stop(self) -> None:
        """Disconnect."""
        self._stream.close()
