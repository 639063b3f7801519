"""The greeting: what a node runs, under which charter, and its newest announcement, told to whoever asks.

It has no version of its own, so that nodes of different protocols can still tell each other who must update. Asking a peer
itself for its announcement is also what keeps a node in company when somebody fills the directory with strangers.
"""

from typing import Annotated, Protocol

import msgspec

from waggle import __version__
from waggle.core.errors import UNREADABLE, BadRecord
from waggle.network.messages import announcement
from waggle.tasks.charter import PROTOCOL

MAX_BYTES = 1024


Version = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[0-9A-Za-z.+-]*\Z")]
OURS = __version__[:64]


class Handshake(msgspec.Struct, frozen=True, array_like=True):
    """Later versions may add fields behind these: unknown ones are passed over, here and in a gateway's welcome alone."""

    protocol: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    version: Version
    charter: announcement.Digest
    announced: Annotated[bytes, msgspec.Meta(max_length=announcement.MAX_BYTES)] = b""  # signed; empty: nothing to offer


_decoder = msgspec.msgpack.Decoder(Handshake)


def write(charter: bytes, announced: bytes) -> bytes:
    """Our own greeting."""
    return msgspec.msgpack.encode(Handshake(PROTOCOL, OURS, charter, announced))


def read(blob: bytes) -> Handshake:
    """A peer's greeting; raises BadRecord, and nothing else."""
    if not 0 < len(blob) <= MAX_BYTES:
        raise BadRecord("greeting size")
    try:
        return _decoder.decode(blob)
    except UNREADABLE as error:  # not the form agreed on: refused
        raise BadRecord("malformed greeting") from error


class VersionInfo(Protocol):
    """What a node says of itself first: in its greeting, or in a gateway's welcome."""

    @property
    def protocol(self) -> int: ...
    @property
    def version(self) -> str: ...
    @property
    def charter(self) -> bytes: ...


def refusal(theirs: VersionInfo, charter: bytes) -> str:
    """Why we cannot train together, and which side must do something; empty where nothing is in the way."""
    waggle = f"Waggle {theirs.version}" if theirs.version else "another Waggle"
    if theirs.protocol > PROTOCOL:
        return f"runs {waggle}, which is newer: update this Waggle to train with it"
    if theirs.protocol < PROTOCOL:
        return f"runs {waggle}, which is older: it must be updated to train with this one"
    if theirs.charter != charter:
        return f"trains under another charter ({theirs.charter.hex()[:8]}): one of the two must join by the other's invite"
    return ""
