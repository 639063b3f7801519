"""What a node and its network process say to each other: length-prefixed msgpack over the child's standard input and output.

Every frame has a bounded size, and payloads travel in pieces. Neither side reads ahead of what the other can use: an answer's
pieces behind the first one are sent only as the child gives `Credit` for them.
"""

import asyncio
from typing import Annotated, TypeVar

import msgspec

from waggle.core.errors import UNREADABLE
from waggle.core.peer_id import PEER_ID_BYTES

MAX_PIECE = 64 * 1024
MAX_FRAME = MAX_PIECE + 4096
FIRST_PIECE = 16 * 1024  # of an answer: many are not longer, and so much waits for everybody who asks and does not read
PIECES_AHEAD = 8  # of a long answer, sent to the child before it asks for more
LENGTH_BYTES = 4
LONGEST_REQUEST = 8 * 1024
LONGEST_HANDLER = 64
MOST_SOCKETS, LONGEST_SOCKET = 4, 64  # of one peer; characters of one
MOST_NAMED = 20  # peers whose addresses travel with one answer

PeerId = Annotated[bytes, msgspec.Meta(min_length=PEER_ID_BYTES, max_length=PEER_ID_BYTES)]
Socket = Annotated[str, msgspec.Meta(max_length=LONGEST_SOCKET)]  # "192.0.2.1:4001" or "[2001:db8::1]:4001"
Sockets = Annotated[tuple[Socket, ...], msgspec.Meta(max_length=MOST_SOCKETS)]
Request = Annotated[bytes, msgspec.Meta(max_length=LONGEST_REQUEST)]
Handler = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_HANDLER)]


class Frame(msgspec.Struct, frozen=True, tag=True, array_like=True, forbid_unknown_fields=True):
    """Any frame. `number` is that of a call: the parent counts its own calls, the child those of peers."""


class Start(Frame, frozen=True):
    """The first frame to the child. `key` is the 32-byte Ed25519 seed of the node's identity."""

    key: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
    sockets: tuple[Socket, ...]
    memory_bytes: int
    ask_router: bool


class Call(Frame, frozen=True):
    """Call a peer. `dial_s` bounds how long the call waits for a connection; the dial itself may go on longer."""

    number: int
    peer_id: PeerId
    handler: Handler
    request: Request
    seconds: float
    dial_s: float
    longest: int  # bytes of an answer


class Connect(Frame, frozen=True):
    """Dial a peer at these sockets, even if it was away just now."""

    number: int
    peer_id: PeerId
    sockets: Sockets
    seconds: float


class Cancel(Frame, frozen=True):
    number: int


class AnswerPiece(Frame, frozen=True):
    """A piece of our answer to a call. `named` are peers whose addresses travel with it; only the first piece has any."""

    number: int
    content: Annotated[bytes, msgspec.Meta(max_length=MAX_PIECE)]
    last: bool
    named: Annotated[tuple[PeerId, ...], msgspec.Meta(max_length=MOST_NAMED)] = ()


class Refuse(Frame, frozen=True):
    """Answer a call with a refusal, which has no reason."""

    number: int


class ListPeers(Frame, frozen=True):
    number: int


class Disconnect(Frame, frozen=True):
    """Close all connections of a peer."""

    peer_id: PeerId


class Ready(Frame, frozen=True):
    peer_id: PeerId
    sockets: tuple[Socket, ...]  # where this node listens
    memory_limited: bool  # whether the system enforces the limit; else the parent has to look
    router_silent: bool  # whether the system keeps iroh from asking the router


class CannotStart(Frame, frozen=True):
    reason: Annotated[str, msgspec.Meta(max_length=300)]


class ReplyPiece(Frame, frozen=True):
    """A piece of a peer's answer to our call."""

    number: int
    content: Annotated[bytes, msgspec.Meta(max_length=MAX_PIECE)]
    last: bool


class Failed(Frame, frozen=True):
    """Our call failed. The reason never quotes a stranger."""

    number: int
    reason: Annotated[str, msgspec.Meta(max_length=100)]


class IncomingCall(Frame, frozen=True):
    number: int
    peer_id: PeerId
    socket: Socket
    handler: Handler
    request: Request


class Withdrawn(Frame, frozen=True):
    """The peer does not want its answer any more, or is gone."""

    number: int


class Credit(Frame, frozen=True):
    """So many more pieces of our answer have room."""

    number: int
    pieces: int


class Peer(msgspec.Struct, frozen=True, array_like=True):
    peer_id: PeerId
    socket: Socket
    rtt_ms: int


class Peers(Frame, frozen=True):
    """Who is connected, and how often things happened: for the log and for measurements."""

    number: int
    peers: tuple[Peer, ...]
    counts: dict[str, int]


ToChild = Start | Call | Connect | Cancel | AnswerPiece | Refuse | ListPeers | Disconnect
ToParent = Ready | CannotStart | ReplyPiece | Failed | IncomingCall | Withdrawn | Credit | Peers
to_child = msgspec.msgpack.Decoder(ToChild)
to_parent = msgspec.msgpack.Decoder(ToParent)
Kind = TypeVar("Kind")


class BadFrame(Exception):
    """The other side sent something that is no frame. The process has to end."""


def encode(frame: Frame) -> bytes:
    """The frame behind its length. Raises ValueError if it is too long."""
    content = msgspec.msgpack.encode(frame)
    if len(content) > MAX_FRAME:
        raise ValueError("too long a frame")
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


async def read(reader: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[Kind]) -> Kind | None:
    """The next frame; None at the end of the pipe. Raises BadFrame."""
    try:
        size = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        if size > MAX_FRAME:
            raise BadFrame("too long a frame")
        content = await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    try:
        return decoder.decode(content)
    except UNREADABLE as error:
        raise BadFrame("an unreadable frame") from error
