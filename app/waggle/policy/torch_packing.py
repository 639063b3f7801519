"""Packing on a torch device: where the tokens of a batch stand, and attention within their rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from waggle.policy.packing import BUCKETS, Bucket, Row, lay_out
from waggle.rl.batch import Floats


@dataclass(frozen=True)
class _Grid:
    cells: torch.Tensor  # (B * L,)
    mask: torch.Tensor  # (B, 1, L, L) added to the scores
    rows: int
    longest: int


class Packing:
    """A layout of rows on a device; see `packing.Layout`."""

    def __init__(
        self, rows: Sequence[Row], device: torch.device, precision: torch.dtype = torch.float32, *, buckets: int = BUCKETS
    ) -> None:
        self._layout = lay_out(rows, buckets)

        def place(values: NDArray[np.int64]) -> torch.Tensor:
            return torch.from_numpy(values).to(device)

        self.tokens, self.positions = place(self._layout.tokens), place(self._layout.positions)
        self.sources, self.targets = place(self._layout.sources), place(self._layout.targets)
        self._grids = [_grid(bucket, device, precision) for bucket in self._layout.buckets]
        self._back = place(self._layout.back)

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Attention within each row: (T, heads, width) -> (T, heads * width)."""
        outputs = []
        for grid in self._grids:
            queries, keys, values = (_spread(part, grid) for part in (q, k, v))
            found = attention(queries, keys, values, grid.mask)
            outputs.append(found.transpose(1, 2).flatten(0, 1).flatten(1))
        return torch.cat(outputs).index_select(0, self._back)

    def split(self, found: torch.Tensor) -> list[Floats]:
        """(N,) as an array for each row."""
        return self._layout.split(found.cpu().numpy().copy())


def attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Scaled dot products over (B, heads, L, width), where several query heads may share the keys and values of one."""
    if queries.is_cuda:  # with a mask and shared heads CUDA would write out all scores
        times = queries.shape[1] // keys.shape[1]
        keys, values = keys.repeat_interleave(times, 1), values.repeat_interleave(times, 1)
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, enable_gqa=True)


def _spread(part: torch.Tensor, grid: _Grid) -> torch.Tensor:
    """(T, heads, width) -> (B, heads, L, width)."""
    return part.index_select(0, grid.cells).view(grid.rows, grid.longest, *part.shape[1:]).transpose(1, 2)


def _grid(bucket: Bucket, device: torch.device, precision: torch.dtype) -> _Grid:
    closed = torch.from_numpy(~bucket.sees).to(device)
    mask = torch.zeros(closed.shape, device=device, dtype=precision).masked_fill_(closed, -torch.inf)
    return _Grid(torch.from_numpy(bucket.cells).to(device), mask[:, None], bucket.rows, bucket.longest)
