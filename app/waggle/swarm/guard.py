"""The guard of the directory: which DHT entries this node stores for others and believes when it reads them.

Everything in the DHT is a signed announcement under its origin's own name and shard. Plain values, other keys, other
people's names and lifetimes beyond the cap are all refused, so nothing can be squatted. hivemind asks this object where
it would ask one of its own validators.
"""

import hashlib
import struct
import time
from collections.abc import Callable
from typing import Protocol

from waggle.errors import BadRecord
from waggle.swarm import announcement
from waggle.swarm.directory import places_of
from waggle.swarm.identity import PEER_ID_BYTES

LIFETIME_S = 300  # of an announcement; it is renewed while it is true
MAX_LIFETIME_S = LIFETIME_S + 600  # accepted: a reader's clock may be ten minutes late before it sees nobody
REMEMBERED = 20_000  # verified entries: reading a shard again costs no signatures
SUBKEY_HEADER = bytes((0xC4, PEER_ID_BYTES))  # msgpack: 38 bytes follow


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
    """Validates entries; remembers which ones it has verified. `clock` is the DHT's, real unix time."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._verified: set[bytes] = set()

    def validate(self, record: Entry) -> bool:
        """Whether this is an announcement by its subkey, in its place, for its time. Never raises."""
        if not record.expiration_time <= self._clock() + MAX_LIFETIME_S:  # written so that NaN is refused
            return False
        sizes = struct.pack("<dII", record.expiration_time, len(record.key), len(record.subkey))
        entry = sizes + record.key + record.subkey + record.value
        known = hashlib.blake2b(entry, digest_size=16).digest()
        if known not in self._verified:
            if not _is_announcement(record):
                return False
            if len(self._verified) >= REMEMBERED:
                self._verified.clear()
            self._verified.add(known)
        return True

    def sign_value(self, record: Entry) -> bytes:
        """Announcements are signed before the DHT sees them."""
        return record.value

    def strip_value(self, record: Entry) -> bytes:
        """Readers keep the signature, so that they can show it to others."""
        return record.value


def _is_announcement(record: Entry) -> bool:
    if len(record.subkey) != PEER_ID_BYTES + len(SUBKEY_HEADER) or not record.subkey.startswith(SUBKEY_HEADER):
        return False
    blob = _unpacked(record.value)
    if blob is None:
        return False
    origin = record.subkey[len(SUBKEY_HEADER) :]
    try:
        announced = announcement.read(blob, origin)
    except BadRecord:  # a stranger's entry: refused, the DHT goes on
        return False
    return record.expiration_time == announced.expires_at and record.key in places_of(announced.charter, origin)


def _unpacked(value: bytes) -> bytes | None:
    """The bytes inside a msgpacked bytes value: read by hand, because hivemind's own decoder would follow any nesting."""
    if value[:1] == b"\xc4" and len(value) >= 2 and value[1] == len(value) - 2:
        return value[2:]
    if value[:1] == b"\xc5" and len(value) >= 3 and int.from_bytes(value[1:3], "big") == len(value) - 3:
        return value[3:]
    return None
