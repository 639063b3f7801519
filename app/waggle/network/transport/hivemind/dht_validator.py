"""The guard of the directory: which DHT entries this node believes, and for which of them it finds room.

Everything in the DHT is a signed announcement under its origin's own name and shard. Plain values, other keys, other
people's names and lifetimes beyond the cap are all refused, so nothing can be squatted. hivemind asks this object where
it would ask one of its own validators, and its storage asks for room: what is only read takes none.
"""

import hashlib
import struct
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol

from waggle.core.errors import BadRecord
from waggle.core.peer_id import PEER_ID_BYTES
from waggle.network.limits.address_ranges import RELAYED
from waggle.network.limits.rate_limits import Payers
from waggle.network.messages import announcement, directory
from waggle.network.messages.announcement import MAX_LIFETIME_S, Announcement

REMEMBERED = 20_000  # verified entries: reading a shard again costs no signatures
SHARD_CAP = 512  # peers under one key, many times what belongs there: a reader still fetches far less than hivemind's 4 MiB
DEPTH_CAP = 3 * SHARD_CAP  # entries under all keys of one depth: who fills the deep ones, where nobody is, shuts nobody out above
FOREIGN, FOREIGN_CAP = -1, 256  # entries of all other charters together: a floor and a room of their own
STORED = 4  # one who stores has one part in so many of each room: others store their own, and a gateway those of 64 clients
# What all relayed ones together have of a room, as their names are made faster than connections: for what they bring of others,
# and with their own places, so that none of them loses its own to what the others bring.
RELAYED_PART, WITH_OWN = 1 / 2, 3 / 4
CLEAR_S = 1.0  # between two looks through full rooms for those whose time is up: a flood must not make us look at every entry
SUBKEY_HEADER = bytes((0xC4, PEER_ID_BYTES))  # msgpack: 38 bytes follow
STORER: ContextVar[Payers] = ContextVar("whose call stores what is stored now, see owner_of", default=(b"", b""))  # us


Room = dict[bytes, tuple[float, Payers]]  # whose entry -> until when, and who brought it


class Entry(Protocol):
    """What hivemind hands over: one entry of one key, `subkey` and `value` still msgpacked."""

    @property
    def key(self) -> bytes: ...
    @property
    def subkey(self) -> bytes: ...
    @property
    def value(self) -> bytes: ...
    @property
    def expiration_time(self) -> float: ...


