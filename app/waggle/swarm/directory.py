"""The directory: under which keys of the DHT announcements stand, and whose payloads to pull. Pure.

Every node stands in the shard that the first bits of sha256(peer id) name, so that no key grows with the swarm.
"""

import hashlib
from collections.abc import Collection, Mapping
from functools import lru_cache
from random import Random

import msgspec

from waggle.swarm.announcement import Announcement
from waggle.swarm.record import oldest_epoch
from waggle.tasks.charter import Charter
from waggle.tasks.questions import epoch_at

MAX_BITS = 12  # 4,096 shards: a million peers
SHARD_SPLITS = 192  # peers in a shard from which on it is also published one bit deeper
SHARD_FULL = 256  # peers in a shard from which on it is published deeper only
OVER_SAMPLE = 2  # pulls beyond K, because some peers are always just leaving

Payload = tuple[bytes, bytes]  # origin, sha256: both, or one peer could spoil another's payload by announcing it too


def shard_of(peer_id: bytes, bits: int) -> int:
    """The first `bits` bits of sha256(peer id)."""
    return int.from_bytes(hashlib.sha256(peer_id).digest()[:4], "big") >> (32 - bits)


def key_of(charter: bytes, bits: int, shard: int) -> str:
    """The DHT key of one shard of a charter's directory."""
    return f"waggle/1/{charter.hex()}/{bits}/{shard}"


def keys_to_publish(charter: bytes, peer_id: bytes, bits: int, seen: int) -> list[str]:
    """Where a node announces itself that saw `seen` peers in its own shard: while that splits, at both depths."""
    depths = [bits] if seen < SHARD_FULL else []
    if seen >= SHARD_SPLITS and bits < MAX_BITS:
        depths.append(bits + 1)
    return [key_of(charter, depth, shard_of(peer_id, depth)) for depth in depths or [bits]]


def key_to_read(charter: bytes, bits: int, random: Random) -> str:
    """A shard to sample from: any, so that nobody's peers are only its neighbours."""
    return key_of(charter, bits, random.randrange(1 << bits))


@lru_cache(maxsize=4096)
def places_of(charter: bytes, peer_id: bytes) -> frozenset[bytes]:
    """The 20-byte DHT ids of every key that `peer_id` may announce under: sha1 of the msgpacked key, as hivemind has it."""
    keys = (key_of(charter, bits, shard_of(peer_id, bits)) for bits in range(MAX_BITS + 1))
    return frozenset(hashlib.sha1(msgspec.msgpack.encode(key), usedforsecurity=False).digest() for key in keys)


def is_current(announcement: Announcement, charter: Charter, now: float) -> bool:
    """Whether what is announced would still be accepted at unix time `now`."""
    return oldest_epoch(charter, now) <= announcement.epoch <= epoch_at(now) + 1


def choose(
    announced: Mapping[bytes, Announcement],
    *,
    avoid: Collection[bytes],
    tried: Collection[Payload],
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
    wanted = min(len(fresh), count + OVER_SAMPLE)
    proven = [origin for origin in fresh if origin in known]
    chosen = random.sample(proven, min(len(proven), wanted // 2))
    return chosen + random.sample([origin for origin in fresh if origin not in chosen], wanted - len(chosen))
