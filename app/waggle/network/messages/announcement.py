"""The announcement: about 200 signed bytes in the directory that say which payload a node has to offer."""

from typing import Annotated

import msgspec

from waggle.core.errors import UNREADABLE, BadRecord
from waggle.core.peer_id import PEER_ID_BYTES
from waggle.network.identity.keys import SIGNATURE_BYTES, Identity, verify
from waggle.network.identity.membership import CERTIFICATE_BYTES
from waggle.network.messages import rollout_record
from waggle.tasks.charter import PROTOCOL

LIFETIME_S = 300  # of an announcement; it is renewed while it is true
RENEW_S = LIFETIME_S / 4
MAX_LIFETIME_S = LIFETIME_S + 600  # accepted: a reader's clock may be ten minutes late before it sees nobody
MAX_BITS = 12  # of the directory's shards: 4,096 of them, a million peers
DOMAIN = b"waggle/announce/1\0"  # apart from libp2p's own signatures with the same key
MAX_BYTES = 480  # with the signature
MOST_FORGED = 8  # in one answer, before the rest of it is not looked at

SHA256_BYTES = 32
Digest = Annotated[bytes, msgspec.Meta(min_length=SHA256_BYTES, max_length=SHA256_BYTES)]
PeerId = Annotated[bytes, msgspec.Meta(min_length=PEER_ID_BYTES, max_length=PEER_ID_BYTES)]


class ForgedAnnouncement(BadRecord):
    """Not what its origin signed, or not for this place. No honest replica keeps such a one, and to find out takes a while."""


class Announcement(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What a node offers. `charter` and `expires` are in it, so that one signature binds place and lifetime as well."""

    v: Annotated[int, msgspec.Meta(ge=PROTOCOL, le=PROTOCOL)] = PROTOCOL
    charter: Digest
    sha256: Digest  # of the payload
    size: Annotated[int, msgspec.Meta(ge=1, le=rollout_record.MAX_BLOB)]  # of the payload, bytes
    round: rollout_record.Count
    epoch: rollout_record.Count
    specialties: Annotated[int, msgspec.Meta(ge=0)]  # bitmask; msgpack ends at 64 bits
    model: Annotated[str, msgspec.Meta(max_length=rollout_record.MAX_MODEL)]
    expires: Annotated[int, msgspec.Meta(ge=0, lt=1 << 50)]  # unix milliseconds; the directory entry's own expiry
    depth: Annotated[int, msgspec.Meta(ge=0, le=MAX_BITS)] = 0  # of the directory, where its origin stands
    # Who gives the payload out instead of the origin, which cannot be called.
    via: Annotated[tuple[PeerId, ...], msgspec.Meta(max_length=2)] = ()
    certificate: Annotated[bytes, msgspec.Meta(max_length=CERTIFICATE_BYTES)] = b""  # of a private swarm
    # Sha256 of its newest answer sheet; empty: it publishes none.
    sheet: Annotated[bytes, msgspec.Meta(max_length=SHA256_BYTES)] = b""

    @property
    def expires_at(self) -> float:
        """Unix seconds, as hivemind counts them."""
        return self.expires / 1000


_decoder = msgspec.msgpack.Decoder(Announcement)


def signed(announcement: Announcement, identity: Identity) -> bytes:
    """The announcement's bytes with the origin's 64-byte signature behind them."""
    body = msgspec.msgpack.encode(announcement)
    return body + identity.sign(DOMAIN, body)


def read(blob: bytes, origin: bytes) -> Announcement:
    """Check form and signature of what stands under `origin`'s name; raises BadRecord, which Forged is too, and nothing else."""
    announcement = parse(blob)
    if not verify(origin, DOMAIN, blob[:-SIGNATURE_BYTES], blob[-SIGNATURE_BYTES:]):
        raise ForgedAnnouncement("forged announcement")
    return announcement


def parse(blob: bytes) -> Announcement:
    """The announcement in bytes whose signature has been verified before; raises BadRecord, and nothing else."""
    if not SIGNATURE_BYTES < len(blob) <= MAX_BYTES:
        raise BadRecord("announcement size")
    try:
        announcement = _decoder.decode(blob[:-SIGNATURE_BYTES])
    except UNREADABLE as error:  # not the form agreed on: refused
        raise BadRecord("malformed announcement") from error
    if not rollout_record.is_model_name(announcement.model):
        raise BadRecord("model name")
    if len(announcement.sheet) not in (0, SHA256_BYTES):  # whoever asked a gateway for it would be sent away
        raise BadRecord("answer sheet")
    return announcement