class Guard:
    """Validates entries; remembers which ones it has verified. `clock` is the DHT's, real unix time.

    `member` says whether a peer with this certificate may take part under `digest`.
    Whoever makes identities by the thousand could fill our memory and any shard: a full one takes in nobody new until
    somebody's time is up, and so do all of one depth. Announcements under charters other than `digest` share one small room.
    One `STORER` fills a quarter of any other room: a name costs nothing. Relayed ones have half of it together, and each a
    quarter of that. Its own place is found beside those that it brings, and beside those that others bring. An entry counts for
    whoever brought it first.
    """

    def __init__(
        self,
        digest: bytes = b"",
        clock: Callable[[], float] = time.time,
        *,
        member: Callable[[bytes, bytes], bool] = lambda peer_id, certificate: True,
    ) -> None:
        self._digest = digest
        self._member = member
        self._clock = clock
        self._verified: set[bytes] = set()
        self.forged = 0  # entries so far that no honest replica keeps
        self._cleared_at = 0.0
        self._floors: dict[int, dict[bytes, Room]] = {}  # by depth and key

    def validate(self, record: Entry) -> bool:
        """Whether this is an announcement by its subkey, in its place, for its time. Never raises."""
        if not record.expiration_time <= self._clock() + MAX_LIFETIME_S:  # written so that NaN is refused
            return False
        sizes = struct.pack("<dII", record.expiration_time, len(record.key), len(record.subkey))
        entry = sizes + record.key + record.subkey + record.value
        known = hashlib.blake2b(entry, digest_size=16).digest()
        if known not in self._verified:
            try:
                announced = _announcement(record)
            except announcement.ForgedAnnouncement:
                self.forged += 1
                return False
            if announced is None or not self._is_welcome(record, announced):
                return False
            if len(self._verified) >= REMEMBERED:
                self._verified.clear()
            self._verified.add(known)
        return True

    def _is_welcome(self, record: Entry, announced: Announcement) -> bool:
        """Whether its origin may take part in our own swarm; of others we cannot say."""
        origin = record.subkey[len(SUBKEY_HEADER) :]
        return announced.charter != self._digest or self._member(origin, announced.certificate)

    def has_room(self, key: bytes, origin: bytes, value: bytes, until: float) -> bool:
        """Whether to store this entry, which was found valid; if so its place is taken until then."""
        announced = announcement.parse(unpacked(value) or b"")
        own = announced.charter == self._digest
        floor = self._floors.setdefault(directory.places_of(announced.charter, origin)[key] if own else FOREIGN, {})
        room, tenant = floor.setdefault(key if own else b"", {}), origin if own else key + origin
        if tenant not in room and _is_full(floor, room, origin, own=own):
            self._clear_out()
            if _is_full(floor, room, origin, own=own):
                return False
        before, storer = room.get(tenant, (until, STORER.get()))
        room[tenant] = max(before, until), storer
        return True

    def _clear_out(self) -> None:
        now = self._clock()
        if abs(now - self._cleared_at) < CLEAR_S:
            return
        self._cleared_at = now
        for room in (room for floor in self._floors.values() for room in floor.values()):
            for gone in [tenant for tenant, (until, _) in room.items() if until < now]:
                del room[gone]

    def sign_value(self, record: Entry) -> bytes:
        """Announcements are signed before the DHT sees them."""
        return record.value

    def strip_value(self, record: Entry) -> bytes:
        """Readers keep the signature, so that they can show it to others."""
        return record.value


def _is_full(floor: dict[bytes, Room], room: Room, origin: bytes, *, own: bool) -> bool:
    """Whether nobody, or not this storer, may bring this newcomer here, or anywhere at this depth."""
    if not own:
        return len(room) >= FOREIGN_CAP
    storer = STORER.get()
    relayed = storer[1] == RELAYED
    for rooms, cap in (([room], SHARD_CAP), (floor.values(), DEPTH_CAP)):
        here = [each for places in rooms for _, each in places.values()]
        part = int(cap * RELAYED_PART) if relayed else cap
        together = int(cap * WITH_OWN) if storer[0] == origin else part
        if len(here) >= cap or (relayed and sum(each == RELAYED for _, each in here) >= together):
            return True
        if any(storer) and storer[0] != origin and here.count(storer) >= part // STORED:
            return True
    return False


def _announcement(record: Entry) -> Announcement | None:
    """What an entry announces; None where it is none by its subkey. Raises Forged where that did not sign it for this place."""
    if len(record.subkey) != PEER_ID_BYTES + len(SUBKEY_HEADER) or not record.subkey.startswith(SUBKEY_HEADER):
        return None
    blob = unpacked(record.value)
    if blob is None:
        return None
    origin = record.subkey[len(SUBKEY_HEADER) :]
    try:
        announced = announcement.parse(blob)
        if record.expiration_time != announced.expires_at or record.key not in directory.places_of(announced.charter, origin):
            raise announcement.ForgedAnnouncement("for another place or time")
        return announcement.read(blob, origin)
    except announcement.ForgedAnnouncement:
        raise
    except BadRecord:  # a stranger's entry: refused, the DHT goes on
        return None


def unpacked(value: bytes) -> bytes | None:
    """The bytes inside a msgpacked bytes value: read by hand, because hivemind's own decoder would follow any nesting."""
    if value[:1] == b"\xc4" and len(value) >= 2 and value[1] == len(value) - 2:
        return value[2:]
    if value[:1] == b"\xc5" and len(value) >= 3 and int.from_bytes(value[1:3], "big") == len(value) - 3:
        return value[3:]
    return None
