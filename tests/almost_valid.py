"""Hypothesis strategies for bytes that are almost a valid message."""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from waggle_lab.security.mutation import mutated


def almost_valid(valid: tuple[bytes, ...]) -> SearchStrategy[bytes]:
    """Any bytes; a valid message with bytes changed, inserted, removed or doubled; one with parts swapped, nested or removed."""
    return st.one_of(st.binary(max_size=400), _bytes_changed(valid), _parts_changed(valid))


@st.composite
def _bytes_changed(draw: DrawFn, valid: tuple[bytes, ...]) -> bytes:
    changed = bytearray(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(1, 4))):
        first = draw(st.integers(0, len(changed)))
        last = draw(st.integers(first, min(len(changed), first + 40)))
        put = draw(st.one_of(st.just(b""), st.just(bytes(changed[first:last]) * 2), st.binary(max_size=9)))
        changed[first:last] = put
    return bytes(changed)


@st.composite
def _parts_changed(draw: DrawFn, valid: tuple[bytes, ...]) -> bytes:
    changed = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(1, 3))):
        changed = mutated(changed, draw(st.randoms(use_true_random=False))) or changed
    return changed
