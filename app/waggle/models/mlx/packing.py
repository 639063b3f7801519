"""Packing in MLX: the layout of a batch, and attention within its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from waggle.models.shared.configuration.model_config import ModelConfig
from waggle.models.shared.packing import BUCKETS, Row, lay_out
from waggle.rl.batch import Floats


@dataclass(frozen=True)
class _Grid:
    queries: mx.array  # (B * Q,)
    keys: mx.array  # (B * K,)
    sees: Mapping[int | None, mx.array]  # by sliding window: (B, 1, Q, K)
    rows: int


class Packing:
    """A `Layout` (models/shared/packing.py) as arrays of MLX, for the attention of a model of this shape."""

    def __init__(self, rows: Sequence[Row], shape: ModelConfig, *, buckets: int = BUCKETS) -> None:
        self._layout = layout = lay_out(rows, buckets)
        self._windows = shape.windows_within(layout.longest)  # by layer
        self.tokens, self.positions = index_array(layout.tokens), index_array(layout.positions)
        self.sources, self.targets = index_array(layout.sources), index_array(layout.targets)
        self._grids = [
            _Grid(
                index_array(bucket.queries),
                index_array(bucket.keys),
                {window: mx.array(layout.sees(bucket, window)[:, None]) for window in set(self._windows)},
                bucket.rows,
            )
            for bucket in layout.buckets
        ]
        self._back = index_array(layout.back)

    def attend(self, layer: int, q: mx.array, k: mx.array, v: mx.array) -> mx.array:
        """Attention within each row: (T, heads, width) -> (T, heads * width)."""
        outputs, window = [], self._windows[layer]
        for grid in self._grids:
            queries = _spread(q, grid.queries, grid.rows)
            attended = attention(queries, _spread(k, grid.keys, grid.rows), _spread(v, grid.keys, grid.rows), grid.sees[window])
            outputs.append(attended.swapaxes(1, 2).reshape(len(grid.queries), -1))
        return mx.concatenate(outputs)[self._back]

    def split(self, values: mx.array) -> list[Floats]:
        """(N,) as an array for each row."""
        return self._layout.split(np.array(values, np.float32))


def index_array(values: NDArray[np.int64]) -> mx.array:
    """Token ids or indices in 32 bits: Metal lacks many operations in 64 bits."""
    return mx.array(values.astype(np.int32))


def attention(queries: mx.array, keys: mx.array, values: mx.array, sees: mx.array) -> mx.array:
    """Scaled dot-product attention over (B, heads, L, width); several query heads may share one head of keys and values."""
    return mx.fast.scaled_dot_product_attention(queries, keys, values, scale=queries.shape[-1] ** -0.5, mask=sees)


def _spread(part: mx.array, cells: mx.array, rows: int) -> mx.array:
    """(T, heads, width) -> (B, heads, L, width)."""
    return part[cells].reshape(rows, -1, *part.shape[1:]).swapaxes(1, 2)
