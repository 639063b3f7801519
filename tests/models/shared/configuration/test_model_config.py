"""A model's configuration as transformers reads it, old files included; everything else is refused with a reason."""

import json

import numpy as np
import pytest
from safetensors.torch import load_file
from transformers import AutoConfig
from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from models.tiny_models import KINDS, make_model
from waggle.core.errors import ModelError
from waggle.models.shared.configuration import model_config

PLAIN = {
    "model_type": "llama", "vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4,
}  # fmt: skip
LLAMA3 = {
    "type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
}  # fmt: skip
OLD_LLAMA3 = {"rope_theta": 5e5, "torch_dtype": "bfloat16", "rope_scaling": LLAMA3}
SLIDING, FULL = "sliding_attention", "full_attention"
FIELDS = ("hidden_size", "num_key_value_heads", "head_dim", "rms_norm_eps", "tie_word_embeddings", "hidden_act")


def read(folder, content) -> model_config.ModelConfig:
    (folder / "config.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return model_config.read(folder)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_it_says_what_transformers_says(kind, tmp_path):
    ours, theirs = model_config.read(make_model(kind, tmp_path)), AutoConfig.from_pretrained(tmp_path)
    assert [getattr(ours, name) for name in FIELDS if hasattr(theirs, name)] == [
        getattr(theirs, name) for name in FIELDS if hasattr(theirs, name)
    ]
    assert_turns_as(ours, theirs)


def assert_turns_as(ours, theirs) -> None:
    """All rotary embeddings are those of transformers."""
    if theirs.model_type != "gemma3_text":
        np.testing.assert_allclose(ours.frequencies(), LlamaRotaryEmbedding(theirs).inv_freq.numpy(), rtol=1e-6)
        return
    turns = Gemma3RotaryEmbedding(theirs)
    assert len(theirs.layer_types) == len(ours.ropes)
    for rope, kind in zip(ours.ropes, theirs.layer_types, strict=True):
        expected = getattr(turns, f"{kind}_inv_freq").numpy()
        np.testing.assert_allclose(rope.frequencies(ours.head_dim), expected, rtol=1e-6)


GEMMA = PLAIN | {"model_type": "gemma3_text", "num_key_value_heads": 2, "num_hidden_layers": 7, "sliding_window": 512}
NESTED = {
    "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 3e5}, "sliding_attention": {"rope_theta": 2e4},
}  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"rope_theta": 5e5, "rope_local_base_freq": 2e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        {"rope_parameters": NESTED},
        {"rope_parameters": {"full_attention": None}, "rope_theta": 5e5},
        {"sliding_window_pattern": 2, "head_dim": 16},
        {"hidden_act": "silu", "query_pre_attn_scalar": 168},  # the one for other kinds
        {"layer_types": ["full_attention"] * 7},
    ],
)
def test_gemma_is_read_as_transformers_reads_it_in_its_old_and_new_forms(tmp_path, more):
    ours, theirs = read(tmp_path, GEMMA | more), AutoConfig.from_pretrained(tmp_path)
    assert_turns_as(ours, theirs)
    windows = tuple(512 if kind == SLIDING else None for kind in theirs.layer_types)
    assert (ours.windows or (None,) * 7) == windows
    assert ours.query_scale == pytest.approx((theirs.head_dim / theirs.query_pre_attn_scalar) ** 0.5)
    assert (ours.hidden_act, ours.head_dim, ours.tie_word_embeddings) == (theirs.hidden_activation, theirs.head_dim, True)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_it_knows_every_weight(kind, tied, tmp_path):
    folder = make_model(kind, tmp_path, tied=tied)
    stored = {name: tuple(weight.shape) for name, weight in load_file(folder / "model.safetensors").items()}
    assert model_config.read(folder).weights() == stored


