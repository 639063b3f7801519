"""The calls of one endpoint, in both directions: each is one stream. Passes them on to the parent in frames."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

from iroh import IrohError

from waggle.network.transport.iroh import wire
from waggle.network.transport.iroh.admission import range_of
from waggle.network.transport.iroh.binding import whole
from waggle.network.transport.iroh.connections import Away, Connection, Connections
from waggle.network.transport.iroh.frames import (
    LONGEST_REQUEST,
    MAX_PIECE,
    PIECES_AHEAD,
    AnswerPiece,
    Call,
    Connect,
    Credit,
    Failed,
    Frame,
    IncomingCall,
    ReplyPiece,
    Withdrawn,
)
from waggle.network.transport.iroh.large_replies import LargeReplies

REQUEST_S, ANSWER_S = 5.0, 30.0  # for a peer to send a request, and to receive our whole answer
LONGEST_RAW = LONGEST_REQUEST + 128


class Refused(Exception):
    """The parent does not answer this call."""


class Calls:
    """Belongs to one event loop. `send` passes a frame to the parent."""

    def __init__(self, send: Callable[[Frame], None]) -> None:
        self._send = send
        self._ours: dict[int, asyncio.Task[Any]] = {}
        self._incoming: dict[int, asyncio.Queue[AnswerPiece | None]] = {}
        self._number = 0
        self._large = LargeReplies()
        self.connections: Connections  # set by `use`, because each needs the other

    def use(self, connections: Connections) -> None:
        self.connections = connections

    def start(self, frame: Call | Connect) -> None:
        """Make a call of ours, or a connection."""
        work = self._call(frame) if isinstance(frame, Call) else self._connect(frame)
        task = self._ours[frame.number] = self.connections.spawn(self._reported(frame.number, frame.seconds, work))
        task.add_done_callback(lambda _task: self._ours.pop(frame.number, None))

    def cancel(self, number: int) -> None:
        """End a call of ours. Its stream is closed, even if it is only being opened."""
        if task := self._ours.get(number):
            task.cancel()

    def answer(self, piece: AnswerPiece) -> None:
        """Pass on a piece of an answer. Late ones are dropped."""
        if queue := self._incoming.get(piece.number):
            queue.put_nowait(piece)

    def refuse(self, number: int) -> None:
        if queue := self._incoming.get(number):
            queue.put_nowait(None)

    async def _reported(self, number: int, seconds: float, work: Any) -> None:
        """Do the work, and report a failure with a reason of our own."""
        reason = "it took too long"
        try:
            async with asyncio.timeout(seconds):
                await work
                return
        except Away as error:
            reason = str(error)
        except IrohError as error:
            reason = error.kind().name.lower()
        except wire.Malformed:
            reason = "a malformed answer"
        except TimeoutError:
            pass
        self.connections.counts["calls failed"] += 1
        self._send(Failed(number, reason))

    async def _connect(self, frame: Connect) -> None:
        self.connections.hint(frame.peer_id, tuple(filter(wire.is_socket, frame.sockets)))
        await self.connections.reach(frame.peer_id, frame.seconds, insist=True)
        self._send(ReplyPiece(frame.number, b"", last=True))

    async def _call(self, frame: Call) -> None:
        connection = await self.connections.reach(frame.peer_id, frame.dial_s)
        work = asyncio.ensure_future(self._exchange(frame, connection))
        silence = asyncio.ensure_future(self.connections.watch(connection))
        try:
            await asyncio.wait({work, silence}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self.connections.give_up(connection)
                raise Away("it is silent")
            await work
        finally:
            silence.cancel()
            work.cancel()

    async def _exchange(self, frame: Call, connection: Connection) -> None:
        stream = await whole(connection.link.open_bi())
        sender, receiver = stream.send(), stream.recv()
        try:
            await sender.write_all(wire.request(frame.handler, frame.request))
            await sender.finish()
            head = await receiver.read_exact(wire.HEAD_BYTES)
            size = wire.hints_size(head)
            hints = wire.read_hints(await receiver.read_exact(size) if size else b"")
            if head[:1] == wire.REFUSED:
                raise Away("it refuses")
            for peer_id, sockets in hints.items():
                self.connections.hint(peer_id, sockets)
            remaining = frame.longest
            while piece := await receiver.read(MAX_PIECE):
                remaining -= len(piece)
                if remaining < 0:
                    raise wire.Malformed
                self._send(ReplyPiece(frame.number, piece, last=False))
        except BaseException:
            # The parent waits for nothing more; the peer learns it too, and sends no more.
            self.connections.spawn(_abandon(sender, receiver))
            raise
        self._send(ReplyPiece(frame.number, b"", last=True))

    async def serve(self, connection: Connection, stream: Any) -> None:
        """Answer a call of a peer."""
        sender, receiver = stream.send(), stream.recv()
        self._number += 1
        number, queue = self._number, asyncio.Queue[AnswerPiece | None]()
        try:
            async with asyncio.timeout(REQUEST_S):
                handler, content = wire.read_request(await receiver.read_to_end(LONGEST_RAW))
            self._incoming[number] = queue
            self._send(IncomingCall(number, connection.peer_id, connection.socket, handler, content))
            async with asyncio.timeout(ANSWER_S):
                await self._send_answer(connection, sender, queue)
            self.connections.counts["answered"] += 1
        except (IrohError, wire.Malformed, Refused, TimeoutError) as error:
            self.connections.counts[f"not answered: {type(error).__name__}"] += 1
            if isinstance(error, Refused):
                with suppress(IrohError):
                    await sender.write_all(wire.REFUSED + b"\0\0")
                    await sender.finish()
                    return
            await _abandon(sender, receiver)
        finally:
            if self._incoming.pop(number, None) is not None:
                self._send(Withdrawn(number))

    async def _send_answer(self, connection: Connection, sender: Any, queue: "asyncio.Queue[AnswerPiece | None]") -> None:
        async with AsyncExitStack() as place:
            sent = 0
            while True:
                piece = await queue.get()
                if piece is None:
                    raise Refused
                head = b""
                if not sent:
                    sockets = ((peer_id, self.connections.sockets_of(peer_id)) for peer_id in piece.named)
                    head = wire.answer_head(wire.bounded(sockets))
                await sender.write_all(head + piece.content)
                sent += 1
                if piece.last:
                    await sender.finish()
                    await sender.stopped()  # until all of it has arrived: a stream that is dropped before loses it
                    return
                if sent == 1:
                    await place.enter_async_context(self._large.place(range_of(connection.socket)))
                self._send(Credit(piece.number, PIECES_AHEAD if sent == 1 else 1))


async def _abandon(sender: Any, receiver: Any) -> None:
    """Tell the peer that this stream is over."""
    for end in (sender.reset(1), receiver.stop(1)):
        with suppress(IrohError):
            await end
