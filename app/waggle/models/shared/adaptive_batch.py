"""Adaptive batches: how much runs together in memory. Halved after an out-of-memory error, with the same result."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import MemoryShort
from waggle.core.message import Message
from waggle.models.shared.micro_batches import half_of, micro_batches
from waggle.models.shared.training_mode import TrainingMode
from waggle.rl.batch import Floats, Ids, SampledCompletion, SamplingParams, TokenizedGroup, TrainingGroup, nothing

PASS_BYTES = 1 << 27  # larger passes leave a CPU's caches
CARD_PASS_BYTES = 1 << 30  # smaller passes keep a fast graphics card waiting: SmolLM2's rounds took 1.7 times as long on an H100
CARD_SHARE = 32  # of a card's free memory, a pass may keep one part
T = TypeVar("T")
Learn = Callable[[Sequence[TrainingGroup]], tuple[float, float]]
Sample = Callable[[Sequence[Ids], Floats, SamplingParams], list[list[SampledCompletion]]]


def pass_bytes(free_on_card: int = 0) -> int:
    """Bytes of activations that a forward pass keeps, unless one group needs more. `free_on_card`: in bytes; 0 without a card."""
    return max(PASS_BYTES, min(CARD_PASS_BYTES, free_on_card // CARD_SHARE))


class AdaptiveBatch:
    """The batch sizes that fit, for one policy. `short` is called with one sentence when memory ran short and they shrink."""

    def __init__(
        self, training: TrainingMode, bytes_per_token: int, short: Callable[[str], None] = nothing, *, free_on_card: int = 0
    ) -> None:
        self.room: int | None = None  # tokens of one pass; None: the usual number or a whole group, divided by `parts`
        self.rows: int | None = None  # completions that are sampled together; None: all, divided by `parts`
        self._usual, self._parts = pass_bytes(free_on_card) // bytes_per_token, training.parts
        self._short = short

    def sample(
        self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams, sample: Sample
    ) -> list[list[SampledCompletion]]:
        """Sample completions of all prompts, as many prompts at a time as fit; `params.watch` sees all rows."""
        group_size = len(uniforms) // len(prompts)
        while True:
            at_once = max(1, self.rows // group_size) if self.rows else -(-len(prompts) // self._parts)
            progress, sampled = _Progress(len(uniforms), params), list[list[SampledCompletion]]()
            try:
                for first in range(0, len(prompts), at_once):
                    rows = slice(first * group_size, (first + at_once) * group_size)
                    sampled += sample(prompts[first : first + at_once], uniforms[rows], progress.part(rows))
                return sampled
            except MemoryShort:
                at_once = min(at_once, len(prompts))
                if at_once == 1:
                    raise
                at_once //= 2
                self.rows = at_once * group_size
                self._short(Message("Memory ran short while answering: %1 answers are written at a time from now on.", self.rows))

    def measure(
        self, texts: Sequence[TokenizedGroup], measure: Callable[[Sequence[TokenizedGroup]], Sequence[Floats]]
    ) -> list[Floats]:
        """Return (N,) for each text. `measure` returns one number for each completion token of each piece."""

        def all_of_them(room: int) -> list[Floats]:
            values: list[list[Floats]] = [[] for _ in texts]
            for part in micro_batches(texts, room):
                pieces = [piece for _, piece in part]
                with _texts_in_errors(pieces):
                    for (number, _), numbers in zip(part, measure(pieces), strict=True):
                        values[number].append(numbers)
            return [np.concatenate(parts) for parts in values]

        return self._run_halving(texts, all_of_them)

    def learn(self, batches: Sequence[TrainingGroup], begin: Callable[[], None], learn: Learn) -> tuple[float, float]:
        """Accumulate a gradient: `begin` clears it, `learn` adds that of some pieces. Returns the sums of its results."""

        def all_of_them(room: int) -> tuple[float, float]:
            begin()
            loss = clip = 0.0
            for part in micro_batches(batches, room):
                pieces = [piece for _, piece in part]
                with _texts_in_errors(pieces):
                    sums = learn(pieces)
                loss, clip = loss + sums[0], clip + sums[1]
            return loss, clip

        return self._run_halving(batches, all_of_them)

    def _run_halving(self, texts: Sequence[TokenizedGroup], work: Callable[[int], T]) -> T:
        """Call `work(room)` with the tokens of a pass; after an out-of-memory error start again with half of them."""
        while True:
            room = self.room or max(1, max(self._usual, *(text.tokens for text in texts)) // self._parts)
            try:
                return work(room)
            except _PassTooLarge as error:
                smaller = half_of(error.texts, room)
                if smaller is None:
                    raise MemoryShort(
                        "The model ran out of memory.", "Close other programs, or lower the longest answer in Settings."
                    ) from error
                self.room = smaller
                self._short(
                    Message("Memory ran short while learning: %1 tokens are learned from at a time from now on.", smaller)
                )


class _Progress:
    """Combines the parts of a batch, so that `watch` sees all rows although they are sampled in parts."""

    def __init__(self, rows: int, params: SamplingParams) -> None:
        self._params = params
        self._tokens: Ids = np.zeros((rows, params.max_new), np.int32)
        self._lengths: Ids = np.zeros(rows, np.int32)
        self._ended = np.zeros(rows, np.bool_)

    def part(self, some: slice) -> SamplingParams:
        def watch(tokens: Ids, lengths: Ids, ended: NDArray[np.bool_]) -> None:
            self._tokens[some], self._lengths[some], self._ended[some] = tokens, lengths, ended
            self._params.watch(self._tokens, self._lengths, self._ended)

        return replace(self._params, watch=watch)


class _PassTooLarge(MemoryShort):
    """Memory ran short in a pass over these texts."""

    def __init__(self, texts: Sequence[TokenizedGroup]) -> None:
        super().__init__("The model ran out of memory.")
        self.texts = texts


@contextlib.contextmanager
def _texts_in_errors(pieces: Sequence[TokenizedGroup]) -> Iterator[None]:
    """Add the texts of a pass to an out-of-memory error."""
    try:
        yield
    except MemoryShort as error:
        raise _PassTooLarge(pieces) from error
