"""The network process: iroh, its connections and calls. `python -m waggle.network.transport.iroh.child`, started by `process.py`.

It gets frames over its standard input, and ends with it. It has the node's key, no files and no other secrets.
"""

import asyncio
import os
import sys
import threading
from typing import Any

from waggle.network.transport.iroh import frames
from waggle.network.transport.iroh.frames import (
    AnswerPiece,
    Call,
    Cancel,
    CannotStart,
    Connect,
    Disconnect,
    Frame,
    ListPeers,
    Peers,
    Ready,
    Refuse,
    Start,
)
from waggle.network.transport.iroh.memory_limit import limit_memory
from waggle.network.transport.iroh.router_filter import silence_router

MOST_UNSENT = 16 * 1024 * 1024  # bytes that the parent has not read; then it has stopped reading, and this process ends


class Output:
    """Writes frames to the parent, from a thread, so that no call waits for it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unsent = bytearray()
        self._changed = threading.Condition()
        threading.Thread(target=self._write, name="frames to the parent", daemon=True).start()

    def send(self, frame: Frame) -> None:
        """Queue a frame."""
        with self._changed:
            self._unsent += frames.encode(frame)
            if len(self._unsent) > MOST_UNSENT:
                os._exit(3)
            self._changed.notify()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._unsent)
                content, self._unsent = self._unsent, bytearray()
            while content:
                try:
                    written = os.write(self._descriptor, content)
                except OSError:  # the parent has ended
                    os._exit(0)
                del content[:written]


async def _input(descriptor: int) -> asyncio.StreamReader:
    """The frames of the parent. A thread reads them on Windows, where asyncio cannot wait for this pipe."""
    reader, loop = asyncio.StreamReader(limit=4 * frames.MAX_FRAME), asyncio.get_running_loop()
    if sys.platform != "win32":
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0))
        return reader

    def pump() -> None:
        while content := os.read(descriptor, frames.MAX_FRAME):
            loop.call_soon_threadsafe(reader.feed_data, content)
        loop.call_soon_threadsafe(reader.feed_eof)

    threading.Thread(target=pump, name="frames of the parent", daemon=True).start()
    return reader


async def main() -> None:
    """Run until the parent closes the pipe."""
    reader, output = await _input(sys.stdin.fileno()), Output(sys.stdout.fileno())
    start = await frames.read(reader, frames.to_child)
    if not isinstance(start, Start):
        return
    # Before iroh: its threads inherit the filter, and its memory counts.
    limited = limit_memory(start.memory_bytes)
    silent = not start.ask_router and silence_router()
    from iroh import IrohError

    from waggle.network.transport.iroh import binding
    from waggle.network.transport.iroh.calls import Calls
    from waggle.network.transport.iroh.connections import Connections

    try:
        endpoint = await binding.bind(start.key, start.sockets)
    except IrohError as error:
        output.send(CannotStart(error.message()[:300]))
        await asyncio.sleep(1)  # for the thread that writes
        return
    calls = Calls(output.send)
    connections = Connections(endpoint, calls.serve)
    calls.use(connections)
    connections.spawn(connections.accept())
    peer_id = binding.peer_id_of(endpoint)
    output.send(Ready(peer_id, tuple(endpoint.bound_sockets()), limited, silent))
    await _obey(reader, calls, connections, output)
    await endpoint.close()


async def _obey(reader: asyncio.StreamReader, calls: Any, connections: Any, output: Output) -> None:
    while (frame := await frames.read(reader, frames.to_child)) is not None:
        match frame:
            case Call() | Connect():
                calls.start(frame)
            case Cancel():
                calls.cancel(frame.number)
            case AnswerPiece():
                calls.answer(frame)
            case Refuse():
                calls.refuse(frame.number)
            case Disconnect():
                connections.disconnect(frame.peer_id)
            case ListPeers():
                output.send(Peers(frame.number, connections.peers(), dict(connections.counts)))


if __name__ == "__main__":
    asyncio.run(main())
    os._exit(0)  # uniffi's threads do not end by themselves
