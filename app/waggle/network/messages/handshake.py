"""The handshake: a node's version, charter and newest announcement, which it gives to any peer that asks.

The message itself has no version, so that nodes of different protocols can still find out who must update. Because peers give
their announcements themselves, a node keeps its peers even if an attacker fills the directory with made-up names.
"""

from typing import Annotated, Protocol

import msgspec

from waggle import __version__
from waggle.core.errors import UNREADABLE, BadRecord
from waggle.core.message import NOTHING, Message
from waggle.network.messages import announcement
from waggle.network.messages.faults import Fault
from waggle.tasks.charter import PROTOCOL

MAX_BYTES = 1024


Version = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[0-9A-Za-z.+-]*\Z")]
OURS = __version__[:64]


class Handshake(msgspec.Struct, frozen=True, array_like=True):
    """Later versions may append fields. Only here and in a gateway's Welcome are unknown fields ignored."""

    protocol: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    version: Version
    charter: announcement.Digest
    announced: Annotated[bytes, msgspec.Meta(max_length=announcement.MAX_BYTES)] = b""  # signed; empty: nothing is announced


_decoder = msgspec.msgpack.Decoder(Handshake)


def write(charter: bytes, announced: bytes) -> bytes:
    """Our own handshake."""
    return msgspec.msgpack.encode(Handshake(PROTOCOL, OURS, charter, announced))


def read(blob: bytes) -> Handshake:
    """A peer's handshake; raises BadRecord only."""
    if not 0 < len(blob) <= MAX_BYTES:
        raise BadRecord(Fault.WRONG_HANDSHAKE_SIZE)
    try:
        return _decoder.decode(blob)
    except UNREADABLE as error:  # not the agreed form
        raise BadRecord(Fault.MALFORMED_HANDSHAKE) from error


class VersionInfo(Protocol):
    """What a node runs, as its handshake or a gateway's Welcome says."""

    @property
    def protocol(self) -> int: ...
    @property
    def version(self) -> str: ...
    @property
    def charter(self) -> bytes: ...


def refusal(theirs: VersionInfo, charter: bytes) -> Message:
    """Why we cannot train together, and which side must act; empty if we can."""
    waggle = f"Waggle {theirs.version}" if theirs.version else Message("another Waggle")
    if theirs.protocol > PROTOCOL:
        return Message("runs %1, which is newer: update this Waggle to train with it", waggle)
    if theirs.protocol < PROTOCOL:
        return Message("runs %1, which is older: it must be updated to train with this one", waggle)
    if theirs.charter != charter:
        digest = theirs.charter.hex()[:8]
        return Message("trains under another charter (%1): one of the two must join by the other's invite", digest)
    return NOTHING
