"""A peer id: 38 bytes that contain an Ed25519 public key, and how people, addresses and the log write them."""

PEER_ID_BYTES = 38
PEER_ID_PREFIX = b"\x00\x24\x08\x01\x12\x20"  # identity multihash of protobuf PublicKey: type 1, 32 bytes
SHORT_ID = 8  # characters: 58**8 ids, so that two peers of one swarm hardly share one
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def is_peer_id(candidate: bytes) -> bool:
    """Whether these bytes have the form of an Ed25519 peer id."""
    return len(candidate) == PEER_ID_BYTES and candidate.startswith(PEER_ID_PREFIX)


def text_of(peer_id: bytes) -> str:
    """The peer id as people and addresses write it: base58."""
    number = int.from_bytes(peer_id, "big")
    digits = ""
    while number:
        number, digit = divmod(number, 58)
        digits = BASE58[digit] + digits
    return "1" * (len(peer_id) - len(peer_id.lstrip(b"\0"))) + digits


def peer_id_of(text: str) -> bytes:
    """The peer id that `text` writes in base58; raises ValueError where it is none of an Ed25519 key."""
    if not 0 < len(text) <= 64:  # longer numbers would only cost time
        raise ValueError("not a peer id")
    number = 0
    for character in text:
        number = number * 58 + BASE58.index(character)
    zeros = len(text) - len(text.lstrip("1"))
    peer_id = b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
    if not is_peer_id(peer_id):
        raise ValueError("not a peer id")
    return peer_id


def short_id(peer_id: bytes) -> str:
    """The last characters of a peer id, for the log: enough to find it among the peers here. All ids begin alike."""
    return text_of(peer_id)[-SHORT_ID:]
