"""The validator of the directory: which DHT entries this node accepts, and for which of them it has room.

Everything in the DHT is a signed announcement under its origin's peer id and in its origin's shards. Plain values, other keys,
foreign names and lifetimes beyond the limit are refused, so a stranger cannot occupy a key. hivemind calls this object like one
of its own validators, and its storage asks for room; what is only read takes none.
"""

import hashlib
import logging
import struct
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol

from waggle.core.errors import BadRecord
from waggle.core.peer_id import PEER_ID_BYTES, is_peer_id, short_id
from waggle.network.limits.address_ranges import RELAYED
from waggle.network.limits.rate_limits import Payers
from waggle.network.messages import announcement, directory
from waggle.network.messages.announcement import MAX_LIFETIME_S, Announcement
from waggle.network.messages.faults import Fault

log = logging.getLogger(__name__)

REMEMBERED = 20_000  # verified entries: reading a shard again needs no signature checks
SHARD_CAP = 512  # entries under one key, many times what belongs there; a reader still fetches far less than hivemind's 4 MiB
DEPTH_CAP = (
    3 * SHARD_CAP
)  # entries under all keys of one depth, so that a flood of the deep, empty shards does not fill the others
FOREIGN, FOREIGN_CAP = -1, 256  # entries of all other charters together: they have one shard and one depth of their own
STORER_PART = 4  # one storer fills at most a quarter of a shard or depth; a gateway stores the entries of up to 64 clients
# Relayed storers together fill at most half, because their names cost less than connections. With entries of their own, stored
# by themselves, they fill up to three quarters, so that what some of them store for others displaces none of these.
RELAYED_PART, RELAYED_OWN_PART = 1 / 2, 3 / 4
CLEAR_S = 1.0  # between two searches of full shards for expired entries, however many newcomers a flood brings
SUBKEY_HEADER = bytes((0xC4, PEER_ID_BYTES))  # msgpack: bytes of length 38
STORER: ContextVar[Payers] = ContextVar("whose call stores the entry now, see `owner_of`", default=(b"", b""))  # ourselves


Shard = dict[bytes, tuple[float, Payers]]  # whose entry -> when it expires, and who stored it


class DhtRecord(Protocol):
    """What hivemind hands over: one entry of one key. `subkey` and `value` are still encoded with msgpack."""

    @property
    def key(self) -> bytes: ...
    @property
    def subkey(self) -> bytes: ...
    @property
    def value(self) -> bytes: ...
    @property
    def expiration_time(self) -> float: ...


class AnnouncementValidator:
    """Validates entries, and remembers which ones it has verified. `clock` is the DHT's: unix time (s).

    `member` says whether a peer with this certificate may take part in the swarm with the charter `digest`, and `useful` whether
    anybody in it could use what is announced.
    Names cost nothing, and thousands of them could fill our memory and any shard. So a full shard accepts nobody new until an
    entry expires, and so do all shards of one depth. Entries of other charters share one small shard. One STORER fills at most a
    quarter of a shard; relayed ones fill at most half together, and each a quarter of that. A storer's own entry does not count
    against this. An entry counts for the peer that stored it first.
    """

    def __init__(
        self,
        digest: bytes = b"",
        clock: Callable[[], float] = time.time,
        *,
        member: Callable[[bytes, bytes], bool] = lambda peer_id, certificate: True,
        useful: Callable[[Announcement], bool] = lambda announced: True,
    ) -> None:
        self._digest = digest
        self._member = member
        self._useful = useful
        self._clock = clock
        self._verified: set[bytes] = set()
        self.forged = 0  # entries so far that no honest replica stores
        self._cleared_at = 0.0
        self._depths: dict[int, dict[bytes, Shard]] = {}  # by depth and key

    def validate(self, record: DhtRecord) -> bool:
        """Whether this is an announcement signed by its subkey, under the right key and expiry. Never raises."""
        if not record.expiration_time <= self._clock() + MAX_LIFETIME_S:  # written so that NaN is refused
            return _refuse(record, "it expires too late")
        sizes = struct.pack("<dII", record.expiration_time, len(record.key), len(record.subkey))
        entry = sizes + record.key + record.subkey + record.value
        known = hashlib.blake2b(entry, digest_size=16).digest()
        if known not in self._verified:
            if reason := _malformed(record):
                return _refuse(record, reason)
            try:
                announced = _announcement(record)
            except announcement.ForgedAnnouncement as error:
                self.forged += 1
                return _refuse(record, error.title)
            except BadRecord as error:
                return _refuse(record, error.title)
            if not self._is_member(record, announced):
                return _refuse(record, "its origin is no member of this private swarm")
            if announced.charter == self._digest and not self._useful(announced):
                return _refuse(record, "nobody could use now what it offers")
            if len(self._verified) >= REMEMBERED:
                self._verified.clear()
            self._verified.add(known)
        return True

    def _is_member(self, record: DhtRecord, announced: Announcement) -> bool:
        """Whether its origin may take part in our swarm. For other swarms we cannot know it."""
        origin = record.subkey[len(SUBKEY_HEADER) :]
        return announced.charter != self._digest or self._member(origin, announced.certificate)

    def has_room(self, key: bytes, origin: bytes, value: bytes, until: float) -> bool:
        """Whether to store this valid entry. If so, its place is taken until it expires."""
        announced = announcement.parse(unpacked(value) or b"")
        own = announced.charter == self._digest
        depth = self._depths.setdefault(directory.places_of(announced.charter, origin)[key] if own else FOREIGN, {})
        shard, name = depth.setdefault(key if own else b"", {}), origin if own else key + origin
        if name not in shard and _is_full(depth, shard, origin, own=own):
            self._clear_out()
            if _is_full(depth, shard, origin, own=own):
                log.debug("no room for an announcement of %s in the directory", short_id(origin))
                return False
        before, storer = shard.get(name, (until, STORER.get()))
        shard[name] = max(before, until), storer
        return True

    def _clear_out(self) -> None:
        """Remove expired entries."""
        now = self._clock()
        if abs(now - self._cleared_at) < CLEAR_S:
            return
        self._cleared_at = now
        for shard in (shard for depth in self._depths.values() for shard in depth.values()):
            for expired in [name for name, (until, _) in shard.items() if until < now]:
                del shard[expired]

    def sign_value(self, record: DhtRecord) -> bytes:
        """The value unchanged: announcements are signed before the DHT gets them."""
        return record.value

    def strip_value(self, record: DhtRecord) -> bytes:
        """The value unchanged: readers keep the signature, so that they can show it to others."""
        return record.value


