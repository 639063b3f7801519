"""Keys that are refused: the eight points of small order, and every y that is written in a second form.

The points are calculated here from the curve's equation (RFC 8032, section 5.1), apart from the constants in the product.
"""

import pytest

from waggle.core.ed25519 import KEY_BYTES, SIGN, P, is_public_key
from weak_keys import BAD

D = -121665 * pow(121666, -1, P) % P


def root(square: int) -> int:
    """A square root modulo P; raises ValueError if there is none."""
    candidate = pow(square, (P + 3) // 8, P)
    for each in (candidate, candidate * pow(2, (P - 1) // 4, P) % P):
        if each * each % P == square % P:
            return each
    raise ValueError("not a square")


def decoded(key: bytes) -> tuple[int, int]:
    """The point of a key, as a library reads it that checks nothing: x and y."""
    y = (int.from_bytes(key, "little") & ~SIGN) % P
    x = root((y * y - 1) * pow(D * y * y + 1, -1, P))
    return (P - x if x & 1 != key[31] >> 7 else x) % P, y


def add(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    (x1, y1), (x2, y2) = first, second
    both = D * x1 * x2 * y1 * y2
    return (x1 * y2 + x2 * y1) * pow(1 + both, -1, P) % P, (y1 * y2 + x1 * x2) * pow(1 - both, -1, P) % P


def order(point: tuple[int, int]) -> int:
    """The order of a point, up to 8; 9 if it is larger."""
    total, times = point, 1
    while total != (0, 1) and times < 9:
        total, times = add(total, point), times + 1
    return times


@pytest.mark.parametrize("key", BAD, ids=bytes.hex)
def test_a_key_of_small_order_or_in_a_second_form_is_refused(key: bytes) -> None:
    assert not is_public_key(key)


def test_the_list_holds_all_eight_points_of_small_order_in_every_form() -> None:
    small = set()
    for key in BAD:
        try:
            point = decoded(key)
        except ValueError:  # this y belongs to no point
            continue
        if order(point) <= 8:
            small.add(point)
    assert sorted(map(order, small)) == [1, 2, 4, 4, 8, 8, 8, 8]
    for x, y in small:
        forms = [each | sign for each in (y, y + P) if each < SIGN for sign in (0, SIGN)]
        assert {form.to_bytes(KEY_BYTES, "little") for form in forms} <= set(BAD), (x, y)


@pytest.mark.parametrize(
    "key",
    [
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",  # RFC 8032, section 7.1, tests 1 to 3
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "5866666666666666666666666666666666666666666666666666666666666666",  # the base point
        "ebffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",  # y = p - 2
    ],
)
def test_another_key_is_a_key(key: str) -> None:
    assert is_public_key(bytes.fromhex(key))


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_has_32_bytes(size: int) -> None:
    assert not is_public_key(bytes([7]) * size)
