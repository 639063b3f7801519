"""What a light client and its gateway send each other, as msgpack frames of a WebSocket."""

from typing import Annotated

import msgspec

from waggle.core.peer_id import PEER_ID_BYTES
from waggle.network.identity.keys import SIGNATURE_BYTES
from waggle.network.identity.membership import CERTIFICATE_BYTES
from waggle.network.messages import announcement as announcements
from waggle.network.messages import handshake
from waggle.network.messages.rollout_record import MAX_BLOB

DOMAIN = b"waggle/gateway/1\0"


PROOF = b"waggle/gateway/proof/1\0"  # of the gateway, over the signature in the client's first word


NONCE_BYTES = 32


MAX_LISTED = 256  # announcements in one answer


MAX_MESSAGE = MAX_BLOB + 1024  # bytes, of a client that has greeted


PeerId = Annotated[bytes, msgspec.Meta(min_length=PEER_ID_BYTES, max_length=PEER_ID_BYTES)]


Digest = announcements.Digest


Certificate = Annotated[bytes, msgspec.Meta(max_length=CERTIFICATE_BYTES)]


class Welcome(msgspec.Struct, frozen=True, array_like=True):
    """The gateway's first word: who it is, for which charter, and what to sign. Later versions may add fields behind these."""

    protocol: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    peer_id: PeerId
    charter: Digest
    nonce: Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    version: handshake.Version = ""
    certificate: Certificate = b""  # of a private swarm


class Hello(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The client's first word. `signature` is over gateway | nonce | own nonce: it opens that one door, once.

    So does the gateway's proof, where the client says a nonce of its own. Older gateways know none.
    """

    peer_id: PeerId
    certificate: Certificate
    signature: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
    nonce: Annotated[bytes, msgspec.Meta(max_length=NONCE_BYTES)] = b""


class DirectoryRequest(msgspec.Struct, frozen=True, array_like=True, tag="d", forbid_unknown_fields=True):
    """Who announces what?"""

    id: int


class AnnounceRequest(msgspec.Struct, frozen=True, array_like=True, tag="a", forbid_unknown_fields=True):
    """Put this into the directory for me."""

    id: int
    signed: Annotated[bytes, msgspec.Meta(max_length=announcements.MAX_BYTES)]


class UploadRequest(msgspec.Struct, frozen=True, array_like=True, tag="l", forbid_unknown_fields=True):
    """Give this out for me."""

    id: int
    blob: Annotated[bytes, msgspec.Meta(min_length=1, max_length=MAX_BLOB)]


class PullRequest(msgspec.Struct, frozen=True, array_like=True, tag="p", forbid_unknown_fields=True):
    """Fetch me what this peer calls so."""

    id: int
    peer_id: PeerId
    sha256: Digest


Request = DirectoryRequest | AnnounceRequest | UploadRequest | PullRequest


class DirectoryEntry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One entry of the directory, as its origin signed it."""

    peer_id: PeerId
    signed: Annotated[bytes, msgspec.Meta(max_length=announcements.MAX_BYTES)]


class Response(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """To the question of the same id; what was not asked for stays empty."""

    id: int
    blob: Annotated[bytes, msgspec.Meta(max_length=MAX_BLOB)] = b""
    listed: Annotated[tuple[DirectoryEntry, ...], msgspec.Meta(max_length=MAX_LISTED)] = ()
