"""The part of the contract that both generic paths have in common, for any kind of model, beyond its sliding windows."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from models.contract.groups import batches, prompts, sample, true_logprobs
from models.tiny_kinds import WINDOW
from waggle.core.errors import Stopped
from waggle.models.storage import checkpoint
from waggle.rl.batch import SamplingParams, StepParams, TokenizedGroup, TrainingGroup
from waggle.rl.random_streams import uniforms

PARAMS = StepParams(learning_rate=1e-3)
WEIGHTS = "model.safetensors"


def groups() -> list[TrainingGroup]:
    """Groups with a prompt that is longer than a window."""
    some = batches()
    assert max(len(group.prompt) for group in some) > WINDOW
    return some


def assert_logprobs_of(model: Any, logprobs: list[np.ndarray], tolerance: float, temperature: float = 1.0) -> None:
    """The log-probs of `groups` are those of a model of transformers."""
    with torch.no_grad():
        for ours, group in zip(logprobs, groups(), strict=True):
            np.testing.assert_allclose(ours, true_logprobs(model, group, temperature).numpy(), atol=tolerance)


def assert_a_second_look_agrees(policy: Any) -> None:
    some = prompts(4)
    rows = sample(policy, some, group_size=4)
    texts = [TokenizedGroup(prompt, tuple(each.tokens for each in row)) for prompt, row in zip(some, rows, strict=True)]
    for row, flat in zip(rows, policy.logprobs(texts, 1.0), strict=True):
        np.testing.assert_allclose(np.concatenate([each.logp for each in row]), flat, atol=1e-4)


def assert_splitting_changes_nothing(policy: Any) -> None:
    some, noise = prompts(4), uniforms(1, "sample", 0, 4, 3, 16)
    together = sample(policy, some, noise=noise)
    for i, prompt in enumerate(some):
        (alone,) = sample(policy, [prompt], noise=noise[i * 3 : i * 3 + 3])
        for completion, other in zip(together[i], alone, strict=True):
            np.testing.assert_array_equal(completion.tokens, other.tokens)


def assert_stops_at(policy: Any, number: int) -> None:
    """A stop at this pause point, counted from 1, ends sampling, and the policy samples again."""
    calls = iter(range(1, number))

    def pause_point() -> None:
        if next(calls, None) is None:
            raise Stopped

    noise = uniforms(1, "sample", 0, 2, 2, 4)
    with pytest.raises(Stopped):
        policy.sample(prompts(2), noise, SamplingParams(max_new=4, stops=(-1,), pause_point=pause_point))
    assert len(sample(policy, prompts(2), noise=noise, length=4)) == 2


def assert_resumes(open_policy: Callable[[], Any], place: Path) -> None:
    """A policy that loads what another one saved learns as that one, to the bit."""
    first = open_policy()
    some = [replace(group, returns=np.ones(len(group.advantage), np.float32)) for group in groups()]
    for _ in range(2):
        assert first.step(some, PARAMS).applied
    save(first, place)
    second = open_policy()
    assert checkpoint.load_newest(place, second, "b")[0].step == 2
    for each in (first, second):
        each.step(some, PARAMS)
    for ours, theirs in zip(second.state(), first.state(), strict=True):
        assert ours.keys() == theirs.keys()
        for name, array in ours.items():
            np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def assert_saved_weights_are_a_model(open_policy: Callable[[Path], Any], folder: Path, place: Path) -> None:
    """Chat and Try it open them as such."""
    policy = open_policy(folder)
    policy.step(groups(), StepParams(learning_rate=1e-2))
    weights, _ = policy.state()
    shutil.copy(folder / "config.json", place)
    save_file({name: torch.from_numpy(array.copy()) for name, array in weights.items()}, place / WEIGHTS)
    for ours, theirs in zip(open_policy(place).logprobs(groups(), 1.0), policy.logprobs(groups(), 1.0), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def save(policy: Any, place: Path) -> None:
    method = policy.training.method
    state = checkpoint.CheckpointState(round=1, step=policy.steps, epoch=1, charter="c", base="b", method=method)
    checkpoint.save(place, policy, state)


def learn_and_save(policy: Any, place: Path) -> list[np.ndarray]:
    """The log-probs of `groups` after three large steps on them."""
    for _ in range(3):
        policy.step(groups(), StepParams(learning_rate=1e-2))
    save(policy, place)
    return policy.logprobs(groups(), 1.0)


def assert_exported(exported: Path, base: Path, learned: list[np.ndarray], tolerance: float) -> None:
    """transformers opens an export, which has the names of the base and computes what was learned."""
    assert set(load_file(exported / WEIGHTS)) == set(load_file(base / WEIGHTS))
    model = AutoModelForCausalLM.from_pretrained(exported, dtype=torch.float32).eval()
    assert_logprobs_of(model, learned, tolerance)
