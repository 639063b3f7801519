"""The messages between a light client and its gateway: msgpack frames of a WebSocket."""

from typing import Annotated

import msgspec

from waggle.core.peer_id import PEER_ID_BYTES
from waggle.network.identity.keys import SIGNATURE_BYTES
from waggle.network.identity.membership import CERTIFICATE_BYTES
from waggle.network.messages import announcement as announcements
from waggle.network.messages import handshake
from waggle.network.messages.rollout_record import MAX_BLOB

DOMAIN = b"waggle/gateway/1\0"
PROOF = b"waggle/gateway/proof/1\0"  # the gateway signs the signature in the client's Hello with it
NONCE_BYTES = 32
MAX_LISTED = 256  # announcements in one response
MAX_MESSAGE = MAX_BLOB + 1024  # bytes, of a client after its Hello

PeerId = Annotated[bytes, msgspec.Meta(min_length=PEER_ID_BYTES, max_length=PEER_ID_BYTES)]
Digest = announcements.Digest
Certificate = Annotated[bytes, msgspec.Meta(max_length=CERTIFICATE_BYTES)]


class Welcome(msgspec.Struct, frozen=True, array_like=True):
    """The gateway's first message: who it is, its charter, and a nonce to sign. Later versions may append fields."""

    protocol: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    peer_id: PeerId
    charter: Digest
    nonce: Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    version: handshake.Version = ""
    certificate: Certificate = b""  # of a private swarm


class Hello(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The client's first message. `signature` covers gateway | nonce | own nonce, so it is valid for one connection only.

    With a nonce of the client, the gateway's proof is valid for one connection only as well. Older gateways do not know it.
    """

    peer_id: PeerId
    certificate: Certificate
    signature: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
    nonce: Annotated[bytes, msgspec.Meta(max_length=NONCE_BYTES)] = b""


class DirectoryRequest(msgspec.Struct, frozen=True, array_like=True, tag="d", forbid_unknown_fields=True):
    """Ask for the directory."""

    id: int


class AnnounceRequest(msgspec.Struct, frozen=True, array_like=True, tag="a", forbid_unknown_fields=True):
    """Ask the gateway to put an announcement of the client into the directory."""

    id: int
    signed: Annotated[bytes, msgspec.Meta(max_length=announcements.MAX_BYTES)]


class UploadRequest(msgspec.Struct, frozen=True, array_like=True, tag="l", forbid_unknown_fields=True):
    """Ask the gateway to give out a payload of the client."""

    id: int
    blob: Annotated[bytes, msgspec.Meta(min_length=1, max_length=MAX_BLOB)]


class PullRequest(msgspec.Struct, frozen=True, array_like=True, tag="p", forbid_unknown_fields=True):
    """Ask the gateway for the payload of a peer with this hash."""

    id: int
    peer_id: PeerId
    sha256: Digest


Request = DirectoryRequest | AnnounceRequest | UploadRequest | PullRequest


class DirectoryEntry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One announcement, as its origin signed it."""

    peer_id: PeerId
    signed: Annotated[bytes, msgspec.Meta(max_length=announcements.MAX_BYTES)]


class Response(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The answer to the request with the same id; fields that the request did not ask for stay empty."""

    id: int
    blob: Annotated[bytes, msgspec.Meta(max_length=MAX_BLOB)] = b""
    listed: Annotated[tuple[DirectoryEntry, ...], msgspec.Meta(max_length=MAX_LISTED)] = ()
