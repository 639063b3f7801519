"""The contract of model files: every backend reads what transformers reads, and no other files of the folder."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from models.contract.groups import batches, reference, true_logprobs
from waggle.core.errors import ModelError

EMBEDDING, WHOLE, INDEX = "model.embed_tokens.weight", "model.safetensors", "model.safetensors.index.json"


@pytest.fixture
def folder(folders, tmp_path) -> Path:
    return Path(shutil.copytree(folders["qwen2"], tmp_path / "model"))


def assert_means_what_it_means_in_transformers(backend, folder: Path) -> None:
    model, (batch, *_) = reference(folder), batches()
    with torch.no_grad():
        (logprobs,) = backend.open(folder).logprobs([batch], 1.0)
        np.testing.assert_allclose(logprobs, true_logprobs(model, batch).numpy(), atol=backend.logp)


def in_shards(folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder)
    (folder / WHOLE).unlink()
    model.save_pretrained(folder, max_shard_size=20_000)
    assert len(list(folder.glob("model-*-of-*.safetensors"))) > 1


def change(path: Path, **weights: torch.Tensor | None) -> None:
    """Add arrays to a file or remove them; double underscores stand for dots in names."""
    there = load_file(path) if path.exists() else {}
    there |= {name.replace("__", "."): weight for name, weight in weights.items() if weight is not None}
    for name in (name.replace("__", ".") for name, weight in weights.items() if weight is None):
        del there[name]
    save_file(there, path, metadata={"format": "pt"})


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("shards", [False, True])
def test_a_model_in_any_precision_and_number_of_files(backend, folder, precision, shards):
    AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, precision)).save_pretrained(folder)
    if shards:
        in_shards(folder)
    assert_means_what_it_means_in_transformers(backend, folder)


@pytest.mark.parametrize("shards", [False, True])
def test_what_lies_beside_a_model_is_none_of_it(backend, folder, shards):
    whole = load_file(folder / WHOLE)
    if shards:
        in_shards(folder)
    save_file({name: torch.zeros_like(weights) for name, weights in whole.items()}, folder / "model-99999-of-99999.safetensors")
    save_file({name: torch.zeros_like(weights) for name, weights in whole.items()}, folder / "model_old.safetensors")
    (folder / "model.junk.safetensors").write_bytes(b"junk")
    assert_means_what_it_means_in_transformers(backend, folder)


@pytest.mark.parametrize(
    "index",
    ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 7}}', '{"weight_map": {"a": "../model.safetensors"}}',
     '{"weight_map": {"a": "model.bin"}}', '{"weight_map": {"a": "model-1.safetensors"}}'],
)  # fmt: skip
def test_an_index_that_names_no_files_beside_it_is_refused(backend, folder, index):
    (folder / WHOLE).rename(folder / "model.bin")
    shutil.copyfile(folder / "model.bin", folder.parent / WHOLE)
    (folder / INDEX).write_text(index)
    with pytest.raises(ModelError, match=r"cannot be read|holds no settings"):
        backend.open(folder)


def test_a_head_that_is_the_embedding_may_be_kept_under_either_name_or_both(backend, folder):
    whole = load_file(folder / WHOLE)[EMBEDDING]
    change(folder / WHOLE, lm_head__weight=whole.clone())
    assert_means_what_it_means_in_transformers(backend, folder)
    change(folder / WHOLE, model__embed_tokens__weight=None)
    assert_means_what_it_means_in_transformers(backend, folder)


def test_a_head_that_is_not_the_embedding_though_its_configuration_says_so_is_refused(backend, folder):
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"]
    change(folder / WHOLE, lm_head__weight=load_file(folder / WHOLE)[EMBEDDING] + 1)
    with pytest.raises(ModelError, match="its head is not its embedding, as it says"):
        backend.open(folder)
