"""Packing: where each token of a batch stands. Products see the real tokens in a line, attention padded rows of like length.

Numpy alone: torch_packing.py and mlx_packing.py put it onto a device.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from waggle.rl.batch import Floats, Ids, Written

PROMPT, PADDING = -1, -2  # owners of tokens that belong to no completion
BUCKETS = 3  # of rows of like length: little padding in attention, few calls
Text = TypeVar("Text", bound=Written)


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
class Bucket:
    """Rows of like length, padded: attention's (B, L)."""

    cells: NDArray[np.int64]  # (B * L,) which packed token stands where; padding points at token 0
    sees: NDArray[np.bool_]  # (B, L, L)
    rows: int
    longest: int


@dataclass(frozen=True)
class Layout:
    """Rows in a line: `tokens` and `positions` (T,); `sources` (N,) predict what follows, `targets` (N,) completion tokens.

    `back` (T,) says where in the outputs of the buckets, one after another, each packed token stands.
    """

    tokens: NDArray[np.int64]
    positions: NDArray[np.int64]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    lengths: tuple[int, ...]  # how many of the N belong to each row
    buckets: tuple[Bucket, ...]
    back: NDArray[np.int64]

    def split(self, found: Floats) -> list[Floats]:
        """(N,) as an array for each row."""
        return list(np.split(found, np.cumsum(self.lengths)[:-1]))


def lay_out(rows: Sequence[Row], buckets: int = BUCKETS) -> Layout:
    """Put rows in a line, and sort them into buckets."""
    starts = np.cumsum([0, *[len(row.tokens) for row in rows]])[:-1]
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].tokens))
    size = -(-len(rows) // buckets)
    parts = [order[first : first + size] for first in range(0, len(rows), size)]
    return Layout(
        tokens=np.concatenate([row.tokens for row in rows]),
        positions=np.concatenate([row.positions for row in rows]),
        sources=np.concatenate([row.sources + at for row, at in zip(rows, starts, strict=True)]),
        targets=np.concatenate([row.tokens[row.owner != PROMPT] for row in rows]),
        lengths=tuple(len(row.sources) for row in rows),
        buckets=tuple(_bucket([rows[i] for i in part], [int(starts[i]) for i in part]) for part in parts),
        back=_way_back(rows, starts, parts),
    )


def parts(texts: Sequence[Text], room: int) -> Iterator[list[Text]]:
    """Groups that are run together: as many as have `room` tokens, at least one."""
    part: list[Text] = []
    used = 0
    for text in texts:
        size = len(text.prompt) + sum(map(len, text.completions))
        if part and used + size > room:
            yield part
            part, used = [], 0
        part.append(text)
        used += size
    if part:
        yield part


def prompt_cells(prompts: Sequence[Ids]) -> NDArray[np.int64]:
    """(P, L): where in the line each place of the padded prompts stands; padding points at token 0."""
    cells = np.zeros((len(prompts), max(map(len, prompts))), np.int64)
    start = 0
    for i, prompt in enumerate(prompts):
        cells[i, : len(prompt)] = np.arange(start, start + len(prompt))
        start += len(prompt)
    return cells


def _bucket(rows: Sequence[Row], starts: Sequence[int]) -> Bucket:
    longest = max(len(row.tokens) for row in rows)
    cells = np.zeros((len(rows), longest), np.int64)
    owner = np.full((len(rows), longest), PADDING)
    for i, (row, at) in enumerate(zip(rows, starts, strict=True)):
        cells[i, : len(row.tokens)] = at + np.arange(len(row.tokens))
        owner[i, : len(row.tokens)] = row.owner
    sees = (owner[:, None, :] == PROMPT) | (owner[:, None, :] == owner[:, :, None])
    sees &= np.tri(longest, dtype=np.bool_)
    return Bucket(cells.ravel(), sees, len(rows), longest)


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
