"""The sizes of models that other libraries compute, from config.json alone: what counts, and what is refused."""

import json
from pathlib import Path

import pytest

from waggle.core.errors import ModelError
from waggle.models.shared import generic_config
from waggle.models.shared.configuration.counted_config import number
from waggle.models.shared.mlx_lm import config as mlx_lm_config

MIXTRAL = {
    "model_type": "mixtral", "vocab_size": 97, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 8, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.fixture(params=["transformers", "mlx-lm"])
def read(request):
    if request.param == "mlx-lm":
        pytest.importorskip("mlx_lm")
        return mlx_lm_config.read
    return generic_config.read


def folder_with(place: Path, **settings: object) -> Path:
    (place / "config.json").write_text(json.dumps(MIXTRAL | settings))
    return place


def test_weights_that_are_not_downloaded_are_counted_by_the_configuration(read, tmp_path):
    """Per layer attention, 64 * 16 * (2 * 4 + 2 * 2), and 8 experts of three matrices 64 * 96; twice 97 words of 64 numbers."""
    expected = 2 * (64 * 16 * 12 + 8 * 3 * 64 * 96) + 2 * 97 * 64
    assert read(folder_with(tmp_path)).counted == expected
    assert read(folder_with(tmp_path, tie_word_embeddings=True)).counted == expected - 97 * 64


@pytest.mark.parametrize("experts", ["many", [8, "x"], {"a": 1}, float("inf")])
def test_experts_that_are_no_number_are_refused_before_the_download(read, tmp_path, experts):
    with pytest.raises(ModelError):
        read(folder_with(tmp_path, num_local_experts=experts))


def test_a_setting_is_the_first_that_the_model_has_and_the_largest_of_a_list():
    settings = {"first": None, "second": [3, 7, 5], "third": 9}.get
    assert number(settings, "first", "second", "third") == 7
    assert number(settings, "first", "absent", default=4) == 4
    with pytest.raises(ValueError, match="absent is missing"):
        number(settings, "absent", "first")
