"""Packing: the layout of a batch. Products see all tokens in a line, without padding; attention sees padded rows of like length.

In numpy; models/torch/packing.py and models/mlx/packing.py put it on a device. See decision 12.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from waggle.rl.batch import Floats, Ids, TokenizedGroup

BUCKETS = 3  # groups of texts of like length: more would mean less padding, but more calls


@dataclass(frozen=True)
class Row:
    """A prompt followed by its completions, whose positions all start after the prompt. Each sees the prompt and itself only.

    So the gradient is that of G separate sequences, and the prompt runs once.
    """

    tokens: NDArray[np.int64]
    positions: NDArray[np.int64]
    sources: NDArray[np.int64]  # for each completion token, the index that predicts it
    prompt: int  # tokens
    completions: tuple[int, ...] = ()  # tokens of each


def prompt_row(prompt: Ids) -> Row:
    """A prompt without completions; its last token predicts the next one."""
    count = len(prompt)
    return Row(prompt.astype(np.int64), np.arange(count), np.array([count - 1]), count)


def group_row(text: TokenizedGroup) -> Row:
    """A group as one row."""
    start = len(text.prompt)
    lengths = [len(ids) for ids in text.completions]
    offsets = np.concatenate([np.arange(length) for length in lengths])
    first = start + np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
    return Row(
        tokens=np.concatenate([text.prompt, *text.completions]).astype(np.int64),
        positions=np.concatenate([np.arange(start), start + offsets]),
        sources=np.where(offsets == 0, start - 1, first + offsets - 1),
        prompt=start,
        completions=tuple(lengths),
    )


@dataclass(frozen=True)
class Bucket:
    """Padded texts of like length for attention: queries (B, Q) and keys (B, K).

    A prompt attends to itself, a completion to its prompt and itself. So no pair of completions is ever multiplied.
    """

    queries: NDArray[np.int64]  # (B * Q,) indices of packed tokens; padding is token 0
    keys: NDArray[np.int64]  # (B * K,)
    sees: NDArray[np.bool_]  # (B, Q, K) the attention mask

    @property
    def rows(self) -> int:
        return len(self.sees)


@dataclass(frozen=True)
class _Span:
    """A prompt, or a completion with its prompt: starts and lengths in the line of tokens."""

    start: int
    length: int
    prompt_start: int = 0
    prompt_length: int = 0


@dataclass(frozen=True)
class Layout:
    """Rows in a line: `tokens` and `positions` (T,); `targets` (N,) are the completion tokens, `sources` (N,) predict them.

    `back` (T,) is the index of each packed token in the concatenated outputs of the buckets.
    """

    tokens: NDArray[np.int64]
    positions: NDArray[np.int64]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    lengths: tuple[int, ...]  # how many of the N belong to each row
    buckets: tuple[Bucket, ...]
    back: NDArray[np.int64]

    @property
    def longest(self) -> int:
        """The tokens of the longest text: a prompt with a completion."""
        return int(self.positions.max()) + 1

    def sees(self, bucket: Bucket, window: int | None) -> NDArray[np.bool_]:
        """(B, Q, K): the attention mask of a bucket, within a sliding window of so many tokens if there is one.

        Tokens are apart by their positions: all completions of a group follow its prompt. Padding is token 0, at position 0.
        """
        if window is None:
            return bucket.sees
        queries, keys = (self.positions[cells].reshape(bucket.rows, -1) for cells in (bucket.queries, bucket.keys))
        return bucket.sees & (queries[:, :, None] - keys[:, None] < window)

    def split(self, values: Floats) -> list[Floats]:
        """(N,) as an array for each row."""
        return list(np.split(values, np.cumsum(self.lengths)[:-1]))


def lay_out(rows: Sequence[Row], buckets: int = BUCKETS) -> Layout:
    """Put rows in a line, and sort their texts into buckets of like length."""
    starts = np.cumsum([0, *[len(row.tokens) for row in rows]])[:-1]
    prompts = [_Span(int(start), row.prompt) for row, start in zip(rows, starts, strict=True)]
    completions = [span for row, prompt in zip(rows, prompts, strict=True) for span in _completions(row, prompt)]
    parts = [*_of_like_length(prompts, buckets), *_of_like_length(completions, buckets)]
    return Layout(
        tokens=np.concatenate([row.tokens for row in rows]),
        positions=np.concatenate([row.positions for row in rows]),
        sources=np.concatenate([row.sources + at for row, at in zip(rows, starts, strict=True)]),
        targets=np.concatenate([row.tokens[row.prompt :] for row in rows]),
        lengths=tuple(len(row.sources) for row in rows),
        buckets=tuple(_bucket(part) for part in parts),
        back=_way_back(sum(len(row.tokens) for row in rows), parts),
    )


def prompt_cells(prompts: Sequence[Ids]) -> NDArray[np.int64]:
    """(P, L): the index of each token of the padded prompts in the line; padding is token 0."""
    ends = np.cumsum([len(prompt) for prompt in prompts])
    return _cells([(int(end) - len(prompt), len(prompt)) for prompt, end in zip(prompts, ends, strict=True)])


def _completions(row: Row, prompt: _Span) -> Iterator[_Span]:
    start = prompt.start + prompt.length
    for length in row.completions:
        yield _Span(start, length, prompt.start, prompt.length)
        start += length


def _of_like_length(spans: Sequence[_Span], buckets: int) -> list[list[_Span]]:
    ordered = sorted(spans, key=lambda span: (span.length, span.prompt_length))
    size = max(1, -(-len(ordered) // buckets))
    return [ordered[first : first + size] for first in range(0, len(ordered), size)]


def _bucket(spans: Sequence[_Span]) -> Bucket:
    before = _cells([(span.prompt_start, span.prompt_length) for span in spans])  # (B, P)
    own = _cells([(span.start, span.length) for span in spans])  # (B, Q)
    there = np.arange(before.shape[1]) < np.array([span.prompt_length for span in spans])[:, None]
    shape = (len(spans), own.shape[1], -1)
    sees = [
        np.broadcast_to(part, (*shape[:2], part.shape[-1])) for part in (there[:, None], np.tri(own.shape[1], dtype=np.bool_))
    ]
    return Bucket(own.ravel(), np.concatenate([before, own], 1).ravel(), np.concatenate(sees, 2))


def _cells(places: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """(B, longest): the index in the line of each token of texts (start, length); padding is token 0."""
    cells = np.zeros((len(places), max(length for _, length in places)), np.int64)
    for i, (start, length) in enumerate(places):
        cells[i, :length] = start + np.arange(length)
    return cells


def _way_back(tokens: int, parts: Sequence[Sequence[_Span]]) -> NDArray[np.int64]:
    """(T,): the index of each packed token in the outputs of the buckets."""
    back = np.zeros(tokens, np.int64)
    before = 0
    for part in parts:
        longest = max(span.length for span in part)
        for span in part:
            back[span.start : span.start + span.length] = before + np.arange(span.length)
            before += longest
    return back
