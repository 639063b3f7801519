"""The contract of mlx-lm's models, for kinds that the fast path does not compute, beyond their sliding windows."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from models.contract.groups import batches, error, gradient, prompts, reference, sample, true_gradient, true_logprobs
from models.tiny_kinds import WINDOW, make_kind
from waggle.core.errors import ModelError, Stopped
from waggle.models.shared.mlx_lm import config as mlx_lm_config
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, mlx_export
from waggle.rl.batch import SamplingParams, StepParams, TokenizedGroup
from waggle.rl.random_streams import uniforms

pytest.importorskip("mlx_lm")
import mlx.core as mx

from waggle.models.mlx_generic import self_check
from waggle.models.mlx_generic.policy import MlxLmPolicy

# By kind: how its prompts are cached. All of them run a prompt once, before its completions.
CACHING = {
    "gemma2": "equal",
    "gemma3": "merged",
    "gpt2": "merged",
    "gpt-oss": "merged",
    "lfm2": "merged",
    "mamba2": "merged",
    "mistral window": "merged",
    "olmo2": "merged",
    "phi3": "merged",
    "qwen2 window": "merged",
    "qwen3-moe": "merged",
    "qwen3.5": "merged",
    "starcoder2": "merged",
}
SAME_NAMES = ("gemma2", "gemma3", "mistral window", "olmo2", "phi3", "qwen2 window", "starcoder2")  # as in transformers
EXPERTS = ("gpt-oss", "qwen3-moe")
PARAMS = StepParams(learning_rate=1e-3)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    return {kind: make_kind(kind, tmp_path_factory.mktemp("model")) for kind in CACHING}


@pytest.fixture(params=sorted(CACHING))
def kind(request) -> str:
    return request.param


@pytest.fixture(autouse=True)
def on_the_cpu():
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    yield
    mx.set_default_device(before)


def groups():
    some = batches()
    assert max(len(group.prompt) for group in some) > WINDOW
    return some


def assert_equal(ours, theirs, tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], atol=tolerance, rtol=0, err_msg=name)


def test_the_self_check_finds_the_fastest_ways(folders, kind):
    ways = MlxLmPolicy(folders[kind]).ways
    assert (ways.layout, ways.caching) == ("shared", CACHING[kind])


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("text", [0, 1])
def test_a_way_that_gives_no_numbers_for_any_text_is_not_used(folders, monkeypatch, precision, text):
    compute, count = self_check.hidden_states, iter(range(2))

    def hidden_states(model, weights, group, layout):
        states = compute(model, weights, group, layout)
        return states * mx.nan if layout == "shared" and next(count) == text else states

    monkeypatch.setattr(self_check, "hidden_states", hidden_states)
    assert MlxLmPolicy(folders["olmo2"], training=TrainingMode(method="lora", precision=precision)).ways.layout == "rows"


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_are_those_of_transformers(folders, kind, temperature):
    policy, model = MlxLmPolicy(folders[kind]), reference(folders[kind])
    with torch.no_grad():
        for logprobs, group in zip(policy.logprobs(groups(), temperature), groups(), strict=True):
            np.testing.assert_allclose(logprobs, true_logprobs(model, group, temperature).numpy(), atol=1e-4)


@pytest.mark.parametrize("kind", SAME_NAMES)
def test_gradients_are_those_of_transformers(folders, kind):
    assert error(gradient(MlxLmPolicy(folders[kind]), groups()), true_gradient(folders[kind], groups())) < 1e-3


def test_the_log_probs_of_sampling_are_those_of_a_second_look(folders, kind):
    policy, some = MlxLmPolicy(folders[kind]), prompts(4)
    rows = sample(policy, some, group_size=4)
    texts = [TokenizedGroup(prompt, tuple(each.tokens for each in row)) for prompt, row in zip(some, rows, strict=True)]
    for row, flat in zip(rows, policy.logprobs(texts, 1.0), strict=True):
        np.testing.assert_allclose(np.concatenate([each.logp for each in row]), flat, atol=1e-4)


def test_the_same_noise_gives_the_same_completions_however_the_prompts_are_split(folders, kind):
    policy, some = MlxLmPolicy(folders[kind]), prompts(4)
    noise = uniforms(1, "sample", 0, 4, 3, 16)
    together = sample(policy, some, noise=noise)
    for i, prompt in enumerate(some):
        (alone,) = sample(policy, [prompt], noise=noise[i * 3 : i * 3 + 3])
        for completion, other in zip(together[i], alone, strict=True):
            np.testing.assert_array_equal(completion.tokens, other.tokens)


def test_a_stop_is_heard_before_each_prompt(folders, kind):
    calls = iter([None])

    def stop_at_the_second() -> None:
        if next(calls, "stop") == "stop":
            raise Stopped

    policy, noise = MlxLmPolicy(folders[kind]), uniforms(1, "sample", 0, 2, 2, 4)
    with pytest.raises(Stopped):
        policy.sample(prompts(2), noise, SamplingParams(max_new=4, stops=(-1,), pause_point=stop_at_the_second))
    assert len(sample(policy, prompts(2), noise=noise, length=4)) == 2


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_policy_resumes_from_what_it_saved(folders, kind, tmp_path, method):
    first = MlxLmPolicy(folders[kind], training=TrainingMode(method=method))
    some = [replace(group, returns=np.ones(len(group.advantage), np.float32)) for group in groups()]
    for _ in range(2):
        assert first.step(some, PARAMS).applied
    saved = checkpoint.CheckpointState(round=1, step=first.steps, epoch=1, charter="c", base="b", method=method)
    checkpoint.save(tmp_path, first, saved)
    second = MlxLmPolicy(folders[kind], training=TrainingMode(method=method))
    assert checkpoint.load_newest(tmp_path, second, "b")[0].step == 2
    for each in (first, second):
        each.step(some, PARAMS)
    for ours, theirs in zip(second.state(), first.state(), strict=True):
        assert_equal(ours, theirs, 0.0)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_pieces_and_recomputed_activations_give_the_gradient_of_the_whole(folders, kind, method):
    whole = gradient(MlxLmPolicy(folders[kind], training=TrainingMode(method)), groups())
    for training in (TrainingMode(method, parts=1 << 20), TrainingMode(method, recompute=True)):
        assert error(gradient(MlxLmPolicy(folders[kind], training=training), groups()), whole) < 1e-3


def test_recomputing_runs_each_layer_once_more(folders, monkeypatch):
    from mlx_lm.models import phi3

    usual, calls = phi3.TransformerBlock.__call__, []
    monkeypatch.setattr(phi3.TransformerBlock, "__call__", lambda *each, **more: calls.append(1) or usual(*each, **more))
    counts = []
    for recompute in (False, True):
        policy = MlxLmPolicy(folders["phi3"], training=TrainingMode(recompute=recompute))
        calls.clear()
        policy.step(groups(), PARAMS)
        counts.append(len(calls))
    assert counts[1] == 2 * counts[0]


@pytest.mark.parametrize("method", ["full", "lora"])
def test_an_export_is_a_folder_of_transformers_with_what_was_learned(folders, kind, tmp_path, method):
    policy = MlxLmPolicy(folders[kind], training=TrainingMode(method=method))
    for _ in range(3):
        policy.step(groups(), StepParams(learning_rate=1e-2))
    learned = policy.logprobs(groups(), 1.0)
    saved = checkpoint.CheckpointState(round=1, step=3, epoch=1, charter="c", base="b", method=method)
    checkpoint.save(tmp_path / "saved", policy, saved)
    (tmp_path / "exported").mkdir()
    folder, _ = checkpoint.newest(tmp_path / "saved", "b")
    mlx_export.write_model(folders[kind], folder, tmp_path / "exported", adapted=method == "lora")
    names = set(load_file(folders[kind] / "model.safetensors"))
    assert set(load_file(tmp_path / "exported" / "model.safetensors")) == names
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "exported", dtype=torch.float32).eval()
    with torch.no_grad():
        for logprobs, group in zip(learned, groups(), strict=True):
            np.testing.assert_allclose(logprobs, true_logprobs(model, group).numpy(), atol=1e-4)


def test_saved_weights_are_the_file_of_a_model(folders, kind, tmp_path):
    """Chat and Try it open them as such."""
    policy = MlxLmPolicy(folders[kind])
    policy.step(groups(), StepParams(learning_rate=1e-2))
    weights, _ = policy.state()
    shutil.copy(folders[kind] / "config.json", tmp_path)
    save_file({name: torch.from_numpy(array.copy()) for name, array in weights.items()}, tmp_path / "model.safetensors")
    reopened = MlxLmPolicy(tmp_path)
    for ours, theirs in zip(reopened.logprobs(groups(), 1.0), policy.logprobs(groups(), 1.0), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_adapters_have_the_names_and_the_beginning_that_they_have_on_torch(folders, kind):
    pytest.importorskip("peft")
    from waggle.models.generic.policy import GenericPolicy

    ours = MlxLmPolicy(folders[kind], training=TrainingMode("lora")).state()[0]
    theirs = GenericPolicy(folders[kind], training=TrainingMode("lora")).state()[0]
    shared = ours.keys() & theirs.keys()
    assert len(shared) >= 0.9 * len(theirs), theirs.keys() - ours.keys()
    for name in shared:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def test_an_optimizer_step_keeps_no_second_copy_of_the_weights(folders, kind):
    """What the network still held would be the weights of the step before."""
    policy = MlxLmPolicy(folders[kind], training=TrainingMode(recompute=True))
    policy.step(groups(), PARAMS)
    policy.logprobs(groups(), 1.0)
    sample(policy, prompts(2), group_size=2)
    still_there = [slot.name for slot in policy._model._slots if dict.__getitem__(slot.module, slot.key).size]
    assert still_there == []


def test_the_number_of_weights_is_counted_in_the_files(folders, kind):
    counted = sum(array.numel() for array in load_file(folders[kind] / "model.safetensors").values())
    assert mlx_lm_config.read(folders[kind]).number_of_weights == counted == MlxLmPolicy(folders[kind]).parameters


def test_bfloat16_is_computed_and_kept(folders, kind):
    if kind in EXPERTS:
        with pytest.raises(ModelError, match="only supports float32"):  # which only MLX on a CPU says
            MlxLmPolicy(folders[kind], training=TrainingMode("full", "bfloat16"))
        return
    for method in ("full", "lora"):
        policy = MlxLmPolicy(folders[kind], training=TrainingMode(method, "bfloat16"))
        assert policy.step(groups(), PARAMS).applied
        assert len(sample(policy, prompts(2), group_size=2)) == 2
