"""The directory: under which keys of the DHT announcements stand, and whose payloads to pull. Pure.

Every node stands in the shard that the first bits of sha256(peer id) name, so that no key grows with the swarm: shards split
in two when they are full, and merge when they have emptied.
"""

import hashlib
import statistics
import time
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from random import Random

import msgspec

from waggle.network.messages.announcement import MAX_BITS, Announcement
from waggle.network.messages.rollout_record import oldest_epoch
from waggle.tasks.charter import Charter
from waggle.tasks.questions import epoch_at

# Whoever samples ten peers needs no more; five replicas of a shard of 256 would cost more than all payloads of a round.
SHARD_SPLITS = 48  # peers in a shard from which on it is also published one bit deeper
SHARD_FULL = 64  # peers in a shard from which on readers look one bit deeper
SHARD_MERGES = 16  # peers in a shard below which it is published one bit less deep
STORES_RATE = 16.0  # a second, of one shard
ENOUGH = 8  # peers in a shard whose word on its depth counts
DISBELIEF_S = 600.0  # for which no word counts that names a depth where nobody was
OVER_SAMPLE = 2  # pulls beyond K, because some peers are always just leaving

PayloadKey = tuple[bytes, bytes]  # origin, sha256: both, or one peer could spoil another's payload by announcing it too


def shard_of(peer_id: bytes, bits: int) -> int:
    """The first `bits` bits of sha256(peer id)."""
    return int.from_bytes(hashlib.sha256(peer_id).digest()[:4], "big") >> (32 - bits)


def key_of(charter: bytes, bits: int, shard: int) -> str:
    """The DHT key of one shard of a charter's directory."""
    return f"waggle/1/{charter.hex()}/{bits}/{shard}"


class DirectoryDepth:
    """How deep the directory is split, as this node sees it. Belongs to one thread.

    Every shard is about as large as any other, so that each one read tells. Light clients read what several gateways show put
    together, which is as large wherever they look: theirs is no deeper than `most`, and nobody takes their word on it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, most: int = MAX_BITS) -> None:
        self._clock = clock
        self._most = most
        self.bits = 0
        self.peers_in_shard = 0  # peers in a shard of that depth, by the one read last
        self._jump: tuple[int, int] | None = None  # from where to where, until a swarm was met there
        self._empty, self._until = 0, 0.0  # at which depth nobody was; until when no word counts that names it or a deeper one

    def observe(self, depths: Collection[int], *, light: int = 0) -> None:
        """A shard was read; its peers announce at these depths, beside so many light clients."""
        self.peers_in_shard = len(depths) + light
        believed = [depth for depth in depths if depth < self._empty or self._clock() >= self._until]
        typical = min(statistics.median_low(believed), self._most) if len(believed) >= ENOUGH else self.bits
        if self.peers_in_shard >= SHARD_MERGES:
            self._jump = None
        if typical > self.bits:  # a newcomer in a large swarm meets representatives at the top
            self._jump = self.bits, typical
            self.bits, self.peers_in_shard = self._jump[1], SHARD_FULL // 2
        elif self.peers_in_shard >= SHARD_FULL and self.bits < self._most:
            self.bits, self.peers_in_shard = self.bits + 1, self.peers_in_shard // 2
        elif self.peers_in_shard < SHARD_MERGES and self.bits:
            self.bits, self.peers_in_shard = self.bits - 1, self.peers_in_shard * 2
            self._doubt()

    def _doubt(self) -> None:
        """Go back after a jump to where nobody is: names that are made up scatter nobody. One poor read may be chance."""
        if self._jump is not None and self.bits <= max(self._jump[0], self._jump[1] - 2):
            self.bits, self._empty = self._jump
            self.peers_in_shard, self._until, self._jump = SHARD_FULL // 2, self._clock() + DISBELIEF_S, None

    def pause(self, tempo: float) -> float:
        """Seconds between two announcements: those who hold a shard should not hear hundreds a second."""
        return max(tempo, self.peers_in_shard / STORES_RATE)


def keys_to_publish(charter: bytes, peer_id: bytes, bits: int, peers_in_shard: int, epoch: int = 0) -> list[str]:
    """Where a node announces itself that saw `seen` peers in a shard: while that splits or merges, at both depths.

    At every depth above stand representatives, as many as in any shard, others in every epoch: there newcomers find the swarm.
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
    """A shard to sample from: any, so that nobody's peers are only its neighbours."""
    return key_of(charter, bits, random.randrange(1 << bits))


@lru_cache(maxsize=4096)
def places_of(charter: bytes, peer_id: bytes) -> Mapping[bytes, int]:
    """Every key that `peer_id` may announce under, and how deep it is.

    By their 20-byte DHT ids: sha1 of the msgpacked key, as hivemind has it.
    """
    keys = (msgspec.msgpack.encode(key_of(charter, bits, shard_of(peer_id, bits))) for bits in range(MAX_BITS + 1))
    return {hashlib.sha1(key, usedforsecurity=False).digest(): bits for bits, key in enumerate(keys)}


def is_current(announcement: Announcement, charter: Charter, now: float) -> bool:
    """Whether what is announced would still be accepted at unix time `now`."""
    return oldest_epoch(charter, now) <= announcement.epoch <= epoch_at(now) + 1


def choose_peers(
    announced: Mapping[bytes, Announcement],
    *,
    avoid: Collection[bytes],
    tried: Collection[PayloadKey],
    known: Collection[bytes] = (),
    count: int,
    random: Random,
) -> list[bytes]:
    """Up to `count` + 2 peers to pull from, at random: with a payload not tried before, and none of those to avoid.

    Half of them are known ones (trusted, or just heard from themselves), where so many have something new: a crowd of made-up
    names cannot crowd those out.
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
