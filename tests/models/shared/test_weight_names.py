"""Weights whose names have another prefix are read where that is certain; else they are named otherwise, not missing."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.models.backend import open_policy
from waggle.models.inspection import inspector
from waggle.models.shared import weight_files
from waggle.models.shared.configuration import model_config


@pytest.fixture
def renamed(tmp_path):
    """The starter, its weights named by a function."""

    def rename(name_of):
        folder = tmp_path / "model"
        shutil.copytree(paths.starter(), folder)
        weights = load_file(folder / "model.safetensors")
        save_file({name_of(name): array for name, array in weights.items()}, folder / "model.safetensors", {"format": "pt"})
        return folder

    return rename


def test_a_model_that_was_saved_below_its_head_is_the_same_model(renamed):
    """As AutoModel.save_pretrained: transformers loads it with equal logits."""
    folder = renamed(lambda name: name.removeprefix("model."))
    inspector.inspect(folder)
    shapes = model_config.read(paths.starter()).weights()
    usual, below = (dict(weight_files.read_model(each, shapes)) for each in (paths.starter(), folder))
    assert usual.keys() == below.keys()
    assert all(np.array_equal(usual[name], below[name]) for name in usual)
    assert open_policy(folder, device="cpu", threads=1).policy.parameters


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "base_model.model."])
def test_what_a_wrapper_saved_is_named_otherwise_and_a_download_cannot_help(renamed, prefix):
    folder = renamed(lambda name: prefix + name)
    with pytest.raises(ModelError, match="named otherwise") as refused:
        inspector.inspect(folder)
    assert prefix in refused.value.title
    assert "download" not in refused.value.advice


def test_a_weight_that_is_missing_is_missing(renamed):
    folder = renamed(lambda name: "other" if name == "model.norm.weight" else name)
    with pytest.raises(ModelError, match=r"model\.norm\.weight is not there") as refused:
        inspector.inspect(folder)
    assert "download" in refused.value.advice
