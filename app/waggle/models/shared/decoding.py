"""Decoding: the sampling loop of every backend. Noise comes from the caller; finished rows are dropped."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from waggle.rl.batch import Floats, Ids, SampledCompletion, SamplingParams

PREFILL_BYTES = 1 << 26  # activations of one layer: bounds the prompts that are prefilled together
DROP_BELOW = 0.7  # for devices on which every row costs time


class DecodingBatch(Protocol):
    """Rows that are being decoded in a backend: their KV caches, and the logits of each row's next token."""

    drop_below: float  # finished rows are dropped when at most this share is unfinished

    def pick(self, uniforms: Floats) -> tuple[NDArray[np.int64], Floats]:
        """Pick a token for every row by inverse transform sampling: (rows,) tokens and their log-probs."""
        ...

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Drop all other rows."""
        ...

    def advance(self, column: int) -> None:
        """Run the model on the tokens that were picked, which are number `column` of each completion."""
        ...


def prefill_batches(prompts: Sequence[Ids], bytes_per_layer: int) -> Iterator[list[Ids]]:
    """Batches of prompts that bound memory and the time between pause points. A prompt is never split."""
    room, some = max(1, PREFILL_BYTES // bytes_per_layer), list[Ids]()
    for prompt in prompts:
        if some and sum(map(len, some)) + len(prompt) > room:
            yield some
            some = []
        some.append(prompt)
    yield some


def decode(rows: DecodingBatch, uniforms: Floats, params: SamplingParams) -> list[SampledCompletion]:
    """Decode until every row has ended or reached the limit. `uniforms` is (N, max_new)."""
    count = len(uniforms)
    tokens, logp = np.zeros((count, params.max_new), np.int32), np.zeros((count, params.max_new), np.float32)
    lengths, ended = np.zeros(count, np.int32), np.zeros(count, np.bool_)
    here = np.arange(count)  # (rows,) the completion of each row
    live = np.ones(count, np.bool_)  # (rows,) unfinished
    stop_tokens = np.asarray(params.stops, np.int64)
    for column in range(params.max_new):
        params.pause_point()
        picked, scores = rows.pick(uniforms[here, column])
        tokens[here[live], column] = picked[live]
        logp[here[live], column] = scores[live]
        lengths[here[live]] = column + 1
        stops = live & (picked[:, None] == stop_tokens).any(axis=1)
        ended[here[stops]] = True
        live &= ~stops
        params.watch(tokens, lengths, ended)
        if not live.any() or column + 1 == params.max_new:
            break
        if live.mean() <= rows.drop_below:
            rows.keep(np.flatnonzero(live))
            here, live = here[live], live[live]
        rows.advance(column)
    return [
        SampledCompletion(tokens=tokens[i, :length].copy(), logp=logp[i, :length].copy(), ended=bool(ended[i]))
        for i, length in enumerate(lengths)
    ]
