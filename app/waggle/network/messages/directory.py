"""The directory: the keys of the DHT under which announcements are stored, and the choice of peers to pull from. Pure.

A node belongs to the shard that the first bits of sha256(peer id) name, so no key grows with the swarm: a full shard splits in
two, and two almost empty ones merge.
"""

import hashlib
import statistics
import time
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from random import Random

import msgspec

from waggle.network.messages.announcement import MAX_BITS, Announcement
from waggle.network.messages.rollout_record import MIN_BLOB, oldest_epoch
from waggle.tasks.charter import Charter
from waggle.tasks.questions import epoch_at

# A node samples about ten peers, so it needs no larger shards; reading five replicas of a shard of 256 peers would cost more than
# all payloads of a round.
SHARD_SPLITS = 48  # peers; from so many on a node announces itself one bit deeper, too
SHARD_FULL = 64  # peers; from so many on readers look one bit deeper
SHARD_MERGES = 16  # peers; with fewer a node looks and announces itself one bit less deep
STORES_RATE = 16.0  # announcements per second in one shard
ENOUGH = 8  # peers in a shard whose depths are believed
DISBELIEF_S = 600.0  # how long a depth at which no peers were found is not believed
OTHER_CLOCKS = 1  # epochs that the clock of another node may differ beyond those that `is_current` allows
OVER_SAMPLE = 2  # pulls beyond K, because some peers are always leaving

PayloadKey = tuple[
    bytes, bytes
]  # (origin, sha256): with the hash only, a peer could spoil another's payload by announcing it too


def shard_of(peer_id: bytes, bits: int) -> int:
    """The first `bits` bits of sha256(peer id)."""
    return int.from_bytes(hashlib.sha256(peer_id).digest()[:4], "big") >> (32 - bits)


def key_of(charter: bytes, bits: int, shard: int) -> str:
    """The DHT key of one shard of a charter's directory."""
    return f"waggle/1/{charter.hex()}/{bits}/{shard}"


class DirectoryDepth:
    """How deep the directory is split, estimated from the shards that are read. Belongs to one thread.

    All shards are about equally large, so each one tells. Light clients read the union of what their gateways show, which has the
    same size at every depth: they go no deeper than `most`, and peers ignore the depths that they announce.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, most: int = MAX_BITS) -> None:
        self._clock = clock
        self._most = most
        self.bits = 0
        self.peers_in_shard = 0  # of that depth, by the last one that was read
        self._jump: tuple[int, int] | None = None  # the depths before and after, until peers were found there
        self._empty, self._until = 0, 0.0  # the depth without peers; until when it and deeper ones are not believed

    def observe(self, depths: Collection[int], *, light: int = 0) -> None:
        """Note the depths that the peers of a shard announce, and the number of light clients in it."""
        self.peers_in_shard = len(depths) + light
        believed = [depth for depth in depths if depth < self._empty or self._clock() >= self._until]
        typical = min(statistics.median_low(believed), self._most) if len(believed) >= ENOUGH else self.bits
        if self.peers_in_shard >= SHARD_MERGES:
            self._jump = None
        if typical > self.bits:  # a newcomer in a large swarm reads the representatives at the top
            self._jump = self.bits, typical
            self.bits, self.peers_in_shard = self._jump[1], SHARD_FULL // 2
        elif self.peers_in_shard >= SHARD_FULL and self.bits < self._most:
            self.bits, self.peers_in_shard = self.bits + 1, self.peers_in_shard // 2
        elif self.peers_in_shard < SHARD_MERGES and self.bits:
            self.bits, self.peers_in_shard = self.bits - 1, self.peers_in_shard * 2
            self._doubt()

    def _doubt(self) -> None:
        """Go back after a jump to a depth without peers, so that made-up names scatter no swarm. One poor read may be chance."""
        if self._jump is not None and self.bits <= max(self._jump[0], self._jump[1] - 2):
            self.bits, self._empty = self._jump
            self.peers_in_shard, self._until, self._jump = SHARD_FULL // 2, self._clock() + DISBELIEF_S, None

    def pause(self, tempo: float) -> float:
        """Seconds between two announcements, so that the nodes that store a shard do not get hundreds a second."""
        return max(tempo, self.peers_in_shard / STORES_RATE)


def keys_to_publish(charter: bytes, peer_id: bytes, bits: int, peers_in_shard: int, epoch: int = 0) -> list[str]:
    """The keys under which a node announces itself: at both depths while its shard splits or merges.

    At every depth above there are representatives, as many as in any shard and others in each epoch, by which newcomers find the
    swarm.
    """
    depths = [bits]
    if peers_in_shard >= SHARD_SPLITS and bits < MAX_BITS:
        depths.append(bits + 1)
    if bits and peers_in_shard < 1.5 * SHARD_MERGES:
        depths.append(bits - 1)
    lot = int.from_bytes(hashlib.sha256(b"waggle/representative/1" + epoch.to_bytes(8, "big") + peer_id).digest()[:4], "big")
    depths += [above for above in range(bits) if lot >> (32 - bits + above) == 0]
    return [key_of(charter, depth, shard_of(peer_id, depth)) for depth in sorted(set(depths))]


def key_to_read(charter: bytes, bits: int, random: Random) -> str:
    """The key of a random shard, so that the peers of a node are not only its neighbours."""
    return key_of(charter, bits, random.randrange(1 << bits))


@lru_cache(maxsize=4096)
def places_of(charter: bytes, peer_id: bytes) -> Mapping[bytes, int]:
    """Every key that `peer_id` may announce under, as a 20-byte DHT id, and its depth.

    hivemind's DHT id is the sha1 of the msgpacked key.
    """
    keys = (msgspec.msgpack.encode(key_of(charter, bits, shard_of(peer_id, bits))) for bits in range(MAX_BITS + 1))
    return {hashlib.sha1(key, usedforsecurity=False).digest(): bits for bits, key in enumerate(keys)}


def is_current(announcement: Announcement, charter: Charter, now: float) -> bool:
    """Whether the announced record would be accepted at unix time `now`."""
    return oldest_epoch(charter, now) <= announcement.epoch <= epoch_at(now) + 1


def is_useful(announcement: Announcement, charter: Charter, now: float) -> bool:
    """Whether an announcement of this charter deserves a place in the directory at unix time `now`.

    Its record must be of an epoch that a node with a clock of its own may accept, and as large as the smallest record.
    """
    earliest, latest = oldest_epoch(charter, now) - OTHER_CLOCKS, epoch_at(now) + 1 + OTHER_CLOCKS
    return earliest <= announcement.epoch <= latest and announcement.size >= MIN_BLOB


def choose_peers(
    announced: Mapping[bytes, Announcement],
    *,
    avoid: Collection[bytes],
    tried: Collection[PayloadKey],
    known: Collection[bytes] = (),
    count: int,
    random: Random,
) -> list[bytes]:
    """Up to `count` + 2 random peers to pull from, with a payload not tried before, and none to `avoid`.

    Half of them are `known` peers (trusted, or asked for a handshake just now) if enough of them have something new, so that
    made-up names cannot crowd these out.
    """
    fresh = [
        origin
        for origin, announcement in sorted(announced.items())
        if origin not in avoid and (origin, announcement.sha256) not in tried
    ]
    sample_size = min(len(fresh), count + OVER_SAMPLE)
    proven = [origin for origin in fresh if origin in known]
    chosen = random.sample(proven, min(len(proven), sample_size // 2))
    return chosen + random.sample([origin for origin in fresh if origin not in chosen], sample_size - len(chosen))
