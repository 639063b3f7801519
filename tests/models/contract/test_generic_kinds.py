"""The contract of the generic path, for kinds of models that only transformers computes, beyond their sliding windows."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from models.contract import kinds
from models.contract.groups import error, gradient, prompts, reference, sample, true_gradient
from models.contract.kinds import PARAMS, groups
from models.tiny_kinds import make_kind
from waggle.core.errors import ModelError
from waggle.models.generic import four_bits
from waggle.models.generic.policy import GenericPolicy
from waggle.models.shared import generic_config
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, export

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


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    return {kind: make_kind(kind, tmp_path_factory.mktemp("model")) for kind in WAYS}


@pytest.fixture(params=sorted(WAYS))
def kind(request) -> str:
    return request.param


def test_the_self_check_finds_the_fastest_ways(folders, kind):
    ways = GenericPolicy(folders[kind]).ways
    assert (ways.layout, ways.caching) == WAYS[kind]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_and_gradients_are_those_of_transformers(folders, kind, temperature):
    policy = GenericPolicy(folders[kind])
    kinds.assert_logprobs_of(reference(folders[kind]), policy.logprobs(groups(), temperature), 1e-4, temperature)
    if temperature == 1.0:
        expected = true_gradient(folders[kind], groups())
        assert error(gradient(policy, groups()), expected) < 1e-3


def test_the_log_probs_of_sampling_are_those_of_a_second_look(folders, kind):
    kinds.assert_a_second_look_agrees(GenericPolicy(folders[kind]))


def test_the_same_noise_gives_the_same_completions_however_the_prompts_are_split(folders, kind):
    kinds.assert_splitting_changes_nothing(GenericPolicy(folders[kind]))


def test_a_stop_while_prompts_are_read_is_heard_between_two_layers(folders, kind):
    kinds.assert_stops_at(GenericPolicy(folders[kind]), 3)


@pytest.mark.parametrize("method", ["full", "lean", "lora"])
def test_a_policy_resumes_from_what_it_saved(folders, kind, tmp_path, method):
    if method == "lora":
        pytest.importorskip("peft")
    kinds.assert_resumes(lambda: GenericPolicy(folders[kind], training=TrainingMode(method=method)), tmp_path)


def test_pieces_and_recomputed_activations_give_the_gradient_of_the_whole(folders, kind):
    whole = gradient(GenericPolicy(folders[kind]), groups())
    for training in (TrainingMode(parts=1 << 20), TrainingMode(recompute=True)):
        assert error(gradient(GenericPolicy(folders[kind], training=training), groups()), whole) < 1e-3


@pytest.mark.parametrize("method", ["full", "lora"])
def test_an_export_is_a_folder_of_transformers_with_what_was_learned(folders, kind, tmp_path, method):
    if method == "lora":
        pytest.importorskip("peft")
    policy = GenericPolicy(folders[kind], training=TrainingMode(method=method))
    learned = kinds.learn_and_save(policy, tmp_path / "saved")
    source = export.ExportSource(*checkpoint.newest(tmp_path / "saved", "b"), folders[kind], "somebody/model")
    export.write(source, tmp_path / "exported")
    if method == "lora" and kind != "deepseek-v3":  # peft 0.21 takes its shared experts for others and renames them
        with four_bits.quiet_import():
            from peft import PeftModel

        base = AutoModelForCausalLM.from_pretrained(folders[kind], dtype=torch.float32)
        adapted = PeftModel.from_pretrained(base, tmp_path / "exported/adapter").eval()
        kinds.assert_logprobs_of(adapted, learned, 1e-3)
    kinds.assert_exported(tmp_path / "exported", folders[kind], learned, 1e-3)


def test_saved_weights_are_the_file_of_a_model(folders, kind, tmp_path):
    kinds.assert_saved_weights_are_a_model(GenericPolicy, folders[kind], tmp_path)


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
