"""Which 32 bytes may be somebody's Ed25519 key. The libraries that verify signatures leave this to their callers.

For a point of small order anybody can write signatures: with the neutral point, R = 01 00..00 and S = 0 verify for every message.
A point that is written in a second form would be a second name of the same key. Sources: RFC 8032, sections 5.1.3 and 5.1.7;
libsodium's ge25519_has_small_order and ge25519_is_canonical.
"""

KEY_BYTES = 32
P = 2**255 - 19  # the field's prime
SIGN = 1 << 255  # the bit of a key that says which of two x belongs to its y
_OF_ORDER_8 = int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little")
# The y of all eight points whose order divides 8, in the order 4, 1, 2 and 8: each x and -x share a y.
SMALL_ORDER = frozenset((0, 1, P - 1, _OF_ORDER_8, P - _OF_ORDER_8))


def is_public_key(key: bytes) -> bool:
    """Whether these are 32 bytes in the one form of a point that is not of small order.

    Not checked: whether y belongs to a point at all, which every verification finds out. x = 0 with a sign bit, the other second
    form, needs no check of its own, because both points with x = 0 are of small order.
    """
    y = int.from_bytes(key, "little") & ~SIGN
    return len(key) == KEY_BYTES and y < P and y not in SMALL_ORDER
