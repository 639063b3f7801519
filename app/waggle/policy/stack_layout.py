"""Where each token of a stacked batch stands: packed for the products, padded rows of like length for attention."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from waggle.rl.batch import Floats, Written

PROMPT, PADDING = -1, -2  # owners of tokens that belong to no completion
ROWS_AT_ONCE = 3  # groups of rows of like length: less padding in attention, few calls


@dataclass(frozen=True)
class Row:
    """One sequence: a prompt and then each completion, whose positions restart after the prompt."""

    tokens: NDArray[np.int64]
    positions: NDArray[np.int64]
    owner: NDArray[np.int64]  # the completion's number, or PROMPT
    sources: NDArray[np.int64]  # for every completion token the place that predicts it


def prompt_row(prompt: Sequence[int]) -> Row:
    count = len(prompt)
    nowhere = np.zeros(0, np.int64)
    return Row(np.asarray(prompt, np.int64), np.arange(count), np.full(count, PROMPT), nowhere)


def text_row(text: Written) -> Row:
    """A group packed into one row, as TorchPolicy packs it."""
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
    shape: tuple[int, int]  # B, L


class Layout:
    """The rows of every member: `tokens` and `positions` (M, T), `targets` (M, C), padded with 0."""

    def __init__(self, rows: Sequence[Sequence[Row]], *, buckets: int = ROWS_AT_ONCE) -> None:
        self._members = len(rows)
        self._groups = [[len(row.sources) for row in each] for each in rows]
        self.width = max(sum(len(row.tokens) for row in each) for each in rows)  # T
        self.tokens = _padded([np.concatenate([row.tokens for row in each]) for each in rows], self.width)
        self.positions = _padded([np.concatenate([row.positions for row in each]) for each in rows], self.width)
        starts = [np.cumsum([0, *[len(row.tokens) for row in each]]) for each in rows]
        ahead = max(sum(counts) for counts in self._groups)
        shifted = [
            [row.sources + at for row, at in zip(each, start, strict=False)] for each, start in zip(rows, starts, strict=True)
        ]
        self._sources = _padded([np.concatenate(each) for each in shifted], ahead)
        targets = [[row.tokens[row.owner >= 0] for row in each] for each in rows]
        self.targets = _padded([np.concatenate(each) for each in targets], ahead)
        placed = [
            (row, m * self.width + int(at)) for m, each in enumerate(rows) for row, at in zip(each, starts[m], strict=False)
        ]
        placed.sort(key=lambda one: len(one[0].tokens))
        size = -(-len(placed) // buckets)
        parts = [placed[first : first + size] for first in range(0, len(placed), size)]
        self.buckets = [_bucket(part) for part in parts]
        self._back = self._way_back(parts)

    def _way_back(self, parts: Sequence[Sequence[tuple[Row, int]]]) -> torch.Tensor:
        """(M * T,) where in the buckets' outputs each packed token stands."""
        back = np.zeros(self._members * self.width, np.int64)
        before = 0
        for part in parts:
            longest = max(len(row.tokens) for row, _ in part)
            for row, at in part:
                back[at : at + len(row.tokens)] = before + np.arange(len(row.tokens))
                before += longest
        return torch.from_numpy(back)

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Attention within each row: (M, T, heads, width) -> (M, T, heads * width)."""
        flat = [part.reshape(self._members * self.width, *part.shape[2:]) for part in (q, k, v)]
        outputs = []
        for bucket in self.buckets:
            queries, keys, values = (
                part.index_select(0, bucket.cells).view(*bucket.shape, *part.shape[1:]).transpose(1, 2) for part in flat
            )
            found = F.scaled_dot_product_attention(
                queries, keys, values, attn_mask=bucket.mask, enable_gqa=True
            )  # (B, heads, L, width)
            outputs.append(found.transpose(1, 2).flatten(0, 1).flatten(1))
        return torch.cat(outputs).index_select(0, self._back).view(self._members, self.width, -1)

    def sources(self, x: torch.Tensor) -> torch.Tensor:
        """(M, T, D) -> (M, C, D): the places that predict completion tokens."""
        return x[torch.arange(self._members)[:, None], self._sources]

    def split(self, found: torch.Tensor) -> list[Floats]:
        """(C,) of a stack of one as an array for each of its rows."""
        return list(np.split(found.numpy().copy(), np.cumsum(self._groups[0])[:-1]))


def _bucket(part: Sequence[tuple[Row, int]]) -> _Bucket:
    longest = max(len(row.tokens) for row, _ in part)
    cells = np.zeros((len(part), longest), np.int64)
    owner = np.full((len(part), longest), PADDING)
    for i, (row, at) in enumerate(part):
        cells[i, : len(row.tokens)] = at + np.arange(len(row.tokens))
        owner[i, : len(row.tokens)] = row.owner
    sees = (owner[:, None, :] == PROMPT) | (owner[:, None, :] == owner[:, :, None])
    sees &= np.tri(longest, dtype=np.bool_)
    mask = torch.zeros(sees.shape).masked_fill_(torch.from_numpy(~sees), -torch.inf)
    return _Bucket(torch.from_numpy(cells.ravel()), mask[:, None], cells.shape)


def _padded(rows: Sequence[NDArray[np.int64]], width: int) -> torch.Tensor:
    found = np.zeros((len(rows), width), np.int64)
    for i, row in enumerate(rows):
        found[i, : len(row)] = row
    return torch.from_numpy(found)
