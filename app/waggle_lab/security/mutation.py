"""Mutations that keep the format: a JSON or msgpack message with one part replaced, removed, doubled, moved or nested.

A decoder rejects random bytes at once; these mutations reach the checks behind its first one.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1 << 31, (1 << 63) - 1, -(1 << 63), (1 << 64) - 1, 0.5, -0.0, 1e308, 5e-324,
    "", "\0", "\u202e", "\ufffd", "{question}", "é" * 99, "x" * 4097, "/", b"", bytes(32), bytes(38), b"\xff" * 64,
    [], {}, [[]] * 17, {"": 0}, {"type": "Stop", "id": "1"},
)  # fmt: skip
DEPTHS = (1, 2, 30, 300)  # of nesting

Place = tuple[Any, Any]  # a list or dict, and an index or key in it


def mutated(data: bytes, random: Random) -> bytes | None:
    """`data` with one part of its message changed; None if it is no message."""
    lines = data.split(b"\n")
    line_number = random.randrange(len(lines))
    for message, codec in ((data, msgspec.msgpack), (data, msgspec.json), (lines[line_number], msgspec.json)):
        try:
            root = [codec.decode(message)]
            _change(root, random)
            encoded = codec.encode(root[0]) if root else b""
        except (
            ValueError,
            TypeError,
            OverflowError,
            RecursionError,
        ):  # not a message of this codec, or the result cannot be encoded
            continue
        return b"\n".join((*lines[:line_number], encoded, *lines[line_number + 1 :])) if message is not data else encoded
    return None


def _change(root: list[Any], random: Random) -> None:
    places = list(_places(root))
    container, key = random.choice(places)
    other, other_key = random.choice(places)
    match random.randrange(6):
        case 0:
            container[key] = random.choice(ODD_VALUES)
        case 1:
            container[key] = other[other_key] if other is not container else random.choice(ODD_VALUES)
        case 2:
            del container[key]
        case 3:
            _add(container, key, random)
        case 4:
            container[key] = _nested(container[key], random.choice(DEPTHS))
        case _:
            container[key] = _varied(container[key], random)


def _places(container: Any) -> Iterator[Place]:
    for key in list(container) if isinstance(container, dict) else range(len(container)):
        yield container, key
        if isinstance(container[key], list | dict):
            yield from _places(container[key])


def _add(container: Any, key: Any, random: Random) -> None:
    """Repeat a part once or many times."""
    if isinstance(container, dict):
        container[f"{key}{random.randrange(9)}"] = container[key]
    else:
        container[key:key] = [container[key]] * random.choice((1, 1, 2, 16, 129))


def _nested(inner: Any, depth: int) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


def _varied(value: Any, random: Random) -> Any:
    """A variation of a value: a little or much larger, or cut."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + random.choice((-1, 1, 1 << 16)) if random.random() < 0.5 else value * random.choice((-1, 2, 1 << 20))
        case str() | bytes() | list():
            return value * random.choice((2, 400)) if random.random() < 0.5 else value[: len(value) // 2]
        case _:
            return random.choice(ODD_VALUES)
