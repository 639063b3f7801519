"""Sampling noise as a function of (seed, round, question, completion): there is no generator state to save or to lose."""

import numpy as np
from numpy.typing import NDArray

# A number never changes its meaning: a restarted node must draw the same again.
STREAMS = {
    "sample": 1,
    "draw": 2,
    "choose": 3,
    "held_out": 4,
    "weather": 5,
    "fair": 6,
    "adapter": 7,
    "rounding": 8,
    "exam": 9,
    "export": 10,
    "restored": 11,
    "form": 12,
}


def generator(seed: int, stream: str, *key: int) -> np.random.Generator:
    """The generator of one named stream. Equal arguments give equal numbers on every machine (Philox, counter-based)."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, STREAMS[stream], *key])))


def uniforms(
    seed: int, stream: str, number: int, questions: int, group_size: int, length: int, *, first: int = 0
) -> NDArray[np.float32]:
    """Numbers in [0, 1) that pick tokens, (questions * group_size, length): one row for each completion of a round.

    `first` is the number of the first question in the round.
    """
    rows = [
        generator(seed, stream, number, question, completion).random(length, dtype=np.float32)
        for question in range(first, first + questions)
        for completion in range(group_size)
    ]
    return np.array(rows, np.float32).reshape(len(rows), length)
