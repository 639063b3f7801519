"""Decoding with a model of mlx-lm: each prompt is prefilled once, and its cache repeated for its G rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from waggle.models.mlx.model import Weights
from waggle.models.mlx.packing import index_array
from waggle.models.mlx.token_sampling import sample_tokens
from waggle.models.mlx_generic import caches
from waggle.models.mlx_generic.caches import Caches
from waggle.models.mlx_generic.model import MlxLmModel
from waggle.models.shared.decoding import DROP_BELOW, prefill_batches
from waggle.rl.batch import Floats, Ids, SamplingParams

# merged   prompts of any length together: each is prefilled alone, then their caches become one batch
# equal    only prompts of equal length together
# again    as equal, and without a cache: the whole text runs again for every token
Caching = Literal["merged", "equal", "again"]
CACHINGS: tuple[Caching, ...] = ("merged", "equal", "again")  # from the fastest to the one that is always right


@dataclass
class _Part:
    """Rows that run together. `rows` are their numbers among all rows, `text` (R, L) is what they read so far."""

    rows: NDArray[np.int64]
    text: mx.array | None
    cache: Caches | None
    logits: mx.array  # (R, V) of the next token, divided by the temperature


class MlxLmDecodingBatch:
    """The rows of one call of `sample`; see `shared.decoding.DecodingBatch`."""

    drop_below = DROP_BELOW

    def __init__(
        self,
        model: MlxLmModel,
        weights: Weights,
        caching: Caching,
        prompts: Sequence[Ids],
        group_size: int,
        params: SamplingParams,
    ) -> None:
        self._model, self._weights, self._caching, self._params = model, weights, caching, params
        self._group_size = group_size
        self._picked: NDArray[np.int64] = np.zeros(len(prompts) * group_size, np.int64)  # each row's newest token
        self._parts = [self._merged(prompts)] if caching == "merged" else self._of_equal_length(prompts)

    def _merged(self, prompts: Sequence[Ids]) -> _Part:
        several, logits = list[Caches](), list[mx.array]()
        for prompt in prompts:
            cache, last = self._prefill([prompt])
            several.append(cache)
            logits.append(last)
        rows = self._rows_of(len(prompts))
        return _Part(np.arange(len(self._picked)), None, caches.select(caches.merge(several), rows), mx.concatenate(logits)[rows])

    def _of_equal_length(self, prompts: Sequence[Ids]) -> list[_Part]:
        parts = []
        for length in sorted({len(prompt) for prompt in prompts}):
            numbers = [number for number, prompt in enumerate(prompts) if len(prompt) == length]
            first = 0
            for some in prefill_batches([prompts[number] for number in numbers], self._model.bytes_per_layer):
                cache, logits = self._prefill(some)
                rows, here = self._rows_of(len(some)), np.asarray(numbers[first : first + len(some)])
                parts.append(
                    _Part(
                        (here[:, None] * self._group_size + np.arange(self._group_size)).ravel(),
                        index_array(np.stack(some).astype(np.int64))[rows] if self._caching == "again" else None,
                        caches.select(cache, rows) if self._caching == "equal" else None,
                        logits[rows],
                    )
                )
                first += len(some)
        return parts

    def _rows_of(self, prompts: int) -> mx.array:
        return index_array(np.repeat(np.arange(prompts), self._group_size))

    def _prefill(self, prompts: Sequence[Ids]) -> tuple[Caches, mx.array]:
        """The caches of prompts of equal length, and the logits (P, V) after each."""
        self._params.pause_point()
        cache = caches.empty(self._model.network)
        tokens = index_array(np.stack(prompts).astype(np.int64))
        hidden = self._model.hidden(self._weights, tokens, None if self._caching == "again" else cache)
        logits = self._cooled(hidden[:, -1])
        mx.eval(logits, caches.arrays_of(cache))
        return cache, logits

    def pick(self, uniforms: Floats) -> tuple[NDArray[np.int64], Floats]:
        likely = np.zeros(len(uniforms), np.float32)
        for part in self._parts:
            mx.eval(part.logits, caches.arrays_of(part.cache))
            self._picked[part.rows], likely[part.rows] = sample_tokens(part.logits, uniforms[part.rows], self._params.top_p)
        return self._picked.copy(), likely

    def logits(self) -> NDArray[np.float32]:
        """The logits (rows, V) of the next tokens."""
        result = np.zeros((len(self._picked), self._parts[0].logits.shape[1]), np.float32)
        for part in self._parts:
            result[part.rows] = np.array(part.logits)
        return result

    def force(self, tokens: NDArray[np.int64]) -> None:
        """Pick these tokens (rows,)."""
        self._picked = tokens

    def keep(self, rows: NDArray[np.int64]) -> None:
        places = np.full(len(self._picked), -1)
        places[rows] = np.arange(len(rows))
        self._picked = self._picked[rows]
        parts = []
        for part in self._parts:
            stay = np.flatnonzero(places[part.rows] >= 0)
            if len(stay):
                chosen = index_array(stay)
                part.rows = places[part.rows[stay]]
                part.text = None if part.text is None else part.text[chosen]
                part.cache = caches.select(part.cache, chosen)
                mx.eval(caches.arrays_of(part.cache))
                parts.append(part)
        self._parts = parts

    def advance(self, column: int) -> None:
        for part in self._parts:
            tokens = index_array(self._picked[part.rows])[:, None]
            if part.text is not None:
                part.text = mx.concatenate([part.text, tokens], 1)
            hidden = self._model.hidden(self._weights, tokens if part.text is None else part.text, part.cache)
            part.logits = self._cooled(hidden[:, -1])

    def _cooled(self, hidden: mx.array) -> mx.array:
        logits = self._model.logits(self._weights, hidden)
        return logits if self._params.temperature == 1.0 else logits / self._params.temperature
