"""Following: windows look at an engine that none of them started, and drive it; it goes on when they are closed.

The engine's side tells one connection of its control socket everything. The window's side takes the place of the engine that
would have been started, and passes lines on in both directions.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

from waggle.engine import control
from waggle.engine.desk import Desk
from waggle.engine.stdio import Writer
from waggle.engine.teller import Teller
from waggle.errors import EngineError
from waggle.paths import Home
from waggle.protocol import events, wire
from waggle.protocol.commands import AnyCommand, Follow, Stop
from waggle.protocol.state import AnyEvent, Snapshot

MOST_AHEAD, LOOK_SECONDS = 256 * 1024, 0.05  # bytes that the window has not read, before the engine has to wait for it


def told_to(teller: Teller, desk: Desk) -> control.Follow:
    """What a control socket does for whoever follows: everything is told to that connection, from the State of now on."""

    def follow(writer: asyncio.StreamWriter) -> Callable[[], None]:
        if desk.stopped:
            raise EngineError("The engine is leaving.", "Try again in a moment.")
        writer.write(wire.line(teller.stamp(Snapshot(state=teller.state))))
        return teller.attach(writer.write, writer.transport.get_write_buffer_size)

    return follow


async def follow(home: Home, desk: Desk, writer: Writer, *, overruled: bool) -> bool:
    """Follow the engine of this folder until the window or that engine leaves; False where none lets itself be followed.

    `overruled`: settings came along for an engine of the window's own, which there is not.
    """
    try:
        connection = await asyncio.to_thread(control.connect, home, control.KNOCK)
        connection.setblocking(False)
        reader, way = await asyncio.open_connection(sock=connection, limit=wire.MAX_LINE)
    except OSError:
        return False
    with contextlib.closing(way):
        first = await _begun(reader, way)
        if not first:
            return False
        writer(first)
        if overruled:
            writer(
                wire.line(
                    events.Warned(
                        title="Settings of the command line were left out: the engine runs already.",
                        advice="Change them on the page Settings.",
                        at=time.time(),
                    )
                )
            )
        desk.sit(Followed(way))
        last = await _pass_on(reader, writer, desk)
    if not desk.stopped and not isinstance(last, events.EngineStopped | events.EngineFailed):
        failed = events.EngineFailed(title="The engine that ran without a window has ended.", advice="", at=time.time())
        writer(wire.line(failed))
    return True


async def _begun(reader: asyncio.StreamReader, way: asyncio.StreamWriter) -> bytes:
    """The State of the engine that is followed from now on; empty where it refuses, ends, or says nothing for long."""
    way.write(wire.line(Follow(id="follow")))
    try:
        async with asyncio.timeout(control.KNOCK):
            line = await reader.readline()
    except (OSError, ValueError):  # a TimeoutError is one; a line without an end is the other
        return b""
    return line if line.endswith(b"\n") and isinstance(wire.event(line), Snapshot) else b""


async def _pass_on(reader: asyncio.StreamReader, writer: Writer, desk: Desk) -> AnyEvent | None:
    """Until the connection ends, or the window is gone; the last that was told."""
    last = b""
    with contextlib.suppress(ConnectionError, ValueError):  # the latter: a line without an end
        while (line := await reader.readline()).endswith(b"\n") and not desk.stopped:  # a killed engine leaves half of one
            writer(line)
            last = line
            while writer.waiting() > MOST_AHEAD and not desk.stopped:
                await asyncio.sleep(LOOK_SECONDS)
    return wire.event(last) if last else None


class Followed:
    """The engine that is followed, at the desk of the window's own process: what is asked goes there, but for a stop."""

    def __init__(self, way: asyncio.StreamWriter) -> None:
        self._way = way

    async def obey(self, command: AnyCommand) -> tuple[AnyEvent, ...]:
        """Pass it on; the answer comes among what is told. A window that stops its engine only leaves this one."""
        if isinstance(command, Stop):
            self.stop()
            return (events.CommandDone(id=command.id),)
        self._way.write(wire.line(command))
        return ()

    def stop(self) -> None:
        """Leave."""
        self._way.close()
