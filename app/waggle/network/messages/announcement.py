"""The announcement: about 200 signed bytes in the directory that say which payload a node offers."""

from typing import Annotated

import msgspec

from waggle.core.errors import UNREADABLE, BadRecord
from waggle.core.peer_id import PEER_ID_BYTES, is_peer_id
from waggle.network.identity.keys import SIGNATURE_BYTES, Identity, verify
from waggle.network.identity.member_name import SEALED_BYTES
from waggle.network.identity.membership import CERTIFICATE_BYTES
from waggle.network.messages import consent, rollout_record
from waggle.network.messages.consent import CONSENT_BYTES
from waggle.network.messages.faults import Fault
from waggle.tasks.charter import PROTOCOL

LIFETIME_S = 300  # of an announcement; it is renewed while it is valid
RENEW_S = LIFETIME_S / 4
MAX_LIFETIME_S = LIFETIME_S + 600  # accepted: a reader whose clock is up to ten minutes slow still sees the swarm
MAX_BITS = 12  # of a shard's number: 4,096 shards, for about a million peers
DOMAIN = b"waggle/announce/1\0"  # separates these signatures from libp2p's with the same key
MAX_BYTES = 720  # with the signature
MOST_FORGED = 8  # forged ones in one answer, before the rest of it is ignored

SHA256_BYTES = 32
Digest = Annotated[bytes, msgspec.Meta(min_length=SHA256_BYTES, max_length=SHA256_BYTES)]
Consent = Annotated[bytes, msgspec.Meta(min_length=CONSENT_BYTES, max_length=CONSENT_BYTES)]
PeerId = Annotated[bytes, msgspec.Meta(min_length=PEER_ID_BYTES, max_length=PEER_ID_BYTES)]


class ForgedAnnouncement(BadRecord):
    """Not signed by its origin or by those whom it names, or not for this place.

    No honest replica stores such an announcement, and checking takes time.
    """


class Announcement(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What a node offers. It contains `charter` and `expires`, so that one signature covers place and lifetime as well."""

    v: Annotated[int, msgspec.Meta(ge=PROTOCOL, le=PROTOCOL)] = PROTOCOL
    charter: Digest
    sha256: Digest  # of the payload
    size: Annotated[int, msgspec.Meta(ge=1, le=rollout_record.MAX_BLOB)]  # of the payload, bytes
    round: rollout_record.Count
    epoch: rollout_record.Count
    specialties: Annotated[int, msgspec.Meta(ge=0)]  # bitmask; msgpack ends at 64 bits
    model: Annotated[str, msgspec.Meta(max_length=rollout_record.MAX_MODEL)]
    expires: Annotated[int, msgspec.Meta(ge=0, lt=1 << 50)]  # unix milliseconds; the directory entry's own expiry
    depth: Annotated[int, msgspec.Meta(ge=0, le=MAX_BITS)] = 0  # of the directory, as its origin sees it
    # The gateways that give out the payload of an origin that cannot be called.
    via: Annotated[tuple[PeerId, ...], msgspec.Meta(max_length=2)] = ()
    certificate: Annotated[bytes, msgspec.Meta(max_length=CERTIFICATE_BYTES)] = b""  # of a private swarm
    # Sha256 of the origin's newest answer sheet; empty: it publishes none.
    sheet: Annotated[bytes, msgspec.Meta(max_length=SHA256_BYTES)] = b""
    # Of those in `via`, in their order: without it, a reader would call whomever a made-up name names.
    consents: Annotated[tuple[Consent, ...], msgspec.Meta(max_length=2)] = ()
    # The name that its origin chose in a private swarm, sealed for its members. Left out if empty: older versions do not know it.
    name: Annotated[bytes, msgspec.Meta(max_length=SEALED_BYTES)] = b""

    @property
    def expires_at(self) -> float:
        """Unix seconds, as hivemind counts them."""
        return self.expires / 1000


_decoder = msgspec.msgpack.Decoder(Announcement)


def signed(announcement: Announcement, identity: Identity) -> bytes:
    """The announcement's bytes with the origin's 64-byte signature behind them."""
    fields = msgspec.structs.astuple(announcement)
    body = msgspec.msgpack.encode(fields if announcement.name else fields[:-1])
    return body + identity.sign(DOMAIN, body)


def read(blob: bytes, origin: bytes) -> Announcement:
    """Check form and signatures of an announcement of `origin`; raises BadRecord (of which ForgedAnnouncement is one) only."""
    announcement = parse(blob)
    if not verify(origin, DOMAIN, blob[:-SIGNATURE_BYTES], blob[-SIGNATURE_BYTES:]):
        raise ForgedAnnouncement(Fault.FORGED_ANNOUNCEMENT)
    if not _holders_agree(announcement, origin):
        raise ForgedAnnouncement(Fault.FORGED_ANNOUNCEMENT)
    return announcement


def _holders_agree(announcement: Announcement, origin: bytes) -> bool:
    """Whether everybody whom the announcement of `origin` names agreed to that for its whole lifetime."""
    pairs = zip(announcement.consents, announcement.via, strict=False)
    agree = (consent.is_valid(each, holder, announcement.charter, origin, announcement.expires_at) for each, holder in pairs)
    return len(announcement.consents) == len(announcement.via) and all(agree)


def parse(blob: bytes) -> Announcement:
    """Decode an announcement whose signature was verified before; raises BadRecord only."""
    if not SIGNATURE_BYTES < len(blob) <= MAX_BYTES:
        raise BadRecord(Fault.WRONG_ANNOUNCEMENT_SIZE)
    try:
        announcement = _decoder.decode(blob[:-SIGNATURE_BYTES])
    except UNREADABLE as error:  # not the agreed form
        raise BadRecord(Fault.MALFORMED_ANNOUNCEMENT) from error
    if not rollout_record.is_model_name(announcement.model):
        raise BadRecord(Fault.INVALID_MODEL_NAME)
    if not all(map(is_peer_id, announcement.via)):
        raise BadRecord(Fault.MALFORMED_ANNOUNCEMENT)
    if len(announcement.sheet) not in (0, SHA256_BYTES):  # a gateway would close the connection of a client that asks for it
        raise BadRecord(Fault.INVALID_SHEET_HASH)
    return msgspec.structs.replace(announcement, model=rollout_record.model_name(announcement.model))
