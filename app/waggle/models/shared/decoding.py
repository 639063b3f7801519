"""Decoding: the sampling loop of every backend, with noise from outside; finished rows are dropped."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from waggle.rl.batch import Floats, Ids, SampledCompletion, SamplingParams

PREFILL_BYTES = 1 << 26  # of one layer's activations: so many tokens of prompts are run together
DROP_BELOW = 0.7  # where each row costs time


class DecodingBatch(Protocol):
    """Completions at work in a backend: their caches, and the logits that predict the next token of each row."""

    drop_below: float  # rows are packed anew when so small a share of them is still at work

    def pick(self, uniforms: Floats) -> tuple[NDArray[np.int64], Floats]:
        """Pick a token for every row by the inverse of its distribution: (rows,) tokens and their log-probs."""
        ...

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Leave all other rows out."""
        ...

    def advance(self, column: int) -> None:
        """Feed every row the token picked for it, its `column`-th new one."""
        ...


def prefilled_together(prompts: Sequence[Ids], bytes_per_layer: int) -> Iterator[list[Ids]]:
    """So many prompts at a time that memory is bounded and a pause need not wait long; a prompt is never divided."""
    room, some = max(1, PREFILL_BYTES // bytes_per_layer), list[Ids]()
    for prompt in prompts:
        if some and sum(map(len, some)) + len(prompt) > room:
            yield some
            some = []
        some.append(prompt)
    yield some


def decode(rows: DecodingBatch, uniforms: Floats, params: SamplingParams) -> list[SampledCompletion]:
    """Decode until every row ended or reached the limit; `uniforms` is (N, max_new)."""
    count = len(uniforms)
    tokens, logp = np.zeros((count, params.max_new), np.int32), np.zeros((count, params.max_new), np.float32)
    lengths, ended = np.zeros(count, np.int32), np.zeros(count, np.bool_)
    here = np.arange(count)  # which completion each row belongs to
    live = np.ones(count, np.bool_)  # of those rows
    for column in range(params.max_new):
        params.pause_point()
        picked, scores = rows.pick(uniforms[here, column])
        tokens[here[live], column] = picked[live]
        logp[here[live], column] = scores[live]
        lengths[here[live]] = column + 1
        stops = live & (picked == params.stop)
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
