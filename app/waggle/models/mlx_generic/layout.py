"""How a group runs through a model of mlx-lm: its prompt once, in padded rows, or row by row.

shared   the prompt once; then the completions as rows, padded to the right, each after a copy of the prompt's cache
rows     the prompt with each completion as a row, padded to the right, without a cache
row      each of these rows alone

Nothing is masked: no token reads what comes after it. Gradients flow through the cache to the prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from waggle.models.mlx.model import Weights
from waggle.models.mlx.packing import index_array
from waggle.models.mlx_generic import caches
from waggle.models.mlx_generic.model import MlxLmModel
from waggle.rl.batch import Floats, Ids, TokenizedGroup

Layout = Literal["shared", "rows", "row"]
LAYOUTS: tuple[Layout, ...] = ("shared", "rows", "row")  # from the fastest to the one that is always right
FEWEST = 2  # tokens in a pass after a cache: for a single one, some modules take kernels without a gradient


@dataclass(frozen=True)
class CompletionTargets:
    """The completion tokens (N,) of some groups, and how many of them belong to each."""

    targets: mx.array
    lengths: tuple[int, ...]

    def split(self, values: mx.array) -> list[Floats]:
        """(N,) as an array for each group."""
        return list(np.split(np.array(values, np.float32), np.cumsum(self.lengths)[:-1]))


def targets_of(texts: Sequence[TokenizedGroup]) -> CompletionTargets:
    """The completion tokens of some groups."""
    flat = np.concatenate([tokens for text in texts for tokens in text.completions]).astype(np.int64)
    return CompletionTargets(index_array(flat), tuple(sum(map(len, text.completions)) for text in texts))


def hidden_states(model: MlxLmModel, weights: Weights, text: TokenizedGroup, layout: Layout) -> mx.array:
    """The hidden states (N, D) that predict the completion tokens of a group."""
    if layout == "shared":
        return _after_one_prompt(model, weights, text)
    if layout == "rows":
        return _padded(model, weights, text)
    parts = [_padded(model, weights, text.part(i, i + 1)) for i in range(len(text.completions))]
    return mx.concatenate(parts)


def _after_one_prompt(model: MlxLmModel, weights: Weights, text: TokenizedGroup) -> mx.array:
    grown = caches.empty_for_learning(model.network)
    last = model.hidden(weights, index_array(text.prompt[None].astype(np.int64)), grown)[:, -1:]  # (1, 1, D)
    count, lengths = len(text.completions), [len(tokens) for tokens in text.completions]
    states = mx.repeat(last, count, 0)
    if max(lengths) > 1:
        tokens = _rows([tokens[:-1] for tokens in text.completions], max(FEWEST, max(lengths) - 1))
        grown = caches.select(grown, mx.zeros(count, mx.int32))
        states = mx.concatenate([states, model.hidden(weights, tokens, grown)], 1)
    return _flat(states, lengths, 0)


def _padded(model: MlxLmModel, weights: Weights, text: TokenizedGroup) -> mx.array:
    start, lengths = len(text.prompt), [len(tokens) for tokens in text.completions]
    whole = [np.concatenate([text.prompt, tokens]) for tokens in text.completions]
    return _flat(model.hidden(weights, _rows(whole, start + max(lengths))), lengths, start - 1)


def _rows(texts: Sequence[Ids], width: int) -> mx.array:
    """Texts as rows (B, width), padded to the right with what nothing reads."""
    tokens: NDArray[np.int64] = np.zeros((len(texts), width), np.int64)
    for row, text in zip(tokens, texts, strict=True):
        row[: len(text)] = text
    return index_array(tokens)


def _flat(states: mx.array, lengths: Sequence[int], first: int) -> mx.array:
    """(B, T, D) -> (N, D): of each row as many states as its completion has tokens, from number `first` on."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = np.concatenate([np.arange(first, first + length) for length in lengths])
    return states[index_array(rows), index_array(columns)]
