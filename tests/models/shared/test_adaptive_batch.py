"""Adaptive batches: work that does not fit is divided, and an error says so if it cannot be."""

import numpy as np
import pytest

from waggle.core.errors import MemoryShort
from waggle.models.shared.adaptive_batch import CARD_PASS_BYTES, PASS_BYTES, AdaptiveBatch, pass_bytes
from waggle.models.shared.training_mode import TrainingMode
from waggle.rl.batch import SampledCompletion, SamplingParams, TokenizedGroup

SIXTEEN = np.arange(16, dtype=np.int32)
TEXTS = [TokenizedGroup(SIXTEEN, (SIXTEEN,) * 8)] * 4  # 144 tokens each


class Memory:
    """A device on which this many tokens fit at once."""

    def __init__(self, fits: int) -> None:
        self.messages: list[str] = []
        self.batch_size = AdaptiveBatch(TrainingMode(), 1 << 18, self.messages.append)
        self._fits = fits

    def learn(self) -> list[int]:
        sizes: list[int] = []

        def some(pieces) -> tuple[float, float]:
            size = sum(piece.tokens for piece in pieces)
            if size > self._fits:
                raise MemoryShort("The model ran out of memory.")
            sizes.append(size)
            return size, len(pieces)

        sums = self.batch_size.learn(TEXTS, sizes.clear, some)
        assert sums[0] == sum(sizes)
        return sizes


def test_what_fits_runs_together():
    memory = Memory(1000)
    assert memory.learn() == [432, 144]  # 128 MiB at a quarter of one a token
    assert memory.messages == []


def test_what_was_learned_before_memory_ran_short_is_forgotten_and_learned_once():
    learned, short = list[int](), [False, True]  # the second pass of the first attempt

    def some(pieces) -> tuple[float, float]:
        if short and short.pop(0):
            raise MemoryShort("The model ran out of memory.")
        learned.append(sum(len(piece.completions) for piece in pieces))
        return learned[-1], 1

    sums = Memory(0).batch_size.learn(TEXTS, learned.clear, some)
    assert sums == (4 * 8, len(learned))
    assert sum(learned) == 4 * 8


def test_what_does_not_fit_runs_in_halves_from_then_on_and_that_is_said_once_for_each():
    memory = Memory(80)
    sizes = memory.learn()
    assert max(sizes) <= 80
    assert sum(sizes) == 4 * 128 + 16 * len(sizes), "every completion once, and the prompt once for each piece"
    message_count = len(memory.messages)
    assert message_count >= 2
    assert (
        memory.messages[-1]
        == f"Memory ran short while learning: {memory.batch_size.room} tokens are learned from at a time from now on."
    )
    assert memory.learn() == sizes
    assert len(memory.messages) == message_count


def test_a_prompt_with_one_answer_that_does_not_fit_ends_the_round():
    with pytest.raises(MemoryShort, match=r"lower the longest answer"):
        Memory(31).learn()


class Echo:
    """Samples the first number of each row's noise twice; fails for too many prompts at a time."""

    def __init__(self, fits: int) -> None:
        self.tried: list[int] = []
        self._fits = fits

    def __call__(self, prompts, uniforms, params) -> list[list[SampledCompletion]]:
        self.tried.append(len(prompts))
        size, rows = len(uniforms) // len(prompts), len(uniforms)
        tokens = np.repeat(uniforms[:, :1].astype(np.int32), params.max_new, 1)
        params.watch(tokens, np.full(rows, 1, np.int32), np.zeros(rows, np.bool_))
        if len(prompts) > self._fits:
            raise MemoryShort("The model ran out of memory.")
        params.watch(tokens, np.full(rows, 2, np.int32), np.ones(rows, np.bool_))
        completions = [SampledCompletion(tokens=row, logp=np.zeros(2, np.float32), ended=True) for row in tokens]
        return [completions[i : i + size] for i in range(0, rows, size)]


NOISE = np.arange(32, dtype=np.float32)[:, None]


def test_answers_are_written_for_fewer_prompts_at_a_time():
    memory, echo = Memory(1000), Echo(3)
    for _ in range(2):
        assert len(memory.batch_size.sample([SIXTEEN] * 8, NOISE, SamplingParams(max_new=2, stops=(0,)), echo)) == 8
    assert echo.tried == [8, 4, 2, 2, 2, 2, 2, 2, 2, 2]
    assert memory.messages[-1] == "Memory ran short while answering: 8 answers are written at a time from now on."


@pytest.mark.parametrize(("fits", "parts"), [(8, 1), (3, 1), (1, 1), (8, 2), (8, 3), (8, 16), (2, 3)])
def test_answers_written_in_parts_come_back_in_order_and_are_seen_whole(fits, parts):
    progress = []

    def watch(tokens, lengths, ended) -> None:
        assert (tokens.shape, lengths.shape, ended.shape) == ((32, 2), (32,), (32,))
        progress.append([int(row[0]) for row, length in zip(tokens, lengths, strict=True) if length])

    echo, batch_size = Echo(fits), AdaptiveBatch(TrainingMode(parts=parts), 1 << 20)
    rows = batch_size.sample([SIXTEEN] * 8, NOISE, SamplingParams(max_new=2, stops=(0,), watch=watch), echo)
    assert [int(completion.tokens[0]) for row in rows for completion in row] == list(range(32))
    assert progress[-1] == list(range(32))
    assert all(written == list(range(len(written))) for written in progress), "none under a question that it does not answer"
    if fits == 8:
        assert echo.tried[0] == -(-8 // parts)


@pytest.mark.parametrize("bytes_per_token", [1 << 18, 1 << 24])  # several groups of one pass; a group is more than the usual room
def test_where_memory_ran_short_before_less_is_learned_from_together(bytes_per_token):
    rooms = [
        AdaptiveBatch(TrainingMode(parts=parts), bytes_per_token)._run_halving(TEXTS, lambda room: room)
        for parts in (1, 2, 4, 16)
    ]
    assert rooms[0] == max(144, PASS_BYTES // bytes_per_token)
    assert rooms == [rooms[0] // parts for parts in (1, 2, 4, 16)]


@pytest.mark.parametrize(("free_gib", "most"), [(0, PASS_BYTES), (2, PASS_BYTES), (12, 3 << 27), (80, CARD_PASS_BYTES)])
def test_a_pass_is_larger_on_a_graphics_card_but_a_small_part_of_its_memory(free_gib, most):
    assert pass_bytes(free_gib << 30) == most
    batch_size = AdaptiveBatch(TrainingMode(), 1 << 20, free_on_card=free_gib << 30)
    assert batch_size._run_halving(TEXTS, lambda room: room) == max(144, most >> 20)


def test_one_prompt_whose_answers_do_not_fit_ends_the_round():
    with pytest.raises(MemoryShort):
        Memory(1).batch_size.sample([SIXTEEN], NOISE, SamplingParams(max_new=2, stops=(0,)), Echo(0))
