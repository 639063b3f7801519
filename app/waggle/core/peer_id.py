"""Peer ids: 38 bytes that contain an Ed25519 public key, and their text forms for people, addresses and the log."""

from waggle.core.ed25519 import is_public_key

PEER_ID_BYTES = 38
PEER_ID_PREFIX = b"\x00\x24\x08\x01\x12\x20"  # identity multihash of protobuf PublicKey: type 1, 32 bytes
FINGERPRINT = 8  # characters: 58**8 of them, so to make a key with a chosen one takes a computer years
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class WeakKey(ValueError):
    """A peer id of a key for which everybody can sign, or written in a second form."""


def is_peer_id(candidate: bytes) -> bool:
    """Whether these bytes are an Ed25519 peer id, of a key for which not everybody can sign."""
    return _has_form(candidate) and is_public_key(candidate[len(PEER_ID_PREFIX) :])


def text_of(peer_id: bytes) -> str:
    """The peer id in base58, as addresses contain it."""
    number = int.from_bytes(peer_id, "big")
    digits = ""
    while number:
        number, digit = divmod(number, 58)
        digits = BASE58[digit] + digits
    return "1" * (len(peer_id) - len(peer_id.lstrip(b"\0"))) + digits


def peer_id_of(text: str) -> bytes:
    """The peer id of a base58 text. Raises ValueError if it is no peer id with an Ed25519 key (WeakKey: see `is_peer_id`)."""
    if not 0 < len(text) <= 64:  # no peer id is longer, and decoding takes quadratic time
        raise ValueError("not a peer id")
    number = 0
    for character in text:
        number = number * 58 + BASE58.index(character)
    zeros = len(text) - len(text.lstrip("1"))
    peer_id = b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
    if not _has_form(peer_id):
        raise ValueError("not a peer id")
    if not is_peer_id(peer_id):
        raise WeakKey("a key for which everybody can sign")
    return peer_id


def short_id(peer_id: bytes) -> str:
    """The fingerprint of a peer's key, for the log: enough to tell peers apart."""
    return fingerprint(text_of(peer_id))


def fingerprint(peer_id: str) -> str:
    """The last characters of a peer id in base58, which are of its key. All ids begin with the same characters."""
    return peer_id[-FINGERPRINT:]


def with_fingerprint(name: str, peer_id: str) -> str:
    """A peer's friendly name as people see it wherever two peers could be confused: many keys give the same two words."""
    return f"{name} · {fingerprint(peer_id)}" if name and peer_id else name or peer_id


def _has_form(candidate: bytes) -> bool:
    return len(candidate) == PEER_ID_BYTES and candidate.startswith(PEER_ID_PREFIX)
