"""Fitting: how much runs together in a backend's memory, halved where that runs short, with the same outcome."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from waggle.errors import MemoryShort
from waggle.policy.micro_batches import halved
from waggle.policy.training import Training
from waggle.rl.batch import Floats, Ids, Sampled, Written

PASS_BYTES = 1 << 29  # of activations that one forward pass keeps: groups are learned from together until then
T = TypeVar("T")


def unheard(what: str) -> None:
    """The ear of whoever does not want to know that memory ran short."""


class Fitting:
    """What one policy has found to fit. `short` is told, in one sentence, when memory ran short and less runs together."""

    def __init__(self, training: Training, bytes_per_token: int, short: Callable[[str], None] = unheard) -> None:
        self.room = training.pass_tokens or None  # tokens of one pass; None: the usual, and at least a whole group
        self.rows: int | None = None  # completions that are sampled together; None: all
        self._usual = PASS_BYTES // bytes_per_token
        self._short = short

    def sampled(
        self, prompts: Sequence[Ids], uniforms: Floats, sample: Callable[[Sequence[Ids], Floats], list[list[Sampled]]]
    ) -> list[list[Sampled]]:
        """The completions of all prompts, of as many prompts at a time as memory allows."""
        group_size = len(uniforms) // len(prompts)
        while True:
            at_once = max(1, (self.rows or len(uniforms)) // group_size)
            try:
                found: list[list[Sampled]] = []
                for first in range(0, len(prompts), at_once):
                    some = prompts[first : first + at_once]
                    found += sample(some, uniforms[first * group_size : (first + len(some)) * group_size])
                return found
            except MemoryShort:
                if at_once == 1:
                    raise
                at_once = min(at_once, len(prompts)) // 2
                self.rows = at_once * group_size
                self._short(f"Memory ran short while answering: {self.rows} answers are written at a time from now on.")

    def worked(self, texts: Sequence[Written], work: Callable[[int], T]) -> T:
        """`work(room)` with as many tokens in one pass as memory allows, begun anew with half of them where it did not."""
        while True:
            room = self.room or max(self._usual, *(text.tokens for text in texts))
            try:
                return work(room)
            except _TooMuch as error:
                smaller = halved(error.texts, room)
                if smaller is None:
                    raise MemoryShort(
                        "The model ran out of memory.", "Close other programs, or lower learning.max_new_tokens."
                    ) from error
                self.room = smaller
                self._short(f"Memory ran short while learning: {smaller} tokens are learned from at a time from now on.")


class _TooMuch(MemoryShort):
    """These texts together did not fit."""

    def __init__(self, texts: Sequence[Written]) -> None:
        super().__init__("The model ran out of memory.")
        self.texts = texts


@contextlib.contextmanager
def trying(part: Sequence[tuple[int, Written]]) -> Iterator[None]:
    """Names the texts that were run when memory ran short."""
    try:
        yield
    except MemoryShort as error:
        raise _TooMuch([piece for _, piece in part]) from error
