"""Calls of peers and pulls of ours, over streams that Python reads and writes itself, piece by piece.

p2pd can collect the whole message of a call by itself. But it allocates at once what a peer declares, keeps it while the peer is
silent, and does so for any number of streams. So p2pd only passes the bytes of a stream on, and each stream counts for its peer
here before the first of them is read. The messages are those of p2pd: peers see no difference.
"""

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from waggle.core.peer_id import short_id
from waggle.network.limits.address_ranges import RELAYED
from waggle.network.limits.rate_limits import RateLimit, of_largest_holder

MOST_OPEN, MOST_OF_PEER = 256, 32  # streams at a time, of all peers and of one; p2pd takes about 60 kB for each
EXCESS_RATE, EXCESS_BURST = 4.0, 256.0  # streams of a peer that were not served, a second and at once, before it is hung up on
REQUEST_S = 5.0  # for the bytes of a call, which are few
ANSWER_S = 60.0  # for the answer to be read
MOST_UNSENT = 16 * 1024 * 1024  # bytes of all answers that callers have not read yet
PIECE = 64 * 1024  # bytes of an answer that are written at a time: as many wait in Python and in p2pd
FRAME = 256  # bytes around the content of a call or an answer, at most: p2pd's own fields
LENGTH_BYTES = 5  # of the length in front of a message

log = logging.getLogger(__name__)


class OpenStreams:
    """The streams that peers hold open here. `source` gives a peer's address range, `hang_up` ends all connections to a peer."""

    def __init__(self, source: Callable[[bytes], str | None], hang_up: Callable[[bytes], Awaitable[None]]) -> None:
        self._source, self._hang_up = source, hang_up
        self._open: dict[asyncio.StreamWriter, bytes] = {}  # oldest first
        self._unsent = Counter[asyncio.StreamWriter]()  # bytes of answers
        self._excess = RateLimit(EXCESS_RATE, EXCESS_BURST)
        self._leaving: dict[bytes, asyncio.Future[None]] = {}  # by peer id

    def admit(self, peer_id: bytes, writer: asyncio.StreamWriter) -> bool:
        """Whether this stream is served. If all places are taken, the party that holds most loses its oldest one."""
        if list(self._open.values()).count(peer_id) >= MOST_OF_PEER:
            self.count_excess(peer_id)
            return False
        self._open[writer] = peer_id
        if len(self._open) > MOST_OPEN:
            oldest, *_ = of_largest_holder((each, self._party(holder), 1) for each, holder in self._open.items())
            self._end(oldest)
        return True

    def hold(self, writer: asyncio.StreamWriter, size: int) -> None:
        """Count an answer that is to be written. If callers leave too much unread, the party that does most loses its oldest."""
        if writer in self._open:  # else it lost its place while the answer was made
            self._unsent[writer] = size
        while self._unsent.total() > MOST_UNSENT:
            unread = ((each, self._party(self._open[each]), unsent) for each, unsent in self._unsent.items())
            self._end(of_largest_holder(unread)[0])

    def sent(self, writer: asyncio.StreamWriter, size: int) -> None:
        """Note that so many bytes of an answer are written."""
        self._unsent -= Counter({writer: size})  # drops the entry at 0

    def remove(self, writer: asyncio.StreamWriter) -> None:
        """Free the place of a stream that has ended."""
        self._open.pop(writer, None)
        self._unsent.pop(writer, None)

    def _end(self, writer: asyncio.StreamWriter) -> None:
        self.remove(writer)
        writer.transport.abort()

    def count_excess(self, peer_id: bytes) -> None:
        """Count a stream that was not served, and hang up on a peer with too many: each costs p2pd and us time."""
        if self._excess.allows(peer_id) or peer_id in self._leaving:
            return
        log.debug("peer %s opens too many streams: it is hung up on", short_id(peer_id))
        self._leaving[peer_id] = task = asyncio.ensure_future(self._hang_up(peer_id))
        task.add_done_callback(lambda _task: self._leaving.pop(peer_id))

    def _party(self, peer_id: bytes) -> bytes:
        source = self._source(peer_id)
        return peer_id if source in (None, "", RELAYED) else source.encode()


