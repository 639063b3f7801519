"""Whose training a folder of checkpoints is, in checkpoints of today and of earlier versions, and after a person's answer."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from models.tiny_models import make_model
from waggle.core import paths
from waggle.core.errors import CheckpointError
from waggle.models.backend import open_policy
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, identity, ownership, starters
from waggle.models.torch.policy import TorchPolicy


def saved_round(checkpoints: Path, model: Path, *, number: int = 7, method: str = "full", named: bool = True) -> str:
    """Save a checkpoint of a model; `named`: as today, else as earlier versions did. Returns the training's base."""
    base = checkpoint.base_of(model)
    state = checkpoint.CheckpointState(
        round=number, step=0, epoch=0, charter="", base=base, identity=identity.read(model) if named else None
    )
    checkpoint.save(checkpoints, TorchPolicy(model, training=TrainingMode(method)), state)
    return base


def change_configuration(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"transformers_version": "9.9.9"}))


def retrain(model: Path) -> None:
    """Replace the weights by others of the same shapes."""
    weights = {name: weight + 0.01 * torch.randn_like(weight) for name, weight in load_file(model / "model.safetensors").items()}
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture
def model(tmp_path) -> Path:
    return shutil.copytree(paths.starter(), tmp_path / "model")


@pytest.fixture
def checkpoints(tmp_path) -> Path:
    return tmp_path / "checkpoints"


def test_a_training_keeps_its_base_when_the_configuration_changes_and_restores(model, checkpoints):
    base = saved_round(checkpoints, model)
    change_configuration(model)
    assert checkpoint.base_of(model) != base
    assert ownership.is_training_of(checkpoints, model)
    assert ownership.other_model(checkpoints, model) is None
    assert ownership.base_of(checkpoints, model) == base
    policy = open_policy(model, device="cpu", threads=1).policy
    saved, aside = checkpoint.load_newest(checkpoints, policy, ownership.base_of(checkpoints, model))
    assert (saved and saved.round, aside) == (7, [])


def test_a_starter_with_a_changed_byte_in_its_configuration_is_still_the_starter(checkpoints, tmp_path, monkeypatch):
    resources = shutil.copytree(paths.resources(), tmp_path / "resources")
    saved_round(checkpoints, paths.starter())
    monkeypatch.setattr(paths, "resources", lambda: resources)
    change_configuration(resources / "starter")
    assert starters.starter_of(checkpoints) == resources / "starter"
    assert ownership.other_model(checkpoints, resources / "starter") is None


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("method", ["full", "lora"])
def test_other_weights_of_the_same_shapes_are_another_model_with_which_the_training_could_continue(
    named, method, model, checkpoints
):
    saved_round(checkpoints, model, named=named, method=method)
    retrain(model)
    other = ownership.other_model(checkpoints, model)
    assert other == ownership.OtherModel(rounds=7, fits=True, is_whole=method == "full")
    with pytest.raises(CheckpointError, match="belongs to another model"):
        ownership.base_of(checkpoints, model)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("method", ["full", "lora"])
def test_with_other_shapes_it_could_not(named, method, tmp_path, checkpoints):
    model = make_model("llama", tmp_path / "model")
    saved_round(checkpoints, model, named=named, method=method)
    other = ownership.other_model(checkpoints, make_model("llama", tmp_path / "other", inner=64))
    assert other == ownership.OtherModel(rounds=7, fits=False, is_whole=method == "full")


def test_nor_with_other_words(model, checkpoints):
    saved_round(checkpoints, model)
    table = json.loads((model / "tokenizer.json").read_text())
    words = table["model"]["vocab"]
    first, second, *_ = (word for word in words if words[word] > 300)
    words[first], words[second] = words[second], words[first]
    (model / "tokenizer.json").write_text(json.dumps(table))
    assert ownership.other_model(checkpoints, model) == ownership.OtherModel(rounds=7, fits=False, is_whole=True)


def test_a_checkpoint_of_an_earlier_version_whose_configuration_changed_is_asked_about_and_can_be_kept(model, checkpoints):
    base = saved_round(checkpoints, model, named=False)
    assert ownership.is_training_of(checkpoints, model)
    change_configuration(model)
    other = ownership.other_model(checkpoints, model)
    assert other is not None
    assert other.fits
    ownership.answer(checkpoints, model)
    assert ownership.base_of(checkpoints, model) == base


def test_an_answer_counts_until_the_next_checkpoint_says_whose_it_is(model, checkpoints):
    first = shutil.copytree(model, model.with_name("first"))
    base = saved_round(checkpoints, model)
    retrain(model)
    ownership.answer(checkpoints, model)
    assert (ownership.other_model(checkpoints, model), ownership.base_of(checkpoints, model)) == (None, base)
    assert ownership.other_model(checkpoints, first) is not None
    retrain(model)
    assert ownership.other_model(checkpoints, model) is not None, "a third one"
    saved_round(checkpoints, model, number=8)
    assert ownership.other_model(checkpoints, model) is None


def test_a_damaged_answer_is_none(model, checkpoints):
    saved_round(checkpoints, model)
    retrain(model)
    ownership.answer(checkpoints, model).write_bytes(b"{")
    assert ownership.other_model(checkpoints, model) is not None


def test_where_nothing_was_trained_there_is_no_other_model(model, checkpoints):
    assert ownership.other_model(checkpoints, model) is None
    assert not ownership.is_training_of(checkpoints, model)
    assert ownership.base_of(checkpoints, model) == checkpoint.base_of(model)
    ownership.answer(checkpoints, model)
    assert ownership.is_training_of(checkpoints, model)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_training_that_is_kept_restores_on_the_same_weights_in_another_precision(method, tmp_path, checkpoints):
    model, narrow = make_model("llama", tmp_path / "model"), tmp_path / "narrow"
    saved_round(checkpoints, model, method=method)
    AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).save_pretrained(narrow)
    assert ownership.other_model(checkpoints, narrow) == ownership.OtherModel(rounds=7, fits=True, is_whole=method == "full")
    ownership.answer(checkpoints, narrow)
    policy = TorchPolicy(narrow, training=TrainingMode(method))
    saved, aside = checkpoint.load_newest(checkpoints, policy, ownership.base_of(checkpoints, narrow))
    assert (saved and saved.round, aside) == (7, [])
    if method == "full":
        whole = load_file(model / "model.safetensors")
        assert all(np.array_equal(weight, whole[name].numpy()) for name, weight in policy.state()[0].items()), "the old model"
