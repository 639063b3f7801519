"""Open and close a policy."""

import json
import shutil
import sys
import weakref
from functools import partial
from pathlib import Path

import pytest
import torch
from tokenizers import AddedToken, Tokenizer

from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.models import memory_fit
from waggle.models.backend import choose_device, choose_torch_device, open_policy, release_memory
from waggle.models.shared import generic_config
from waggle.models.shared.configuration import model_config

STARTER_TOKENS = model_config.read(paths.starter()).vocab_size


def test_a_model_that_nobody_uses_any_more_is_gone_before_the_next_one_is_measured():
    opened = open_policy(paths.starter(), device="cpu", threads=1)
    circle: list[object] = [opened]
    circle.append(circle)
    policy = weakref.ref(opened.policy)
    del opened, circle
    release_memory()
    assert policy() is None


def test_a_card_that_torch_counts_and_cannot_use_is_left_and_said(monkeypatch):
    """torch also counts cards that are too old for its kernels; it only fails when the card is used."""

    def too_old(*_: object, **__: object) -> None:
        raise RuntimeError(
            "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be late."
        )

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "GeForce GTX 1080")
    monkeypatch.setattr(torch, "arange", too_old)
    choice, why = choose_device("auto"), "CUDA error: no kernel image is available for execution on the device"
    assert (choice.device, choice.reason) == ("cpu", f"GeForce GTX 1080 cannot be used: {why}")
    with pytest.raises(ModelError, match=f"torch cannot use the device cuda: {why}"):
        choose_device("cuda")


def one_too_many(folder: Path, *, special: bool) -> None:
    """Add a token beyond the last row of the embedding."""
    shutil.copytree(paths.starter(), folder, dirs_exist_ok=True)
    words = Tokenizer.from_file(str(folder / "tokenizer.json"))
    token = AddedToken("<more>", special=special)
    words.add_special_tokens([token]) if special else words.add_tokens([token])
    assert words.token_to_id("<more>") == json.loads((folder / "config.json").read_text())["vocab_size"]
    words.save(str(folder / "tokenizer.json"))


def stops_beyond(folder: Path) -> None:
    shutil.copytree(paths.starter(), folder, dirs_exist_ok=True)
    (folder / "generation_config.json").write_text('{"eos_token_id": 100000}')


def begins_beyond(folder: Path) -> None:
    one_too_many(folder, special=True)
    (folder / "chat_template.jinja").write_text("<more>{{ messages[0].content }}")


@pytest.mark.parametrize("odd", [partial(one_too_many, special=False), stops_beyond, begins_beyond])
def test_words_beyond_the_embedding_are_refused_for_a_strangers_text_would_end_the_engine(tmp_path, odd):
    odd(tmp_path)
    with pytest.raises(ModelError, match=f"do not fit it: it has {STARTER_TOKENS} tokens"):
        open_policy(tmp_path, device="cpu", threads=1)


def test_a_special_token_beyond_the_embedding_that_no_text_can_hold_does_no_harm(tmp_path):
    """Fine-tunes have this: a padding token that was never trained."""
    one_too_many(tmp_path, special=True)
    assert open_policy(tmp_path, device="cpu", threads=1).tokenizer.encode("<more>").max() < STARTER_TOKENS


@pytest.mark.parametrize("device", ["cuda", "xpu"])
def test_a_device_that_is_not_here_is_refused_in_words(device):
    if getattr(torch, device).is_available():
        pytest.skip("it is here")
    with pytest.raises(ModelError, match=f"torch finds no device {device} here"):
        open_policy(paths.starter(), device=device, threads=1)


@pytest.fixture(scope="module")
def smollm3(tmp_path_factory) -> Path:
    """A model that only transformers computes, with the words of the starter."""
    from models.tiny_kinds import make_kind

    folder = make_kind("smollm3", tmp_path_factory.mktemp("model"), vocab_size=STARTER_TOKENS)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(paths.starter() / name, folder)
    return folder


