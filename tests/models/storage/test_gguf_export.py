"""Test GGUF files with transformers' own reader of them: it opens the same model, with the same tokens."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGUFReader
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from models import tokenizer_shelf
from models.tiny_kinds import make_kind
from models.tiny_models import make_model
from waggle.core import paths
from waggle.models.storage import gguf_export

TEXTS = ("What is 12 + 345? It's the user's.", "  two spaces\n\nlines, größer", "a<|end|>b")
LLAMA3 = "byte level, words of Llama 3"


def make_folder(kind: str, folder: Path, words: str = LLAMA3, *, tied: bool = True) -> Path:
    """A small random model with a tokenizer of the shelf, and rows that no token has."""
    folder.mkdir()
    tokenizer_shelf.put(folder, words)
    stops = (folder / "generation_config.json").read_bytes()
    make_model(kind, folder, tied=tied)
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer_shelf.of_transformers(folder)) + 3, mean_resizing=False)
    model.save_pretrained(folder)
    (folder / "generation_config.json").write_bytes(stops)
    return folder


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen2"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_file_is_read_as_the_same_model(tmp_path, kind, tied):
    folder = make_folder(kind, tmp_path / "model", tied=tied)
    assert gguf_export.refusal(folder) == ""
    gguf_export.write(folder, tmp_path / "model.gguf", "model")
    ours = AutoModelForCausalLM.from_pretrained(folder)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf")
    ids = torch.arange(3, 60)[None]
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, ours(ids).logits, atol=1e-5, rtol=0)


def test_a_qwen3_has_its_weights_and_its_width_of_heads(tmp_path):
    """transformers reads no such width from a file."""
    folder = make_folder("wide heads", tmp_path / "model")
    gguf_export.write(folder, tmp_path / "model.gguf", "model")
    file, weights = GGUFReader(tmp_path / "model.gguf"), load_file(folder / "model.safetensors")
    assert file.fields["qwen3.attention.key_length"].contents() == 16
    tensors = {tensor.name: tensor.data for tensor in file.tensors}
    assert len(tensors) == len(weights)
    for ours, theirs in (
        ("blk.1.attn_q.weight", "self_attn.q_proj.weight"),
        ("blk.1.attn_k_norm.weight", "self_attn.k_norm.weight"),
        ("blk.1.ffn_down.weight", "mlp.down_proj.weight"),
    ):
        np.testing.assert_array_equal(tensors[ours], weights[f"model.layers.1.{theirs}"])


def test_scaled_positions_are_in_the_file(tmp_path):
    """transformers does not read them."""
    folder = make_folder("llama3 rope", tmp_path / "model")
    gguf_export.write(folder, tmp_path / "llama3.gguf", "model")
    factors = {tensor.name: tensor.data for tensor in GGUFReader(tmp_path / "llama3.gguf").tensors}["rope_freqs.weight"]
    inverse = AutoModelForCausalLM.from_pretrained(folder).model.rotary_emb.inv_freq.numpy()
    plain = 10_000.0 ** -(np.arange(0, 8, 2) / 8)
    np.testing.assert_allclose(plain / factors, inverse, rtol=1e-5)
    folder = make_folder("linear rope", tmp_path / "other")
    gguf_export.write(folder, tmp_path / "linear.gguf", "model")
    fields = GGUFReader(tmp_path / "linear.gguf").fields
    assert fields["llama.rope.scaling.type"].contents() == "linear"
    assert fields["llama.rope.scaling.factor"].contents() == 2.0


@pytest.mark.parametrize("words", ["byte level", LLAMA3])
def test_a_file_has_the_tokens_of_the_model(tmp_path, words):
    folder = make_folder("llama", tmp_path / "model", words)
    gguf_export.write(folder, tmp_path / "model.gguf", "model")
    ours, theirs = tokenizer_shelf.of_transformers(folder), AutoTokenizer.from_pretrained(tmp_path, gguf_file="model.gguf")
    for text in TEXTS:
        assert theirs.encode(text, add_special_tokens=False) == ours.encode(text, add_special_tokens=False)
    assert theirs.chat_template == ours.chat_template
    assert theirs.eos_token == "<|end|>"  # ends a turn


@pytest.mark.parametrize("words", ["byte level with a space first", "metaspace first", "unigram"])
def test_a_model_with_other_tokens_is_refused(tmp_path, words):
    assert "tokens" in gguf_export.refusal(make_folder("llama", tmp_path / "model", words))


def test_a_model_of_another_kind_is_refused(tmp_path):
    make_kind("gpt2", tmp_path)
    expected = "Waggle writes GGUF files of llama, mistral, qwen2, qwen3, and this model is of type gpt2."
    assert gguf_export.refusal(tmp_path) == expected


def test_the_starter_is_refused():
    assert "tokens" in gguf_export.refusal(paths.starter())
