"""Windows attached to an engine that none of them started: they show and control it; it keeps running when they close.

The engine's side tells one connection of its control socket everything. The window's side takes the place of the engine that
would have been started, and passes lines on in both directions.
"""

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from waggle.core.errors import EngineError
from waggle.core.paths import Home
from waggle.engine.control import server
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.control.stdio import Writer
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.startup_parts import PARTS
from waggle.protocol import events, json_lines
from waggle.protocol.commands import AnyCommand, Follow, Stop
from waggle.protocol.state import AnyEvent, Snapshot

log = logging.getLogger(__name__)

# For who starts a service anew, and for its beginning: half a minute after it was killed, on Windows five.
RECONNECT_SECONDS, RECONNECT_POLL_SECONDS = 330.0 if sys.platform == "win32" else 90.0, 0.5
MAX_UNREAD_BYTES, POLL_SECONDS = 256 * 1024, 0.05  # bytes that the window has not read, before the engine has to wait for it

ANSWER = b'{"type":"Command'


def follower(publisher: EventPublisher, queue: CommandQueue) -> server.Follow:
    """How the control socket serves an attached window: it sends the current State, then every event."""

    def follow(writer: asyncio.StreamWriter) -> Callable[[], None]:
        if queue.stopped:
            raise EngineError("The engine is leaving.", "Try again in a moment.")
        writer.write(json_lines.line(publisher.stamp(Snapshot(state=publisher.state))))
        return publisher.attach(writer.write, writer.transport.get_write_buffer_size)

    return follow


async def follow(home: Home, queue: CommandQueue, writer: Writer, *, overruled: bool) -> bool:
    """Follow the engine of this folder until the window leaves, or that one for good; False where none lets itself be followed.

    `overruled`: settings came along for an engine of the window's own, which there is not.
    """
    met = await _connect(home)
    if met is None:
        return False
    last: AnyEvent | None = None
    while met is not None:
        with contextlib.closing(met.way):
            writer(met.first)
            if overruled:
                writer(json_lines.line(_left_out()))
            overruled = False
            last = await _pass_on(met, writer, queue)
        if queue.stopped or isinstance(last, events.EngineFailed):
            return True
        met = await _reconnect(home, queue, writer)
    if not queue.stopped:
        failed = events.EngineFailed(title="The engine that ran without a window has ended.", advice="", at=time.time())
        writer(json_lines.line(last if isinstance(last, events.EngineStopped) else failed))
    return True


@dataclass(frozen=True)
class _Connection:
    """A connection to the engine that is followed, and the State of it that came first."""

    reader: asyncio.StreamReader
    way: asyncio.StreamWriter
    first: bytes


async def _connect(home: Home) -> _Connection | None:
    """None where nobody is, or lets itself be followed."""
    try:
        connection = await asyncio.to_thread(server.connect, home, server.CONNECT_SECONDS)
        connection.setblocking(False)
        reader, way = await asyncio.open_connection(sock=connection, limit=json_lines.MAX_LINE)
    except OSError as error:
        log.debug("no engine to follow: %s", error)
        return None
    first = await _first_snapshot(reader, way)
    if not first:
        way.close()
        return None
    return _Connection(reader, way, first)


async def _reconnect(home: Home, queue: CommandQueue, writer: Writer) -> _Connection | None:
    """The engine that was started in place of the one that ended; None where there is none for long, or the window is gone."""
    part = "Waiting for the engine that runs without a window"
    writer(json_lines.line(events.Preparing(part=part, done=0, parts=len(PARTS), at=time.time())))
    log.info("the followed engine is gone, reconnect for %.0f s", RECONNECT_SECONDS)
    ends = time.monotonic() + RECONNECT_SECONDS
    while not queue.stopped and time.monotonic() < ends:
        await asyncio.sleep(RECONNECT_POLL_SECONDS)
        if met := await _connect(home):
            return met
    return None


def _left_out() -> events.Warned:
    title = "Settings of the command line were left out: the engine runs already."
    return events.Warned(title=title, advice="Change them on the page Settings.", at=time.time())


async def _first_snapshot(reader: asyncio.StreamReader, way: asyncio.StreamWriter) -> bytes:
    """The State of the engine that is followed from now on; empty where it refuses, ends, or says nothing for long."""
    way.write(json_lines.line(Follow(id="follow")))
    try:
        async with asyncio.timeout(server.CONNECT_SECONDS):
            line = await reader.readline()
    except (OSError, ValueError):  # a TimeoutError is one; a line without an end is the other
        return b""
    return line if line.endswith(b"\n") and isinstance(json_lines.event(line), Snapshot) else b""


async def _pass_on(met: _Connection, writer: Writer, queue: CommandQueue) -> AnyEvent | None:
    """Until the connection ends, or the window is gone; the last that was told."""
    last, followed = b"", FollowedEngine(met.way)
    queue.sit(followed)
    with contextlib.suppress(ConnectionError, ValueError):  # the latter: a line without an end
        while (line := await met.reader.readline()).endswith(b"\n") and not queue.stopped:  # a killed engine leaves half of one
            writer(line)
            last = line
            followed.hear(line)
            while writer.waiting() > MAX_UNREAD_BYTES and not queue.stopped:
                await asyncio.sleep(POLL_SECONDS)
    queue.rise()
    for name in () if queue.stopped else followed.unanswered:
        refused = events.CommandRefused(id=name, title="The engine ended before it answered.", advice="", at=time.time())
        writer(json_lines.line(refused))
    return json_lines.event(last) if last else None


class FollowedEngine:
    """The engine that is followed, at the queue of the window's own process: what is asked goes there, but for a stop.

    `unanswered`: the commands that it has not answered yet.
    """

    def __init__(self, way: asyncio.StreamWriter) -> None:
        self._way = way
        self.unanswered: list[str] = []

    async def obey(self, command: AnyCommand) -> tuple[AnyEvent, ...]:
        """Pass it on; the answer comes among what is told. A window that stops its engine only leaves this one."""
        if isinstance(command, Stop):
            self.stop()
            return (events.CommandDone(id=command.id),)
        self.unanswered.append(command.id)
        self._way.write(json_lines.line(command))
        return ()

    def hear(self, line: bytes) -> None:
        """One of its lines, which may be an answer."""
        if line.startswith(ANSWER):
            answered = json_lines.event(line)
            assert isinstance(answered, events.CommandDone | events.CommandRefused)
            self.unanswered = [name for name in self.unanswered if name != answered.id]

    def stop(self) -> None:
        """Leave."""
        self._way.close()