async def serve(
    messages: Any, streams: OpenStreams, answer: Callable[[Any, bytes], Awaitable[bytes]], longest: int,
    info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
) -> None:  # fmt: skip
    """Serve one stream, which carries one call of at most `longest` bytes. Nothing that a peer sends raises.

    `messages` are p2pd's; `answer` gets the caller, as hivemind writes it, and the content of the call. What it raises is sent to
    the caller.
    """
    peer_id = info.peer_id.to_bytes()
    if not streams.admit(peer_id, writer):
        writer.transport.abort()
        return
    unsent = bytearray()
    try:
        async with asyncio.timeout(REQUEST_S):
            if (length := await _read_length(reader)) > longest + FRAME:
                raise ValueError("too long a message")
            message = await reader.readexactly(length)
        unsent += await _respond(messages, answer, info.peer_id, message)
        streams.hold(writer, len(unsent))
        async with asyncio.timeout(ANSWER_S):
            await _write(writer, unsent, lambda size: streams.sent(writer, size))
            # The caller closes the stream when it has the answer. If we close it first, p2pd may reset it, and the rest is lost.
            await reader.read(1)
        writer.transport.abort()
    except (
        OSError,
        EOFError,
        ValueError,
        messages.unreadable,
    ):  # it left, is silent or malformed
        streams.count_excess(peer_id)
        writer.transport.abort()
    finally:
        streams.remove(writer)
        unsent.clear()  # asyncio keeps the error of a connection, and with it this frame, until the next garbage collection


async def _respond(messages: Any, answer: Callable[[Any, bytes], Awaitable[bytes]], peer: Any, message: bytes) -> bytes:
    """What goes to the caller, framed: the answer, or why there is none, which hivemind sends for every error too."""
    call = messages.Request.FromString(message)
    if len(call.callId) != len(uuid.uuid4().bytes) or not call.HasField("callUnary"):
        raise ValueError("not a call")
    try:
        result = messages.Answer(response=await answer(peer, call.callUnary.data))
    except Exception as error:  # noqa: BLE001 - as in hivemind: the caller gets it
        result = messages.Answer(error=repr(error).encode())
    return _framed(messages.Request(callId=call.callId, unaryResponse=result).SerializeToString())


async def pull(
    messages: Any, control: Any, peer: Any, name: str, content: bytes, longest: int, meter: Callable[[int], None]
) -> bytes:
    """Call a peer, and read the content of its answer, of at most `longest` bytes. `meter` gets the size of each piece of it.

    Raises what hivemind raises for a peer that is away or answers with an error, EOFError and ValueError.
    """
    reader, writer = await control.daemon_connector.open_connection()
    try:
        opening = messages.Opening(peer=peer.to_bytes(), proto=[name])
        await messages.write(writer, messages.Command(type=messages.Command.STREAM_OPEN, streamOpen=opening))
        opened = messages.Result()
        await messages.read(reader, opened)
        messages.raise_if_failed(opened)
        call = messages.Call(peer=peer.to_bytes(), proto=name, data=content)
        await _write(writer, bytearray(_framed(messages.Request(callId=uuid.uuid4().bytes, callUnary=call).SerializeToString())))
        length = await _read_length(reader)
        if length > longest + FRAME:
            raise ValueError("too long an answer")
        received = bytearray()
        while len(received) < length:
            piece = await reader.read(min(PIECE, length - len(received)))
            if not piece:
                raise EOFError("an answer that ends early")
            meter(len(piece))
            received += piece
    finally:
        writer.transport.abort()
    result = messages.Request.FromString(bytes(received)).unaryResponse
    if not result.HasField("response"):
        raise messages.Refusal(result.error.decode(errors="ignore"))
    return bytes(result.response)


async def _write(writer: asyncio.StreamWriter, unsent: bytearray, sent: Callable[[int], None] = lambda size: None) -> None:
    """Write one piece at a time, so that p2pd has no more of it in memory, and keep only what is not written yet."""
    while unsent:
        size = min(PIECE, len(unsent))
        writer.write(unsent[:size])
        del unsent[:size]
        await writer.drain()
        sent(size)


async def _read_length(reader: asyncio.StreamReader) -> int:
    """The length in front of a message. Raises ValueError for one that is no such number."""
    length = 0
    for position in range(LENGTH_BYTES):
        (byte,) = await reader.readexactly(1)
        length |= (byte & 127) << 7 * position
        if byte < 128:
            return length
    raise ValueError("too long a number")


def _framed(message: bytes) -> bytes:
    """The message with its length in front."""
    length, rest = bytearray(), len(message)
    while rest > 127:
        length.append(rest & 127 | 128)
        rest >>= 7
    return bytes((*length, rest)) + message
