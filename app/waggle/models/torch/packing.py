"""Packing in torch: the layout of a batch on a device, and attention within its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from waggle.models.shared.packing import BUCKETS, Row, lay_out
from waggle.models.torch.model import TorchModel
from waggle.rl.batch import Floats

ALIGNED = 8  # elements: CUDA copies a mask with other row starts, once in every layer


@dataclass(frozen=True)
class _Grid:
    queries: torch.Tensor  # (B * Q,)
    keys: torch.Tensor  # (B * K,)
    masks: Mapping[int | None, torch.Tensor]  # by sliding window: (B, 1, times * Q, K) added to the scores
    rows: int


class Packing:
    """A `Layout` (models/shared/packing.py) on a device, for the attention of a model."""

    def __init__(self, rows: Sequence[Row], device: torch.device, model: TorchModel, *, buckets: int = BUCKETS) -> None:
        self._layout = layout = lay_out(rows, buckets)
        self._windows = model.configuration.windows_within(layout.longest)  # by layer

        def place(values: NDArray[np.int64]) -> torch.Tensor:
            return torch.from_numpy(values).to(device)

        def mask(sees: NDArray[np.bool_]) -> torch.Tensor:
            return _mask(torch.from_numpy(~sees).to(device), model.precision, model.sharing_heads)

        self.tokens, self.positions = place(layout.tokens), place(layout.positions)
        self.sources, self.targets = place(layout.sources), place(layout.targets)
        self._grids = [
            _Grid(
                place(bucket.queries),
                place(bucket.keys),
                {window: mask(layout.sees(bucket, window)) for window in set(self._windows)},
                bucket.rows,
            )
            for bucket in layout.buckets
        ]
        self._back = place(layout.back)

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Attention within each row: (T, heads, width) -> (T, heads * width)."""
        outputs, window = [], self._windows[layer]
        for grid in self._grids:
            queries = _spread(q, grid.queries, grid.rows)
            attended = attention(queries, _spread(k, grid.keys, grid.rows), _spread(v, grid.keys, grid.rows), grid.masks[window])
            outputs.append(attended.transpose(1, 2).flatten(0, 1).flatten(1))
        return torch.cat(outputs).index_select(0, self._back)

    def split(self, values: torch.Tensor) -> list[Floats]:
        """(N,) as an array for each row."""
        return self._layout.split(values.cpu().numpy().copy())


def attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Scaled dot-product attention over (B, heads, Q, width), where `times` query heads share one head of keys and values.

    Queries of heads that share are stacked, as times * Q queries of one head, so that keys and values are not copied.
    """
    batch, heads, length, width = queries.shape
    together = queries.reshape(batch, keys.shape[1], -1, width)
    if queries.device.type == "cpu" and queries.dtype == torch.bfloat16:  # torch's own kernel is slower here than its parts
        scores = torch.softmax((together * width**-0.5) @ keys.transpose(-1, -2) + mask, -1)
        return (scores @ values).view(batch, heads, length, width)
    attended = F.scaled_dot_product_attention(together, keys, values, attn_mask=mask)
    return attended.reshape(batch, heads, length, width)  # reshape, because CUDA's result is not contiguous


def _spread(part: torch.Tensor, cells: torch.Tensor, rows: int) -> torch.Tensor:
    """(T, heads, width) -> (B, heads, L, width)."""
    return part.index_select(0, cells).view(rows, -1, *part.shape[1:]).transpose(1, 2)


def _mask(closed: torch.Tensor, precision: torch.dtype, times: int) -> torch.Tensor:
    """What is added to the scores (B, 1, times * Q, K) where `closed` (B, Q, K) forbids to look, for `times` query heads."""
    rows, length, width = closed.shape
    aligned = ALIGNED if closed.device.type == "cuda" else 1
    mask = torch.zeros((rows, length, -(-width // aligned) * aligned), device=closed.device, dtype=precision)
    mask[..., :width].masked_fill_(closed, -torch.inf)
    return mask.repeat(1, times, 1)[:, None, :, :width]
