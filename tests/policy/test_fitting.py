"""Fitting: work that did not fit is done in smaller parts, whatever the backend, and what cannot be divided is said."""

import numpy as np
import pytest

from waggle.errors import MemoryShort
from waggle.policy.fitting import Fitting, trying
from waggle.policy.micro_batches import micro_batches
from waggle.policy.training import Training
from waggle.rl.batch import Written

SIXTEEN = np.arange(16, dtype=np.int32)
TEXTS = [Written(SIXTEEN, (SIXTEEN,) * 8)] * 4  # 144 tokens each


class Memory:
    """A device on which so many tokens fit at once."""

    def __init__(self, fits: int) -> None:
        self.heard: list[str] = []
        self.fitting = Fitting(Training(), 1 << 20, self.heard.append)
        self._fits = fits

    def learn(self) -> list[int]:
        return self.fitting.worked(TEXTS, self._work)

    def _work(self, room: int) -> list[int]:
        return [self._run(part) for part in micro_batches(TEXTS, room)]

    def _run(self, part) -> int:
        with trying(part):
            return self._take(sum(text.tokens for _, text in part))

    def _take(self, size: int) -> int:
        if size > self._fits:
            raise MemoryShort("The model ran out of memory.")
        return size


def test_what_fits_runs_together():
    memory = Memory(1000)
    assert memory.learn() == [432, 144]  # half a gibibyte at a mebibyte a token
    assert memory.heard == []


def test_what_does_not_fit_runs_in_halves_from_then_on_and_that_is_said_once_for_each():
    memory = Memory(80)
    sizes = memory.learn()
    assert max(sizes) <= 80
    assert sum(sizes) == 4 * 128 + 16 * len(sizes), "every completion once, and the prompt once for each piece"
    told = len(memory.heard)
    assert told >= 2
    assert (
        memory.heard[-1]
        == f"Memory ran short while learning: {memory.fitting.room} tokens are learned from at a time from now on."
    )
    assert memory.learn() == sizes
    assert len(memory.heard) == told


def test_a_prompt_with_one_answer_that_does_not_fit_ends_the_round():
    with pytest.raises(MemoryShort, match=r"learning\.max_new_tokens"):
        Memory(31).learn()


def test_answers_are_written_for_fewer_prompts_at_a_time():
    memory, noise = Memory(1000), np.zeros((32, 4), np.float32)
    tried: list[int] = []

    def sample(some, uniforms):
        tried.append(len(some))
        assert len(uniforms) == 4 * len(some)
        if len(some) > 3:
            raise MemoryShort("The model ran out of memory.")
        return [[] for _ in some]

    for _ in range(2):
        assert len(memory.fitting.sampled([SIXTEEN] * 8, noise, sample)) == 8
    assert tried == [8, 4, 2, 2, 2, 2, 2, 2, 2, 2]
    assert memory.heard[-1] == "Memory ran short while answering: 8 answers are written at a time from now on."


def test_one_prompt_whose_answers_do_not_fit_ends_the_round():
    def sample(some, uniforms):
        raise MemoryShort("The model ran out of memory.")

    with pytest.raises(MemoryShort):
        Memory(1).fitting.sampled([SIXTEEN], np.zeros((8, 4), np.float32), sample)
