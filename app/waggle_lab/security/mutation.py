"""Mutations that keep the form: a JSON or msgpack message with one part replaced, removed, doubled, moved or nested.

Bytes alone seldom get past a decoder's first look; these reach the checks behind it.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1 << 31, (1 << 63) - 1, -(1 << 63), (1 << 64) - 1, 0.5, -0.0, 1e308, 5e-324,
    "", "\0", "\u202e", "\ufffd", "{question}", "é" * 99, "x" * 4097, "/", b"", bytes(32), bytes(38), b"\xff" * 64,
    [], {}, [[]] * 17, {"": 0}, {"type": "Stop", "id": "1"},
)  # fmt: skip
DEPTHS = (1, 2, 30, 300)  # of nesting

Place = tuple[Any, Any]  # a list or dict, and where in it


def mutated(data: bytes, random: Random) -> bytes | None:
    """`data` with one part of its message changed; None where it holds no message."""
    lines = data.split(b"\n")
    number = random.randrange(len(lines))
    for message, codec in ((data, msgspec.msgpack), (data, msgspec.json), (lines[number], msgspec.json)):
        try:
            whole = [codec.decode(message)]
            _change(whole, random)
            made = codec.encode(whole[0]) if whole else b""
        except (ValueError, TypeError, OverflowError, RecursionError):  # no such message, or none that can be written again
            continue
        return b"\n".join((*lines[:number], made, *lines[number + 1 :])) if message is not data else made
    return None


def _change(whole: list[Any], random: Random) -> None:
    places = list(_places(whole))
    container, at = random.choice(places)
    other, there = random.choice(places)
    match random.randrange(6):
        case 0:
            container[at] = random.choice(ODD)
        case 1:
            container[at] = other[there] if other is not container else random.choice(ODD)
        case 2:
            del container[at]
        case 3:
            _add(container, at, random)
        case 4:
            container[at] = _nested(container[at], random.choice(DEPTHS))
        case _:
            container[at] = _stretched(container[at], random)


def _places(container: Any) -> Iterator[Place]:
    for at in list(container) if isinstance(container, dict) else range(len(container)):
        yield container, at
        if isinstance(container[at], list | dict):
            yield from _places(container[at])


def _add(container: Any, at: Any, random: Random) -> None:
    """The same part once more, or many times."""
    if isinstance(container, dict):
        container[f"{at}{random.randrange(9)}"] = container[at]
    else:
        container[at:at] = [container[at]] * random.choice((1, 1, 2, 16, 129))


def _nested(inner: Any, depth: int) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


def _stretched(value: Any, random: Random) -> Any:
    """A neighbour of the value: a little or much larger, or cut."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + random.choice((-1, 1, 1 << 16)) if random.random() < 0.5 else value * random.choice((-1, 2, 1 << 20))
        case str() | bytes() | list():
            return value * random.choice((2, 400)) if random.random() < 0.5 else value[: len(value) // 2]
        case _:
            return random.choice(ODD)
