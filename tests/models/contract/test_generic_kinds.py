"""The contract of the generic path, for kinds of models that only transformers computes, beyond their sliding windows."""

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
from waggle.models.generic.policy import GenericPolicy
from waggle.models.shared import generic_config
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, export
from waggle.rl.batch import SamplingParams, StepParams, TokenizedGroup
from waggle.rl.random_streams import uniforms

# By kind: how its groups run, and how its prompts are cached.
WAYS = {
    "gpt2": ("packed", "padded"),
    "gemma3": ("packed by layer", "padded"),
    "mistral window": ("packed", "padded"),
    "phi3": ("packed", "padded"),
    "granite": ("packed", "padded"),
    "qwen3-moe": ("packed", "padded"),
    "deepseek-v3": ("packed", "padded"),
    "lfm2": ("rows", "padded"),
    "mamba2": ("rows", "padded"),
    "rwkv": ("rows", "again"),
}
PARAMS = StepParams(learning_rate=1e-3)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    return {kind: make_kind(kind, tmp_path_factory.mktemp("model")) for kind in WAYS}


@pytest.fixture(params=sorted(WAYS))
def kind(request) -> str:
    return request.param


def groups():
    some = batches()
    assert max(len(group.prompt) for group in some) > WINDOW
    return some


def assert_equal(ours, theirs, tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], atol=tolerance, rtol=0, err_msg=name)


def test_the_self_check_finds_the_fastest_ways(folders, kind):
    ways = GenericPolicy(folders[kind]).ways
    assert (ways.layout, ways.caching) == WAYS[kind]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_and_gradients_are_those_of_transformers(folders, kind, temperature):
    policy, model = GenericPolicy(folders[kind]), reference(folders[kind])
    with torch.no_grad():
        for logprobs, group in zip(policy.logprobs(groups(), temperature), groups(), strict=True):
            np.testing.assert_allclose(logprobs, true_logprobs(model, group, temperature).numpy(), atol=1e-4)
    if temperature == 1.0:
        expected = true_gradient(folders[kind], groups())
        assert error(gradient(policy, groups()), expected) < 1e-3


def test_the_log_probs_of_sampling_are_those_of_a_second_look(folders, kind):
    policy, some = GenericPolicy(folders[kind]), prompts(4)
    rows = sample(policy, some, group_size=4)
    texts = [TokenizedGroup(prompt, tuple(each.tokens for each in row)) for prompt, row in zip(some, rows, strict=True)]
    for row, flat in zip(rows, policy.logprobs(texts, 1.0), strict=True):
        np.testing.assert_allclose(np.concatenate([each.logp for each in row]), flat, atol=1e-4)


def test_the_same_noise_gives_the_same_completions_however_the_prompts_are_split(folders, kind):
    policy, some = GenericPolicy(folders[kind]), prompts(4)
    noise = uniforms(1, "sample", 0, 4, 3, 16)
    together = sample(policy, some, noise=noise)
    for i, prompt in enumerate(some):
        (alone,) = sample(policy, [prompt], noise=noise[i * 3 : i * 3 + 3])
        for completion, other in zip(together[i], alone, strict=True):
            np.testing.assert_array_equal(completion.tokens, other.tokens)


def test_a_stop_while_prompts_are_read_is_heard_between_two_layers(folders, kind):
    calls = iter([None, None])

    def stop_at_the_third() -> None:
        if next(calls, "stop") == "stop":
            raise Stopped

    policy, noise = GenericPolicy(folders[kind]), uniforms(1, "sample", 0, 2, 2, 4)
    with pytest.raises(Stopped):
        policy.sample(prompts(2), noise, SamplingParams(max_new=4, stops=(-1,), pause_point=stop_at_the_third))
    assert len(sample(policy, prompts(2), noise=noise, length=4)) == 2


