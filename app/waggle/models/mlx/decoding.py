"""Decoding in MLX: each prompt is prefilled once, then G rows continue it with KV caches of their own."""

from collections.abc import Sequence

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from waggle.models.mlx.model import MlxModel, Weights
from waggle.models.mlx.packing import Packing, attention, index_array
from waggle.models.mlx.token_sampling import sample_tokens
from waggle.models.shared.decoding import DROP_BELOW, prefill_batches
from waggle.models.shared.packing import prompt_cells, prompt_row
from waggle.rl.batch import Floats, Ids, SamplingParams


class MlxDecodingBatch:
    """The rows of one call of `sample`; see `shared.decoding.DecodingBatch`."""

    drop_below = DROP_BELOW

    def __init__(
        self, model: MlxModel, weights: Weights, prompts: Sequence[Ids], group_size: int, params: SamplingParams
    ) -> None:
        self._model, self._weights, self._params = model, weights, params
        self._caches: list[tuple[mx.array, mx.array]] = []  # keys and values, (rows, heads, L + max_new, width)
        self._longest = max(len(prompt) for prompt in prompts)  # L
        lengths = np.repeat([len(prompt) for prompt in prompts], group_size)
        self._ahead = index_array(lengths)  # the position of a row's first new token
        columns = np.arange(self._longest + params.max_new)
        sees = (columns < lengths[:, None]) | (columns >= self._longest)  # masks the padding between prompt and completion
        self._sees = mx.array(sees[:, None, None])
        self._windows = model.configuration.windows_within(self._longest + params.max_new)  # by layer
        self._columns = mx.arange(self._longest + params.max_new)
        self._logits = self._prefill(prompts, group_size)
        self._picked = self._ahead  # each row's newest token, after the first pick

    def _prefill(self, prompts: Sequence[Ids], group_size: int) -> mx.array:
        """The logits (rows, V) after each row's prompt."""
        last, first = list[mx.array](), 0
        for some in prefill_batches(prompts, self._model.bytes_per_layer):
            self._params.pause_point()
            last.append(self._run(some, first, group_size, len(prompts)))
            mx.eval(last[-1], self._caches)
            first += len(some)
        logits = self._model.logits(self._weights, mx.concatenate(last), self._params.temperature)
        return mx.repeat(logits, group_size, 0)

    def _run(self, prompts: Sequence[Ids], first: int, group_size: int, count: int) -> mx.array:
        """Prefill prompts from number `first` on: fill their caches, and return the hidden states (P, D) after each."""
        packing = Packing([prompt_row(prompt) for prompt in prompts], self._model.configuration, buckets=1)
        cells = prompt_cells(prompts)  # (P, T)
        rows, columns = slice(first * group_size, (first + len(prompts)) * group_size), cells.shape[1]

        def attend(layer: int, q: mx.array, k: mx.array, v: mx.array) -> mx.array:
            if layer == len(self._caches):
                shape = (count * group_size, k.shape[1], self._longest + self._params.max_new, k.shape[2])
                self._caches.append((mx.zeros(shape, k.dtype), mx.zeros(shape, v.dtype)))
            for cache, part in zip(self._caches[layer], (k, v), strict=True):
                once = part[index_array(cells.ravel())].reshape(*cells.shape, *part.shape[1:]).swapaxes(1, 2)
                cache[rows, :, :columns] = mx.repeat(once, group_size, 0)
            return packing.attend(layer, q, k, v)

        return self._model.hidden(self._weights, packing.tokens, packing.positions, attend)[packing.sources]

    def pick(self, uniforms: Floats) -> tuple[NDArray[np.int64], Floats]:
        mx.eval(self._logits, self._caches)
        tokens, likely = sample_tokens(self._logits, uniforms, self._params.top_p)
        self._picked = index_array(tokens)
        return tokens, likely

    def keep(self, rows: NDArray[np.int64]) -> None:
        keep = index_array(rows)
        for i, (keys, values) in enumerate(self._caches):  # layer by layer, so that only one old cache exists beside the new ones
            self._caches[i] = (keys[keep], values[keep])
            del keys, values
            mx.eval(self._caches[i])
        self._ahead, self._sees, self._picked = self._ahead[keep], self._sees[keep], self._picked[keep]

    def advance(self, column: int) -> None:
        at = self._longest + column
        sees = {window: self._sees_within(window, at) for window in set(self._windows)}

        def attend(layer: int, q: mx.array, k: mx.array, v: mx.array) -> mx.array:
            keys, values = self._caches[layer]
            keys[:, :, at], values[:, :, at] = k, v
            mask = sees[self._windows[layer]]
            return attention(q[:, :, None], keys[:, :, : at + 1], values[:, :, : at + 1], mask).reshape(len(q), -1)

        hidden = self._model.hidden(self._weights, self._picked, self._ahead + column, attend)
        self._logits = self._model.logits(self._weights, hidden, self._params.temperature)

    def _sees_within(self, window: int | None, at: int) -> mx.array:
        """(rows, 1, 1, at + 1): which columns of the cache a query in column `at` sees."""
        sees = self._sees[..., : at + 1]
        if window is None:
            return sees
        columns, ends = self._columns[: at + 1], self._ahead[:, None, None, None]
        ahead = mx.where(columns < self._longest, ends + (at - self._longest) - columns, at - columns)  # from each column to it
        return sees & (ahead < window)
