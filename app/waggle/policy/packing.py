"""Packing: where each token of a batch stands. Products see the real tokens in a line, attention padded rows of like length."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from waggle.rl.batch import Floats, Ids, Written

PROMPT, PADDING = -1, -2  # owners of tokens that belong to no completion
BUCKETS = 3  # of rows of like length: little padding in attention, few calls


@dataclass(frozen=True)
class Row:
    """A prompt and then each completion, whose positions restart after the prompt; each sees the prompt and itself only.

    That gives the same gradient as G separate sequences, and costs the prompt once.
    """

    tokens: NDArray[np.int64]
    positions: NDArray[np.int64]
    owner: NDArray[np.int64]  # the completion's number, or PROMPT
    sources: NDArray[np.int64]  # for every completion token the place that predicts it


def prompt_row(prompt: Ids) -> Row:
    """A prompt alone; its last token predicts what comes."""
    count = len(prompt)
    return Row(prompt.astype(np.int64), np.arange(count), np.full(count, PROMPT), np.array([count - 1]))


def group_row(text: Written) -> Row:
    """A group as one row."""
    start = len(text.prompt)
    lengths = [len(ids) for ids in text.completions]
    offsets = np.concatenate([np.arange(length) for length in lengths])
    first = start + np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
    return Row(
        tokens=np.concatenate([text.prompt, *text.completions]).astype(np.int64),
        positions=np.concatenate([np.arange(start), start + offsets]),
        owner=np.concatenate([np.full(start, PROMPT), np.repeat(np.arange(len(lengths)), lengths)]),
        sources=np.where(offsets == 0, start - 1, first + offsets - 1),
    )


@dataclass(frozen=True)
class _Bucket:
    cells: torch.Tensor  # (B * L,) which packed token stands where; padding points at token 0
    mask: torch.Tensor  # (B, 1, L, L) added to the scores
    rows: int
    longest: int


class Packing:
    """Rows in a line: `tokens` and `positions` (T,); `sources` (N,) predict what follows, `targets` (N,) completion tokens."""

    def __init__(self, rows: Sequence[Row], device: torch.device, *, buckets: int = BUCKETS) -> None:
        starts = np.cumsum([0, *[len(row.tokens) for row in rows]])[:-1]

        def place(values: NDArray[np.int64]) -> torch.Tensor:
            return torch.from_numpy(values).to(device)

        self.tokens = place(np.concatenate([row.tokens for row in rows]))
        self.positions = place(np.concatenate([row.positions for row in rows]))
        self.sources = place(np.concatenate([row.sources + at for row, at in zip(rows, starts, strict=True)]))
        self.targets = place(np.concatenate([row.tokens[row.owner != PROMPT] for row in rows]))
        self._lengths = [len(row.sources) for row in rows]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].tokens))
        size = -(-len(rows) // buckets)
        parts = [order[first : first + size] for first in range(0, len(rows), size)]
        self._buckets = [_bucket([rows[i] for i in part], [int(starts[i]) for i in part], device) for part in parts]
        self._back = place(_way_back(rows, starts, parts))

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Attention within each row: (T, heads, width) -> (T, heads * width)."""
        outputs = []
        for bucket in self._buckets:
            queries, keys, values = (self._grid(part, bucket) for part in (q, k, v))
            found = attention(queries, keys, values, bucket.mask)
            outputs.append(found.transpose(1, 2).flatten(0, 1).flatten(1))
        return torch.cat(outputs).index_select(0, self._back)

    def split(self, found: torch.Tensor) -> list[Floats]:
        """(N,) as an array for each row."""
        return list(np.split(found.cpu().numpy().copy(), np.cumsum(self._lengths)[:-1]))

    @staticmethod
    def _grid(part: torch.Tensor, bucket: _Bucket) -> torch.Tensor:
        """(T, heads, width) -> (B, heads, L, width)."""
        return part.index_select(0, bucket.cells).view(bucket.rows, bucket.longest, *part.shape[1:]).transpose(1, 2)


def attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Scaled dot products over (B, heads, L, width), where several query heads may share the keys and values of one."""
    if queries.is_cuda:  # with a mask and shared heads CUDA would write out all scores
        times = queries.shape[1] // keys.shape[1]
        keys, values = keys.repeat_interleave(times, 1), values.repeat_interleave(times, 1)
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, enable_gqa=True)


def _bucket(rows: Sequence[Row], starts: Sequence[int], device: torch.device) -> _Bucket:
    longest = max(len(row.tokens) for row in rows)
    cells = np.zeros((len(rows), longest), np.int64)
    owner = np.full((len(rows), longest), PADDING)
    for i, (row, at) in enumerate(zip(rows, starts, strict=True)):
        cells[i, : len(row.tokens)] = at + np.arange(len(row.tokens))
        owner[i, : len(row.tokens)] = row.owner
    sees = (owner[:, None, :] == PROMPT) | (owner[:, None, :] == owner[:, :, None])
    sees &= np.tri(longest, dtype=np.bool_)
    mask = torch.zeros(sees.shape, device=device).masked_fill_(torch.from_numpy(~sees).to(device), -torch.inf)
    return _Bucket(torch.from_numpy(cells.ravel()).to(device), mask[:, None], len(rows), longest)


def _way_back(rows: Sequence[Row], starts: NDArray[np.int64], parts: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """(T,) where in the buckets' outputs each packed token stands."""
    back = np.zeros(sum(len(row.tokens) for row in rows), np.int64)
    before = 0
    for part in parts:
        longest = max(len(rows[i].tokens) for i in part)
        for i in part:
            count = len(rows[i].tokens)
            back[starts[i] : starts[i] + count] = before + np.arange(count)
            before += longest
    return back