def test_a_file_from_before_transformers_5_means_the_same(tmp_path):
    ours = read(tmp_path, PLAIN | OLD_LLAMA3)
    assert (ours.num_key_value_heads, ours.head_dim, ours.dtype) == (4, 8, "bfloat16")
    theirs = AutoConfig.from_pretrained(tmp_path)
    np.testing.assert_allclose(ours.frequencies(), LlamaRotaryEmbedding(theirs).inv_freq.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("more", "windows"),
    [
        ({"model_type": "qwen2", "sliding_window": 8, "max_window_layers": 1}, ()),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 8}, ()),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}, (None, 8)),
        ({"model_type": "qwen3", "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0}, (8, 8)),
        ({"model_type": "qwen3", "use_sliding_window": True, "sliding_window": 8, "layer_types": [SLIDING, FULL]}, (8, None)),
        ({"model_type": "qwen3", "use_sliding_window": True, "max_window_layers": 0}, (4096, 4096)),
        ({"model_type": "mistral"}, (4096, 4096)),
        ({"model_type": "mistral", "sliding_window": None}, ()),
        ({"model_type": "mistral", "sliding_window": 8, "layer_types": [FULL, FULL]}, (8, 8)),
        ({"model_type": "phi3"}, ()),
        ({"model_type": "phi3", "sliding_window": 2047}, (2047, 2047)),
    ],
)
def test_each_layer_sees_as_much_as_in_transformers(tmp_path, more, windows, caplog):
    assert read(tmp_path, PLAIN | {"num_key_value_heads": 2} | more).windows == windows
    theirs = AutoConfig.from_pretrained(tmp_path)
    caplog.clear()  # transformers warns of the layers' types that Mistral passes over
    types = [SLIDING] * 2 if more["model_type"] in ("mistral", "phi3") else theirs.layer_types
    expected = tuple(theirs.sliding_window if each == SLIDING else None for each in types)
    assert (windows or (None, None)) == expected