def _is_full(depth: dict[bytes, Shard], shard: Shard, origin: bytes, *, own: bool) -> bool:
    """Whether the current storer may not add an entry of this origin to this shard, or to any shard of this depth."""
    if not own:
        return len(shard) >= FOREIGN_CAP
    storer = STORER.get()
    relayed = storer[1] == RELAYED
    for shards, cap in (([shard], SHARD_CAP), (depth.values(), DEPTH_CAP)):
        storers = [each for entries in shards for _, each in entries.values()]
        part = int(cap * RELAYED_PART) if relayed else cap
        together = int(cap * RELAYED_OWN_PART) if storer[0] == origin else part
        if len(storers) >= cap or (relayed and sum(each == RELAYED for _, each in storers) >= together):
            return True
        if any(storer) and storer[0] != origin and storers.count(storer) >= part // STORER_PART:
            return True
    return False


def _refuse(record: DhtRecord, reason: str) -> bool:
    """Log why an entry is refused, and return False."""
    if log.isEnabledFor(logging.DEBUG):  # writing an id in base58 takes time, and strangers send floods of these
        is_id = len(record.subkey) == PEER_ID_BYTES + len(SUBKEY_HEADER)
        log.debug(
            "a DHT entry of %s is refused: %s", short_id(record.subkey[len(SUBKEY_HEADER) :]) if is_id else "nobody", reason
        )
    return False


def _malformed(record: DhtRecord) -> str:
    """Why an entry has not the form of one that stores bytes under a peer id; empty if it has."""
    if not record.subkey.startswith(SUBKEY_HEADER) or not is_peer_id(record.subkey[len(SUBKEY_HEADER) :]):
        return "its subkey is no peer id"
    return "" if unpacked(record.value) is not None else "its value is not bytes"


def _announcement(record: DhtRecord) -> Announcement:
    """The announcement in an entry. Raises BadRecord, and ForgedAnnouncement if its subkey did not sign it for this place."""
    blob = unpacked(record.value) or b""
    origin = record.subkey[len(SUBKEY_HEADER) :]
    announced = announcement.parse(blob)
    if record.expiration_time != announced.expires_at or record.key not in directory.places_of(announced.charter, origin):
        raise announcement.ForgedAnnouncement(Fault.OTHER_PLACE_OR_TIME)
    return announcement.read(blob, origin)


def unpacked(value: bytes) -> bytes | None:
    """The bytes in a msgpacked bytes value, None for any other value. hivemind's decoder would follow nesting of any depth."""
    if value[:1] == b"\xc4" and len(value) >= 2 and value[1] == len(value) - 2:
        return value[2:]
    if value[:1] == b"\xc5" and len(value) >= 3 and int.from_bytes(value[1:3], "big") == len(value) - 3:
        return value[3:]
    return None
