"""The newest messages that left this computer, byte for byte, so that the person can read them. In memory only."""

import json
from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec
import zstandard

from waggle.network.identity.keys import SIGNATURE_BYTES
from waggle.network.messages import rollout_record
from waggle.network.messages.rollout_record import MAX_RAW
from waggle.tasks.question_file.packed import piece_hash

MAX_MESSAGES = 10
MessageKind = Literal["groups", "announcement", "greeting", "charter", "sheet", "questions"]


class OutgoingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """`content` is the bytes that went out; `to` is a peer id, or empty: to the directory, or to any peer that asks."""

    at: float
    kind: MessageKind
    to: bytes
    content: bytes


class OutboxLog:
    """The last few messages, newest first. Belongs to the loop's thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._messages: deque[OutgoingMessage] = deque(maxlen=MAX_MESSAGES)

    def add(self, kind: MessageKind, content: bytes, to: bytes = b"") -> bytes:
        """Remember a message that goes out and return its content. A repeated message counts once, as the newer one."""
        if not content:
            return content
        message = OutgoingMessage(at=self._clock(), kind=kind, to=to, content=content)
        repeated = next(
            (earlier for earlier in self._messages if (earlier.kind, earlier.to, earlier.content) == (kind, to, content)), None
        )
        if repeated is not None:
            self._messages.remove(repeated)
        self._messages.appendleft(message)
        return content

    def newest(self) -> tuple[OutgoingMessage, ...]:
        """The messages, newest first."""
        return tuple(self._messages)


def readable(message: OutgoingMessage) -> str:
    """Every value of a message as it was sent, as JSON with bytes in hex."""
    match message.kind:
        case "charter":
            return message.content.decode("utf-8", "replace")
        case "groups":
            return _json(_unpacked(message.content))
        case "announcement" | "sheet":  # signed: the signature follows what it signs
            body, signature = message.content[:-SIGNATURE_BYTES], message.content[-SIGNATURE_BYTES:]
            packed = body if message.kind == "announcement" else _unpacked(body)
            return f"{_json(packed)}\n{signature.hex()}"
        case "greeting":
            return _json(message.content)
        case "questions":  # a part of a compressed file: it cannot be read without the others
            return f"{len(message.content):,} bytes of the swarm's own questions, sha256 {piece_hash(message.content)}"


def _unpacked(frame: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(frame, max_output_size=MAX_RAW)


def written_by_hand(message: OutgoingMessage) -> bool:
    """Whether the message contains an answer that a person wrote."""
    return message.kind == "groups" and rollout_record.written_by_hand(message.content)


def _json(packed: bytes) -> str:
    return json.dumps(msgspec.msgpack.decode(packed), ensure_ascii=False, indent=1, default=_hex)


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
