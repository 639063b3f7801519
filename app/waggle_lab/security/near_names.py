"""Keys ground so that their places in the DHT lie around a key of the directory, where its entries are stored and looked for.

A node's place follows from its peer id, so that nobody chooses it freely; but keys cost nothing, and in a small swarm few tries
come nearer than all honest nodes.
"""

import hashlib
import heapq
import os

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from waggle.core.peer_id import PEER_ID_PREFIX

TRIES = 20_000  # about three seconds


def place_of(source: str | bytes) -> int:
    """The place in the DHT of a directory's key (str) or of a peer id (bytes): hivemind's sha1, of a text in msgpack."""
    content = source if isinstance(source, bytes) else msgspec.msgpack.encode(source)
    return int.from_bytes(hashlib.sha1(content, usedforsecurity=False).digest(), "big")


def ground_keys(key: str, count: int, tries: int = TRIES) -> list[tuple[bytes, bytes]]:
    """The `count` nearest of so many random keys to a directory's key, nearest first: (32 private bytes, peer id)."""
    place = place_of(key)

    def distance(pair: tuple[bytes, bytes]) -> int:
        return place_of(pair[1]) ^ place

    return heapq.nsmallest(count, ((private, _peer_id(private)) for private in map(os.urandom, [32] * tries)), distance)


def _peer_id(private: bytes) -> bytes:
    public = Ed25519PrivateKey.from_private_bytes(private).public_key()
    return PEER_ID_PREFIX + public.public_bytes(Encoding.Raw, PublicFormat.Raw)