@pytest.mark.parametrize("method", ["full", "lean", "lora"])
def test_a_policy_resumes_from_what_it_saved(folders, kind, tmp_path, method):
    if method == "lora":
        pytest.importorskip("peft")
    first = GenericPolicy(folders[kind], training=TrainingMode(method=method))
    some = [replace(group, returns=np.ones(len(group.advantage), np.float32)) for group in groups()]
    for _ in range(2):
        assert first.step(some, PARAMS).applied
    saved = checkpoint.CheckpointState(round=1, step=first.steps, epoch=1, charter="c", base="b", method=method)
    checkpoint.save(tmp_path, first, saved)
    second = GenericPolicy(folders[kind], training=TrainingMode(method=method))
    assert checkpoint.load_newest(tmp_path, second, "b")[0].step == 2
    for each in (first, second):
        each.step(some, PARAMS)
    for ours, theirs in zip(second.state(), first.state(), strict=True):
        assert_equal(ours, theirs, 0.0)


def test_pieces_and_recomputed_activations_give_the_gradient_of_the_whole(folders, kind):
    whole = gradient(GenericPolicy(folders[kind]), groups())
    for training in (TrainingMode(parts=1 << 20), TrainingMode(recompute=True)):
        assert error(gradient(GenericPolicy(folders[kind], training=training), groups()), whole) < 1e-3


@pytest.mark.parametrize("method", ["full", "lora"])
def test_an_export_is_a_folder_of_transformers_with_what_was_learned(folders, kind, tmp_path, method):
    if method == "lora":
        pytest.importorskip("peft")
    policy = GenericPolicy(folders[kind], training=TrainingMode(method=method))
    for _ in range(3):
        policy.step(groups(), StepParams(learning_rate=1e-2))
    learned = policy.logprobs(groups(), 1.0)
    saved = checkpoint.CheckpointState(round=1, step=3, epoch=1, charter="c", base="b", method=method)
    checkpoint.save(tmp_path / "saved", policy, saved)
    source = export.ExportSource(*checkpoint.newest(tmp_path / "saved", "b"), folders[kind], "somebody/model")
    export.write(source, tmp_path / "exported")
    if method == "lora" and kind != "deepseek-v3":  # peft 0.21 takes its shared experts for others and renames them
        from peft import PeftModel

        base = AutoModelForCausalLM.from_pretrained(folders[kind], dtype=torch.float32)
        adapted = PeftModel.from_pretrained(base, tmp_path / "exported/adapter").eval()
        with torch.no_grad():
            for logprobs, group in zip(learned, groups(), strict=True):
                np.testing.assert_allclose(logprobs, true_logprobs(adapted, group).numpy(), atol=1e-3)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "exported", dtype=torch.float32).eval()
    names = set(load_file(folders[kind] / "model.safetensors"))
    assert set(load_file(tmp_path / "exported" / "model.safetensors")) == names
    with torch.no_grad():
        for logprobs, group in zip(learned, groups(), strict=True):
            np.testing.assert_allclose(logprobs, true_logprobs(model, group).numpy(), atol=1e-3)


def test_saved_weights_are_the_file_of_a_model(folders, kind, tmp_path):
    """Chat and Try it open them as such."""
    policy = GenericPolicy(folders[kind])
    policy.step(groups(), StepParams(learning_rate=1e-2))
    weights, _ = policy.state()
    shutil.copy(folders[kind] / "config.json", tmp_path)
    save_file({name: torch.from_numpy(array.copy()) for name, array in weights.items()}, tmp_path / "model.safetensors")
    reopened = GenericPolicy(tmp_path)
    for ours, theirs in zip(reopened.logprobs(groups(), 1.0), policy.logprobs(groups(), 1.0), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_number_of_weights_is_counted_in_the_files(folders, kind):
    assert generic_config.read(folders[kind]).number_of_weights == pytest.approx(
        GenericPolicy(folders[kind]).parameters, rel=0.02
    )


def test_bfloat16_is_computed_and_kept(folders, kind):
    policy = GenericPolicy(folders[kind], training=TrainingMode("full", "bfloat16"))
    lean = GenericPolicy(folders[kind], training=TrainingMode("lean", "bfloat16"))
    for each in (policy, lean):
        assert each.step(groups(), PARAMS).applied
        assert len(sample(each, prompts(2), group_size=2)) == 2


def test_a_model_that_reads_both_ways_is_refused(tmp_path):
    from transformers import BertConfig, BertLMHeadModel

    config = BertConfig(
        vocab_size=97, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, initializer_range=0.3
    )
    BertLMHeadModel(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="does not write from left to right"):
        GenericPolicy(tmp_path)
