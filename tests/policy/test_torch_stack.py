"""A stack of policies against one TorchPolicy for each of its members."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from policy.models import make_model
from waggle.errors import ModelError
from waggle.policy.torch_policy import TorchPolicy
from waggle.policy.torch_stack import TorchStack
from waggle.rl.batch import GroupBatch, SampleParams, StepParams, Written
from waggle.rl.grpo import teach
from waggle.rl.noise import uniforms
from waggle.rl.rule import Scored

STOP = 1
GROUP, LONGEST = 4, 12


@pytest.fixture
def folders(tmp_path) -> list[Path]:
    """Three models of one shape and different weights."""
    made = []
    for i in range(3):
        folder = make_model("llama", tmp_path / str(i))
        noise = torch.Generator().manual_seed(i)
        weights = load_file(folder / "model.safetensors")
        changed = {name: w + 0.05 * torch.randn(w.shape, generator=noise) for name, w in weights.items()}
        save_file(changed, folder / "model.safetensors", metadata={"format": "pt"})
        made.append(folder)
    return made


def prompts(seed: int, count: int) -> list[np.ndarray]:
    noise = np.random.default_rng(seed)
    return [noise.integers(2, 97, int(noise.integers(1, 30))).astype(np.int32) for _ in range(count)]


def params() -> SampleParams:
    return SampleParams(max_new=LONGEST, stop=STOP, temperature=0.9)


def asked(counts: dict[int, int]) -> dict:
    return {m: (prompts(m, count), uniforms(m, "sample", 0, count, GROUP, LONGEST)) for m, count in counts.items()}


def batches(policy: TorchPolicy, member: int, count: int) -> list[GroupBatch]:
    some, noise = asked({member: count})[member]
    found = []
    for i, (prompt, row) in enumerate(zip(some, policy.sample(some, noise, params()), strict=True)):
        kept = row[: GROUP - i % 2]  # groups of different sizes
        lengths = tuple(len(one.tokens) for one in kept)
        rewards = tuple(float((i + j) % 3 == 0) for j in range(len(kept)))
        scored = Scored(rewards=rewards, lengths=lengths, groups=count, tokens=sum(lengths), longest=LONGEST, crumb_span=0.2)
        taught = teach(scored)
        found.append(GroupBatch(prompt, tuple(one.tokens for one in kept), taught.advantage, taught.weight))
    return found


def test_every_member_samples_what_it_would_sample_alone(folders):
    wanted = asked({0: 5, 1: 2, 2: 7})
    together = TorchStack(folders).sample(wanted, params())
    ended = 0
    for member, (some, noise) in wanted.items():
        alone = TorchPolicy(folders[member]).sample(some, noise, params())
        for row, other in zip(together[member], alone, strict=True):
            for one, two in zip(row, other, strict=True):
                np.testing.assert_array_equal(one.tokens, two.tokens)
                np.testing.assert_allclose(one.logp, two.logp, atol=2e-5)
                assert one.ended == two.ended
                ended += one.ended
    assert ended, "no completion ended: dropping was not tried"


def test_a_member_that_asks_for_nothing_changes_nothing_for_the_others(folders):
    stack = TorchStack(folders)
    everybody, some = asked({0: 3, 1: 3, 2: 3}), asked({0: 3, 2: 3})
    first, second = stack.sample(everybody, params()), stack.sample(some, params())
    assert sorted(second) == [0, 2]
    for member in second:
        for row, other in zip(first[member], second[member], strict=True):
            for one, two in zip(row, other, strict=True):
                np.testing.assert_array_equal(one.tokens, two.tokens)


def test_log_probs_are_those_of_each_member(folders):
    stack = TorchStack(folders)
    texts = {m: [Written(b.prompt, b.completions) for b in batches(TorchPolicy(folders[m]), m, 4 + m)] for m in (0, 2)}
    found = stack.logprobs(texts, 0.9)
    for member, some in texts.items():
        for one, two in zip(found[member], TorchPolicy(folders[member]).logprobs(some, 0.9), strict=True):
            np.testing.assert_allclose(one, two, atol=2e-5)


def test_several_steps_move_every_member_as_it_would_move_alone(folders):
    stack, alone = TorchStack(folders), [TorchPolicy(folder) for folder in folders]
    for number in range(4):
        step = StepParams(learning_rate=1e-3, temperature=0.9)
        work = {m: (batches(alone[m], m, 3 + m), step) for m in range(3) if (m + number) % 3}  # each rests now and then
        metrics = stack.step(work)
        for member, (some, step) in work.items():
            other = alone[member].step(some, step)
            assert metrics[member].loss == pytest.approx(other.loss, abs=1e-5)
            assert metrics[member].gradient_norm == pytest.approx(other.gradient_norm, rel=1e-3)
            assert metrics[member].entropy == pytest.approx(other.entropy, rel=1e-3)
    for member, policy in enumerate(alone):
        assert stack.steps(member) == policy.steps
        mine = stack.model.weights_of(member)
        for name, weight in policy.state()[0].items():
            torch.testing.assert_close(mine[name], weight, rtol=1e-3, atol=2e-5)


def test_a_gradient_that_is_no_number_is_left_out_for_that_member_alone(folders):
    stack = TorchStack(folders)
    before = stack.model.flat.clone()
    work = {m: (batches(TorchPolicy(folders[m]), m, 2), StepParams(learning_rate=1e-3)) for m in (0, 1)}
    one = work[1][0][0]
    work[1][0][0] = GroupBatch(one.prompt, one.completions, one.advantage * np.float32(np.nan), one.weight)
    metrics = stack.step(work)
    assert (metrics[0].taken, metrics[1].taken) == (True, False)
    moved = (stack.model.flat != before).any(-1).tolist()
    assert moved == [True, False, False]


def test_models_of_different_shapes_or_kinds_are_not_stacked(folders, tmp_path):
    with pytest.raises(ModelError, match="cannot be stacked"):
        TorchStack([make_model("qwen2", tmp_path / "other")])
    untied = make_model("llama", tmp_path / "untied", tied=False)
    with pytest.raises(ModelError, match="cannot be stacked"):
        TorchStack([untied])
