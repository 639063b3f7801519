"""Test random models of published shapes."""

import pytest
import torch

from waggle.core import paths
from waggle.core.errors import LabError
from waggle.models.backend import open_policy
from waggle.models.shared.configuration import model_config
from waggle_lab import __main__ as laboratory
from waggle_lab.starter_model import shapes

PUBLISHED = {"SmolLM2-135M": 134_515_008, "Qwen2.5-0.5B": 494_032_768, "Qwen3-0.6B": 596_049_920, "Llama-3.2-1B": 1_235_814_400}


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_a_shape_has_as_many_parameters_as_the_published_model(name):
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in shapes.model(name).parameters()) == PUBLISHED[name]


@pytest.fixture
def small(monkeypatch) -> None:
    """The shapes with the starter's small vocabulary, because nearly all time of these tests goes into the vocabulary."""
    for name, shape in shapes.SHAPES.items():
        small = {"vocab_size": model_config.read(paths.starter()).vocab_size, "bos_token_id": 0, "eos_token_id": 1}
        monkeypatch.setitem(shapes.SHAPES, name, shape | small)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", shapes.SHAPES)
@pytest.mark.parametrize("precision", shapes.PRECISIONS)
def test_a_shape_is_written_once_and_opens_as_a_policy(name, precision, tmp_path):
    before = torch.random.get_rng_state()
    folder = shapes.write(tmp_path, name, precision, layers=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert model_config.read(folder).dtype == precision
    written = (folder / "model.safetensors").stat().st_mtime_ns
    assert shapes.write(tmp_path, name, precision, layers=1) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
    assert open_policy(folder, device="cpu", threads=1).policy.parameters > 1_000_000


@pytest.mark.usefixtures("small")
def test_the_door_says_where_the_folder_is(tmp_path, capsys):
    assert laboratory.main(["shapes", "Qwen3-0.6B", "--layers", "1", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'Qwen3-0.6B-bfloat16-1-layers'}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["Qwen3-0.6B-bfloat16-1-layers"]


@pytest.mark.parametrize("layers", [0, 29, -1])
def test_layers_that_are_not_there_are_refused(layers, tmp_path):
    with pytest.raises(LabError, match="has 28 layers"):
        shapes.write(tmp_path, "Qwen3-0.6B", layers=layers)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="cannot be written"), torch.device("meta"):
        shapes.write(tmp_path / "file", "Qwen3-0.6B", layers=1)