def test_what_the_fast_path_computes_is_opened_there_and_all_else_with_transformers(smollm3):
    from waggle.models.generic.policy import GenericPolicy
    from waggle.models.torch.policy import TorchPolicy

    assert type(open_policy(paths.starter(), device="cpu", threads=1).policy) is TorchPolicy
    opened = open_policy(smollm3, device="cpu", threads=1)
    assert type(opened.policy) is GenericPolicy
    assert (opened.backend, opened.device) == ("torch", "cpu")


def test_a_model_of_mlx_lm_uses_mlx_where_it_was_chosen(smollm3):
    pytest.importorskip("mlx_lm")
    assert open_policy(smollm3, device="mlx", threads=1).backend == "MLX"


def test_a_model_that_mlx_lm_does_not_know_uses_torch_though_mlx_was_chosen(smollm3, monkeypatch):
    monkeypatch.setattr("waggle.models.shared.mlx_lm.modules.is_known", lambda kind: False)
    assert open_policy(smollm3, device="mlx", threads=1).backend == "torch"


def test_a_model_for_transformers_needs_torch_and_says_so(smollm3, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match="Models of type smollm3 need torch, which is not installed"):
        choose_torch_device("auto", "smollm3")


def test_settings_of_a_stranger_choose_no_code(smollm3, tmp_path):
    shutil.copytree(smollm3, tmp_path, dirs_exist_ok=True)
    table = json.loads((tmp_path / "config.json").read_text())
    table |= {
        "auto_map": {"AutoModelForCausalLM": "modeling.Model"}, "attn_implementation": "somebody/kernel", "return_dict": False,
        "_attn_implementation": "somebody/kernel", "output_attentions": True, "fusion_config": {"patch_embeddings": True},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(table))
    (tmp_path / "modeling.py").write_text("raise SystemExit")
    assert open_policy(tmp_path, device="cpu", threads=1).policy.parameters


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({"model_type": "no such model"}, "cannot train models of the type no such model"),
        ({"model_type": "t5"}, "cannot train models of the type t5"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantised with GPTQ. Opening it needs gptqmodel"),
        ({"num_attention_heads": "many"}, "cannot be read"),
        ({"hidden_size": 10**9}, "cannot be read"),
        ({"num_hidden_layers": 3, "layer_types": None, "no_rope_layers": None}, "is not there"),
        ({"intermediate_size": 95}, "config.json says"),
    ],
)
def test_what_neither_can_open_is_refused_in_words(smollm3, tmp_path, more, refusal):
    shutil.copytree(smollm3, tmp_path, dirs_exist_ok=True)
    table = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(table | more))
    with pytest.raises(ModelError, match=refusal):
        open_policy(tmp_path, device="cpu", threads=1)


def test_a_model_for_transformers_is_fitted_by_the_weights_in_its_files(smollm3):
    model = generic_config.read_any(smollm3)
    assert memory_fit.weights_of(model) == open_policy(smollm3, device="cpu", threads=1).policy.parameters
    machine = memory_fit.DeviceCapacity(8_000_000_000, {"float32": 1e11, "bfloat16": 1e11})
    assert memory_fit.choose(model, machine, memory_fit.Workload(8, 8, 8, 64)).fits
    assert memory_fit.rate_for(model, "full") == 5e-4


def test_before_the_download_the_weights_are_estimated(tmp_path):
    """Mixtral 8x7B has 46.7 billion weights, and GPT-2 124 million."""
    shape = {"vocab_size": 32_000, "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32,
             "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mixtral", **shape}))
    assert memory_fit.weights_of(generic_config.read_any(tmp_path)) == pytest.approx(46.7e9, rel=0.02)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "tie_word_embeddings": true}')
    assert memory_fit.weights_of(generic_config.read_any(tmp_path)) == pytest.approx(124e6, rel=0.25)