def test_a_window_that_no_text_outgrows_is_none(tmp_path):
    ours = read(
        tmp_path, PLAIN | {"model_type": "qwen3", "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}
    )
    assert (ours.windows_within(8), ours.windows_within(9)) == ((None, None), (None, 8))


LINEAR, LENGTHLESS = {"rope_type": "linear", "factor": 4.0}, {name: part for name, part in LLAMA3.items() if "max" not in name}


@pytest.mark.parametrize(
    "more",
    [
        {"rope_parameters": {"rope_type": "default", "rope_theta": 5e4}, "rope_scaling": LINEAR},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 5e4}, "rope_scaling": LINEAR, "rope_theta": 1e6},
        {"rope_parameters": LLAMA3 | {"rope_theta": 5e4}, "rope_scaling": {"type": "linear", "factor": 4.0, "rope_theta": 9e4}},
        {"rope_parameters": LINEAR, "rope_theta": 1e6},
        {"rope_parameters": LINEAR, "rope_scaling": {}},
        {"rope_scaling": LINEAR | {"rope_theta": 7e4}, "rope_theta": 1e6},
        {"rope_scaling": LENGTHLESS, "max_position_embeddings": 128},
        {"rope_scaling": LENGTHLESS},
        {"rope_scaling": LENGTHLESS, "model_type": "qwen2"},
        {"rope_scaling": LLAMA3, "original_max_position_embeddings": 32},
    ],
)
def test_positions_turn_as_in_transformers_wherever_the_file_says_how(tmp_path, more, caplog):
    ours, theirs = read(tmp_path, PLAIN | more), AutoConfig.from_pretrained(tmp_path)
    caplog.clear()  # transformers warns of the length that it filled in itself
    assert ours.max_position_embeddings == theirs.max_position_embeddings
    np.testing.assert_allclose(ours.frequencies(), LlamaRotaryEmbedding(theirs).inv_freq.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({"model_type": "gpt2"}, "models of the type gpt2"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "yarn rope"),
        ({"rope_parameters": {"rope_type": "default"}, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "yarn rope"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "default rope"),
        ({"partial_rotary_factor": 0.5}, "default rope"),
        (
            {"model_type": "phi3", "rope_scaling": {"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}},
            "longrope rope",
        ),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "types of layers in models of type llama"),
        ({"model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"]}, "types of layers"),  # without a window
        ({"model_type": "qwen3", "layer_types": ["full_attention", "chunked_attention"]}, "types of layers"),
        ({"model_type": "qwen3", "layer_types": ["full_attention"]}, "types of layers"),
        ({"hidden_act": "gelu"}, "activation gelu"),
        (GEMMA | {"final_logit_softcapping": 30.0}, "capped scores"),
        (GEMMA | {"use_bidirectional_attention": True}, "attention both ways"),
        (GEMMA | {"hidden_activation": "gelu"}, "activation gelu"),
        (GEMMA | {"rope_parameters": {"rope_theta": 1e4}}, "these rotary embeddings"),
        (GEMMA | {"sliding_window": None, "layer_types": ["sliding_attention"] * 7}, "types of layers"),
        ({"dtype": "float8_e4m3fn"}, "weights in float8_e4m3fn"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantised with GPTQ"),
        ({"quantization": {"group_size": 64, "bits": 4}}, "quantised models"),
        ({"hidden_size": "wide"}, "cannot be read"),
        ({"num_attention_heads": [4]}, "cannot be read"),
        ({"rope_parameters": "default"}, "cannot be read"),
        ({"rope_scaling": 7}, "cannot be read"),
        ({"vocab_size": 0}, "cannot be read"),
        ({"num_hidden_layers": None}, "cannot be read"),
    ],
)
def test_what_would_be_computed_wrongly_is_refused(tmp_path, more, refusal):
    with pytest.raises(ModelError, match=refusal):
        read(tmp_path, PLAIN | more)


@pytest.mark.parametrize("content", ["", "[]", "[" * 100_000, "7", r'{"model_type": "llama", "vocab_size": "\ud800"}'])
def test_a_file_that_holds_no_configuration_is_named(tmp_path, content):
    with pytest.raises(ModelError, match=r"config\.json (cannot be read|holds no settings)"):
        read(tmp_path, content)


@pytest.mark.parametrize(
    "more",
    [
        {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 9, "max_window_layers": "28"},
        {"model_type": "gemma3_text", "sliding_window_pattern": 0},
        {"model_type": "gemma3_text", "query_pre_attn_scalar": 0},
        {"model_type": "gemma3_text", "rope_parameters": {"full_attention": 7}},
        {"model_type": "mistral", "sliding_window": "wide"},
        {"model_type": "mistral", "sliding_window": 0},
        {"model_type": "qwen2", "layer_types": [["full_attention"], []]},
        {"layer_types": 5},
        {"num_hidden_layers": 10**9},
        {"hidden_size": 10**400, "num_attention_heads": 2.5},
        {"rms_norm_eps": 10**400},
        {"rope_theta": 10**400},
    ],
)
def test_parts_of_another_form_than_they_should_have_are_named(tmp_path, more):
    with pytest.raises(ModelError, match="cannot be read"):
        read(tmp_path, PLAIN | more)


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({"rope_theta": 0.0}, "positions .* cannot be turned"),
        ({"rope_theta": -2.0}, "positions .* cannot be turned"),
        ({"rope_theta": float("nan")}, "positions .* cannot be turned"),
        ({"rope_theta": 1e300, "head_dim": 2}, "positions .* cannot be turned"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 0.0}}, "positions .* cannot be turned"),
        ({"rope_scaling": LLAMA3 | {"original_max_position_embeddings": float("inf"), "factor": 0.0}}, "cannot be turned"),
        ({"rope_scaling": LLAMA3 | {"high_freq_factor": 1.0}}, "positions .* cannot be turned"),
        ({"rope_scaling": LLAMA3 | {"high_freq_factor": 0.5}}, "positions .* cannot be turned"),
        ({"rope_scaling": LLAMA3 | {"low_freq_factor": 0.0}}, "positions .* cannot be turned"),
        ({"rope_scaling": LLAMA3 | {"low_freq_factor": float("nan")}}, "positions .* cannot be turned"),
        ({"rms_norm_eps": float("nan")}, "layers .* cannot be normalised"),
        ({"rms_norm_eps": float("inf")}, "layers .* cannot be normalised"),
        ({"rms_norm_eps": -1e-6}, "layers .* cannot be normalised"),
        ({"head_dim": 7}, "heads .* cannot be shared out"),
        ({"num_attention_heads": 2, "num_key_value_heads": 3}, "heads .* cannot be shared out"),
    ],
)
def test_what_nobody_can_compute_is_refused_and_not_to_be_copied_again(tmp_path, more, refusal):
    with pytest.raises(ModelError, match=refusal) as refused:
        read(tmp_path, PLAIN | more)
    assert refused.value.advice == "Choose another model."


def test_what_is_not_added_before_the_root_is_nothing_to_refuse(tmp_path):
    assert read(tmp_path, PLAIN | {"rms_norm_eps": 0}).rms_norm_eps == 0.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("low", [0.5, 1.0, 3.999])
def test_whatever_llama3_rope_is_read_turns_as_in_transformers(tmp_path, low):
    ours = read(tmp_path, PLAIN | {"rope_scaling": LLAMA3 | {"low_freq_factor": low}})
    theirs = AutoConfig.from_pretrained(tmp_path)
    np.testing.assert_allclose(ours.frequencies(), LlamaRotaryEmbedding(theirs).inv_freq.numpy(), rtol=1e-6)
