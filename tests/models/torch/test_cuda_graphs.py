"""Decoding with CUDA graphs: steps of fixed shapes, captured and replayed. Without a GPU, the steps are tested alone."""

import logging
from functools import partial

import numpy as np
import pytest
import torch

from models.tiny_models import KINDS, make_model
from waggle.core.errors import MemoryShort
from waggle.models.torch import cuda_graphs
from waggle.models.torch.cuda_graphs import Compute, CudaGraphs, GraphDecodingBatch, GraphedStep
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import SamplingParams
from waggle.rl.random_streams import uniforms

on_a_card = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA card here")


def sampled(policy: TorchPolicy, top_p: float = 1.0):
    noise = np.random.default_rng(0)
    prompts = [noise.integers(2, 97, 3 + 9 * i).astype(np.int32) for i in range(6)]
    params = SamplingParams(max_new=12, stops=(1,), top_p=top_p)
    return [completion for row in policy.sample(prompts, uniforms(3, "sample", 0, 6, 8, 12), params) for completion in row]


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("below", [0.25, 1.0])  # few recordings, and one in almost every column
def test_steps_that_are_all_alike_write_the_same_completions(kind, below, tmp_path, monkeypatch):
    begun: list[int] = []

    def tell(compute):
        return compute()

    def begin():
        begun.append(1)
        return tell

    policy = TorchPolicy(make_model(kind, tmp_path))
    expected = sampled(policy)
    policy._rows = partial(GraphDecodingBatch, begin)
    monkeypatch.setattr(GraphDecodingBatch, "drop_below", below)
    monkeypatch.setattr(cuda_graphs, "FIRST_COLUMNS", 3)
    for completion, other in zip(expected, sampled(policy), strict=True):
        np.testing.assert_array_equal(completion.tokens, other.tokens)
        np.testing.assert_allclose(completion.logp, other.logp, atol=2e-5)
        assert completion.ended == other.ended
    assert len({len(completion.tokens) for completion in expected if completion.ended}) >= 3, "rows must end in several columns"
    assert 3 <= len(begun) <= (4 if below < 1.0 else 11), "for 3, 6 and 12 columns, and where rows were left out"


class Failing(CudaGraphs):
    """Raises the given errors, one for each attempt; then it succeeds."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__()
        self.failures = list(failures)

    def _capture(self, compute):
        if self.failures:
            raise self.failures.pop(0)
        return "recorded"


def test_a_card_that_cannot_record_is_asked_once_and_that_is_said(caplog):
    recordings = Failing(RuntimeError("operation not permitted when stream is capturing"))
    assert [recordings.record(lambda: torch.zeros(1)) for _ in range(3)] == [None, None, None]
    assert [record.getMessage() for record in caplog.records] == [
        "A decoding step cannot be captured as a CUDA graph on this GPU: operation not permitted when stream is capturing"
    ]
    caplog.clear()


@pytest.mark.parametrize(("short", "results"), [(1, ["recorded"]), (2, [None, "recorded"]), (3, [None, "recorded"])])
def test_where_memory_is_short_it_is_made_free_first_and_tried_again_at_another_step(short, results):
    recordings = Failing(*[MemoryShort("The model ran out of memory.")] * short)
    assert [recordings.record(lambda: torch.zeros(1)) for _ in results] == results


@on_a_card
def test_what_is_recorded_is_told_to_the_card_twice_and_computed_each_time():
    number, computed = torch.zeros(1, device="cuda"), []
    record = CudaGraphs().begin()

    def compute() -> torch.Tensor:
        computed.append("")
        return number.add_(1.0) * 2.0

    assert [float(record(compute)) for _ in range(5)] == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert len(computed) == 2


@on_a_card
def test_a_card_that_is_full_says_so_while_it_records_too():
    record = CudaGraphs().begin()
    record(lambda: torch.zeros(1, device="cuda"))
    with pytest.raises(torch.OutOfMemoryError):
        record(lambda: torch.zeros(1 << 50, device="cuda"))
    assert float(torch.ones(1, device="cuda") + 1.0) == 2.0, "the card serves on"


@on_a_card
def test_a_policy_on_a_card_replays_most_of_its_steps_and_takes_no_more_memory_each_time(tmp_path, monkeypatch):
    calls: list[bool] = []

    class Counted(GraphedStep):
        def __call__(self, compute: Compute) -> torch.Tensor:
            result = super().__call__(compute)
            calls.append(self._recorded is not None)
            return result

    policy = TorchPolicy(make_model("llama", tmp_path), device="cuda")
    monkeypatch.setattr(cuda_graphs, "GraphedStep", Counted)
    memory = []
    for _ in range(4):
        sampled(policy, top_p=0.9)
        memory.append((torch.cuda.memory_allocated(), torch.cuda.memory_reserved()))
    assert sum(calls) > len(calls) / 2
    assert memory[1] == memory[2] == memory[3]


@on_a_card  # the last one here: torch may take what failed for unfinished from then on
def test_what_cannot_be_recorded_is_told_anew_each_time(caplog):
    number, record = torch.zeros(1, device="cuda"), CudaGraphs().begin()

    def compute() -> torch.Tensor:
        float(number)  # waits for the card, which nothing recorded may
        return number.add_(1.0) * 2.0

    with caplog.at_level(logging.WARNING):
        assert [float(record(compute)) for _ in range(4)] == [2.0, 4.0, 6.0, 8.0]
    assert "cannot be captured" in caplog.text
    caplog.clear()
