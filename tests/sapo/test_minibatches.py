"""The steps of a round: how groups are dealt out, and which policy the ratios refer to. With the starter, on one thread."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from waggle.core import paths
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import SamplingParams, StepParams, TrainingGroup
from waggle.rl.random_streams import uniforms
from waggle.rl.update_rules import rule
from waggle.sapo.minibatches import TOLERANCE, minibatches


class Measured:
    """A policy whose log-probs are -1; it records what it was measured on."""

    def __init__(self) -> None:
        self.texts: list[int] = []

    def logprobs(self, texts, temperature):
        self.texts += [int(text.prompt[0]) for text in texts]
        return [np.full(len(text.advantage), -1.0, np.float32) for text in texts]


def group(number: int, logp: float | None) -> TrainingGroup:
    numbers = np.full(3, 0.125, np.float32)
    old = None if logp is None else np.full(3, logp, np.float32)
    return TrainingGroup(
        np.array([number], np.int32), (np.arange(3, dtype=np.int32),), numbers, numbers, old_logp=old, values=numbers
    )


def numbers_of(steps) -> list[list[int]]:
    return [[int(batch.prompt[0]) for batch in step] for step in steps]


def test_one_step_has_the_whole_training_set_and_no_ratio():
    policy, groups = Measured(), [group(0, -1.0), group(1, None)]
    ((first, second),) = minibatches(groups, 1, policy, 1.0)
    assert policy.texts == [], "no forward pass"
    for got, original in ((first, groups[0]), (second, groups[1])):
        assert (got.old_logp, got.values) == (None, None)
        assert got.weight is original.weight
    assert minibatches([], 4, policy, 1.0) == []


def test_groups_are_dealt_out_in_turns_and_each_step_weighs_like_the_whole():
    groups = [group(number, -1.0 if number < 4 else None) for number in range(8)]
    steps = minibatches(groups, 3, Measured(), 1.0)
    assert numbers_of(steps) == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert all((batch.weight == np.float32(0.375)).all() for step in steps for batch in step)
    assert numbers_of(minibatches(groups[:2], 4, Measured(), 1.0)) == [[0], [1]], "no step without a group"


def test_own_completions_keep_the_log_probs_of_sampling_and_peers_get_those_of_the_own_policy():
    policy = Measured()
    almost = -1.0 - TOLERANCE / 2
    steps = minibatches([group(0, almost), group(1, almost), group(2, None)], 2, policy, 1.0)
    assert sorted(policy.texts) == [0, 2], "the peer's group, and one of the own ones to compare"
    old = {int(batch.prompt[0]): batch.old_logp for step in steps for batch in step}
    assert old[1] == pytest.approx(np.full(3, almost), abs=1e-7)
    assert (old[2] == -1.0).all()


def test_where_sampling_and_learning_disagree_all_are_measured():
    policy = Measured()
    steps = minibatches([group(0, -1.2), group(1, -1.2), group(2, None)], 2, policy, 1.0)
    assert sorted(policy.texts) == [0, 1, 2]
    assert all((batch.old_logp == -1.0).all() for step in steps for batch in step)


def test_the_group_with_the_least_likely_token_is_compared():
    """The first one, of whose tokens the policy is sure, would hide that sampling and learning disagree."""
    policy = Measured()
    sure = -1.0 - TOLERANCE / 2
    steps = minibatches([group(0, sure), group(1, -1.2), group(2, sure)], 2, policy, 1.0)
    assert policy.texts[0] == 1
    assert sorted(policy.texts) == [0, 1, 2]
    assert all((batch.old_logp == -1.0).all() for step in steps for batch in step)


def sampled_groups(policy: TorchPolicy, *, own: int = 4, length: int = 12) -> list[TrainingGroup]:
    """Groups of four completions that the policy sampled, and two with text of others."""
    noise = np.random.default_rng(0)
    prompts = [noise.integers(5, 200, 12 + i).astype(np.int32) for i in range(own)]
    rows = policy.sample(
        prompts, uniforms(1, "sample", 0, own, 4, length), SamplingParams(max_new=length, stops=(0,), temperature=0.9)
    )
    groups = []
    for prompt, row in zip(prompts, rows, strict=True):
        lengths = [len(sample.tokens) for sample in row]
        groups.append(
            TrainingGroup(
                prompt, tuple(sample.tokens for sample in row), np.repeat(noise.normal(size=4), lengths).astype(np.float32),
                np.repeat([1 / (4 * (own + 2) * length) for length in lengths], lengths).astype(np.float32),
                old_logp=np.concatenate([sample.logp for sample in row]),
            )
        )  # fmt: skip
    return [*groups, *(replace(each, prompt=each.prompt[::-1].copy(), old_logp=None) for each in groups[:2])]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_no_ratio_differs_from_1_before_the_first_step(precision):
    """In bfloat16, where sampling and learning differ by tenths of a nat, as in float32."""
    policy = TorchPolicy(paths.starter(), training=TrainingMode(precision=precision))
    groups = sampled_groups(policy)
    steps = minibatches(groups, 3, policy, 0.9)
    now = {id(batch): logp for step in steps for batch, logp in zip(step, policy.logprobs(step, 0.9), strict=True)}
    far = max(np.abs(now[id(batch)] - batch.old_logp).max() for step in steps for batch in step)
    assert far < (TOLERANCE if precision == "float32" else 0.1)
    sampled = np.concatenate([batch.old_logp for batch in groups[:4]])
    differs = np.abs(np.concatenate(policy.logprobs(groups[:4], 0.9)) - sampled).max()
    assert bool(differs > TOLERANCE) is (precision == "bfloat16"), "what the comparison is for"


def test_the_steps_at_unmoved_weights_have_the_gradient_and_the_loss_of_the_whole():
    first, second = (TorchPolicy(paths.starter()) for _ in range(2))
    groups = sampled_groups(first)
    (whole,), parts = minibatches(groups, 1, first, 0.9), minibatches(groups, 3, second, 0.9)
    params = StepParams(learning_rate=0.0, temperature=0.9, max_gradient_norm=1e9)
    expected, _ = first._gradient(whole, params)
    losses, gradients = list[float](), dict[str, torch.Tensor]()
    for part in parts:
        losses.append(second._gradient(part, params)[0])
        for name, parameter in second._parameters.items():
            gradients[name] = gradients.get(name, torch.zeros(())) + parameter.grad / len(parts)
    assert np.mean(losses) == pytest.approx(expected, abs=1e-6)
    for name, parameter in first._parameters.items():
        assert torch.norm(gradients[name] - parameter.grad) <= 1e-3 * torch.norm(parameter.grad), name


@pytest.mark.parametrize("name", ["grpo", "gspo", "dapo"])
def test_the_clip_acts_from_the_second_step_on(name):
    policy = TorchPolicy(paths.starter())
    chosen = rule(name)
    fractions = []
    for minibatch in minibatches(sampled_groups(policy), 3, policy, 0.9):
        params = StepParams(learning_rate=2e-3, temperature=0.9, clip=chosen.clip, ratio=chosen.ratio)
        fractions.append(policy.step(minibatch, params).clip_fraction)
    assert fractions[0] == 0.0
    assert fractions[2] > 0.0
