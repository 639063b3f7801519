"""The parent's side of the network process: starts it, calls peers through it, and answers theirs."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import waggle
from transport_gates.iroh_transport import frames
from transport_gates.iroh_transport.frames import (
    FIRST_PIECE,
    MAX_PIECE,
    AnswerPiece,
    Call,
    Cancel,
    CannotStart,
    Connect,
    Credit,
    Disconnect,
    Failed,
    Frame,
    IncomingCall,
    ListPeers,
    Peers,
    Ready,
    Refuse,
    ReplyPiece,
    Start,
    Withdrawn,
)
from waggle.core import paths
from waggle.core.errors import SwarmError
from waggle.core.system.process_memory import resident_bytes
from waggle.network.identity.keys import Identity
from waggle.network.transport.interface import PeerAway

MEMORY_BYTES = 160 * 1024 * 1024  # of private memory, of which the network process has 37 MiB at rest
START_S, CLOSE_S = 30.0, 2.0
DIAL_S = 0.4  # that a call waits for a connection, unless it says otherwise
LONGEST_ANSWER = 4 * 1024 * 1024
# The first backtrace of an error of Rust reads debug information, 50 MiB. glibc gives memory back only from few arenas.
SPARING = {"RUST_BACKTRACE": "0", "RUST_LIB_BACKTRACE": "0", "MALLOC_ARENA_MAX": "2"}
MODULE = "transport_gates.iroh_transport.child"
PLACES = (Path(waggle.__file__).parents[1], Path(__file__).parents[2])  # of Waggle and of that module


class Answer:
    """What a handler returns: the content, and peers that it names, whose addresses are to travel with it."""

    def __init__(self, content: bytes, named: Sequence[bytes] = ()) -> None:
        self.content, self.named = content, tuple(named)[: frames.MOST_NAMED]


Handler = Callable[[bytes, str, bytes], Awaitable[Answer | None]]  # peer id, its socket, request -> answer; None: refused


class NetworkProcess:
    """One network process. It is never started again: when it ends, another object takes its place."""

    def __init__(self, child: asyncio.subprocess.Process, ready: Ready) -> None:
        self.peer_id, self.sockets = ready.peer_id, ready.sockets
        self.handlers: dict[str, Handler] = {}
        self._child = child
        self._number = 0
        self._replies: dict[int, asyncio.Queue[ReplyPiece | Failed | Peers]] = {}
        self._credits: dict[int, asyncio.Semaphore] = {}
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._reading = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def memory(self) -> int:
        """Resident bytes of the process; 0 if it has ended."""
        return resident_bytes(self.pid)

    async def call(
        self,
        peer_id: bytes,
        handler: str,
        request: bytes,
        seconds: float,
        *,
        dial_s: float = DIAL_S,
        longest: int = LONGEST_ANSWER,
    ) -> bytes:
        """A peer's whole answer. Raises PeerAway."""
        self._number += 1
        call = Call(self._number, peer_id, handler, request, seconds, dial_s, longest)
        return b"".join([piece async for piece in self._pieces(call, seconds)])

    async def connect(self, peer_id: bytes, sockets: Sequence[str], seconds: float) -> None:
        """Connect to a peer at these socket addresses. Raises PeerAway."""
        self._number += 1
        frame = Connect(self._number, peer_id, tuple(sockets)[: frames.MOST_SOCKETS], seconds)
        async for _ in self._pieces(frame, seconds):
            pass

    async def peers(self) -> Peers:
        """Who is connected, and counts. Raises PeerAway."""
        self._number += 1
        queue = self._replies[self._number] = asyncio.Queue()
        try:
            self._send(ListPeers(self._number))
            async with asyncio.timeout(CLOSE_S):
                reply = await queue.get()
        except TimeoutError as error:
            raise PeerAway("the network process does not answer") from error
        finally:
            del self._replies[self._number]
        if not isinstance(reply, Peers):
            raise PeerAway("the network process ended")
        return reply

    def disconnect(self, peer_id: bytes) -> None:
        """Close all connections of a peer."""
        with suppress(PeerAway):
            self._send(Disconnect(peer_id))

    async def wait_until_exit(self) -> int:
        """Its exit code."""
        return await self._child.wait()

    def terminate(self) -> None:
        with suppress(ProcessLookupError):  # it has ended
            self._child.kill()

    async def close(self) -> None:
        """End the process, by force if it does not react."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._child.wait()
        except TimeoutError:
            self.terminate()
            await self._child.wait()
        await asyncio.wait({self._reading})

    async def _pieces(self, frame: Call | Connect, seconds: float) -> AsyncIterator[bytes]:
        queue = self._replies[frame.number] = asyncio.Queue()
        done = False
        try:
            async with asyncio.timeout(seconds + 1):  # the child keeps the deadline; this is for a child that does not
                self._send(frame)
                while True:
                    reply = await queue.get()
                    if not isinstance(reply, ReplyPiece):
                        done = True
                        raise PeerAway(reply.reason if isinstance(reply, Failed) else "no answer")
                    if reply.content:
                        yield reply.content
                    if reply.last:
                        done = True
                        return
        except TimeoutError as error:
            raise PeerAway("no answer in time") from error
        finally:
            del self._replies[frame.number]
            if not done:
                with suppress(PeerAway):
                    self._send(Cancel(frame.number))

    def _send(self, frame: Frame) -> None:
        if self._child.stdin is None or self._child.stdin.is_closing() or self._reading.done():
            raise PeerAway("the network process ended")
        self._child.stdin.write(frames.encode(frame))

    async def _read(self) -> None:
        assert self._child.stdout is not None
        try:
            while (frame := await frames.read(self._child.stdout, frames.to_parent)) is not None:
                self._receive(frame)
        except frames.BadFrame:
            pass  # it is broken, or taken over: it ends, and another one starts
        finally:
            self.terminate()
            for number, queue in list(self._replies.items()):
                queue.put_nowait(Failed(number, "the network process ended"))
            for task in list(self._serving.values()):
                task.cancel()

    def _receive(self, frame: frames.ToParent) -> None:
        match frame:
            case ReplyPiece() | Failed() | Peers():
                if queue := self._replies.get(frame.number):
                    queue.put_nowait(frame)
            case IncomingCall():
                task = self._serving[frame.number] = asyncio.create_task(self._serve(frame))
                task.add_done_callback(lambda _task: self._serving.pop(frame.number, None))
            case Withdrawn():
                if serving := self._serving.get(frame.number):
                    serving.cancel()
            case Credit():
                if credit := self._credits.get(frame.number):
                    for _ in range(frame.pieces):
                        credit.release()

    async def _serve(self, call: IncomingCall) -> None:
        handler = self.handlers.get(call.handler)
        answer: Answer | None = None
        with suppress(PeerAway):  # the process ends
            try:
                answer = await handler(call.peer_id, call.socket, call.request) if handler else None
            finally:
                if answer is None:
                    self._send(Refuse(call.number))
            if answer is not None:
                await self._answer(call.number, answer)

    async def _answer(self, number: int, answer: Answer) -> None:
        credit = self._credits[number] = asyncio.Semaphore(0)
        content, size = answer.content, len(answer.content)
        try:
            self._send(AnswerPiece(number, content[:FIRST_PIECE], size <= FIRST_PIECE, answer.named))
            for start in range(FIRST_PIECE, size, MAX_PIECE):
                await credit.acquire()
                self._send(AnswerPiece(number, content[start : start + MAX_PIECE], start + MAX_PIECE >= size))
        finally:
            del self._credits[number]


async def start_process(
    identity: Identity, sockets: Sequence[str], *, ask_router: bool = False, memory_bytes: int = MEMORY_BYTES
) -> NetworkProcess:
    """Start a network process that listens at these socket addresses. Raises SwarmError."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, PLACES)), **SPARING)
    child = await asyncio.create_subprocess_exec(
        *paths.module_command(MODULE), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment,
        limit=4 * frames.MAX_FRAME, creationflags=getattr(asyncio.subprocess, "CREATE_NO_WINDOW", 0),
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    key = identity.key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    try:
        async with asyncio.timeout(START_S):
            child.stdin.write(frames.encode(Start(key, tuple(sockets), memory_bytes, ask_router)))
            ready = await frames.read(child.stdout, frames.to_parent)
    except (TimeoutError, frames.BadFrame):
        ready = None
    except BaseException:
        child.kill()
        raise
    if isinstance(ready, Ready) and ready.peer_id == identity.peer_id:
        return NetworkProcess(child, ready)
    with suppress(ProcessLookupError):
        child.kill()
    await child.wait()
    reason = ready.reason if isinstance(ready, CannotStart) else ""
    raise SwarmError("The network process does not start.", f"Look at the page Help, or run `waggle doctor`. It says: {reason}")
