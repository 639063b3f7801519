"""Keys for which anybody can sign, or in a second form, and signatures that anybody can make under some of them."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from waggle.core.ed25519 import KEY_BYTES, P
from waggle.core.peer_id import PEER_ID_PREFIX

# libsodium, ge25519_has_small_order: 0, 1, the two of order 8, -1, and then 0 and 1 once more as p and p + 1.
LIBSODIUM = (
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
)
NONCANONICAL = tuple((P + more).to_bytes(KEY_BYTES, "little").hex() for more in range(19))  # all y from p to 2**255 - 1
BAD = sorted(
    {bytes(each[:31] + (bytes([each[31] | bit]))) for each in map(bytes.fromhex, (*LIBSODIUM, *NONCANONICAL)) for bit in (0, 128)}
)

SIGNATURE = b"\x01" + bytes(63)  # R is the neutral point and S is 0, so no secret is in it: S * B = R + h * A if h * A is neutral
CANONICAL = tuple(key for key in BAD if key[:31] + bytes([key[31] & 127]) in set(map(bytes.fromhex, LIBSODIUM[:5])))


def peer_id(key: bytes) -> bytes:
    return PEER_ID_PREFIX + key


def is_signed(key: bytes, message: bytes) -> bool:
    """Whether the library takes SIGNATURE for one by this key."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(SIGNATURE, message)
    except InvalidSignature:
        return False
    return True
