"""Test `waggle model`: what it suggests, searches and chooses, with and without an engine."""

import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants

import system_folders
from models.local_hub import local_hub
from waggle.cli import main
from waggle.cli.models import model
from waggle.cli.shared.model_argument import model_of
from waggle.core import paths, settings
from waggle.core.settings import ModelSettings
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.shared.suggested_models import suggested_models
from waggle.models.storage import hub_cache
from waggle.protocol.events_models import ModelDetails, read_first_model


def run(home: Path, *words: str) -> int:
    return main.main(["model", *words, "--home", str(home)])


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A usual laptop, whatever runs the test."""
    laptop = DeviceCapacity(free=int(12e9), speeds={"float32": 1e11, "bfloat16": 2e11})
    monkeypatch.setattr(model.model_fit, "measure_machine", lambda _: laptop)


def test_models_on_this_computer_and_suggested_ones_are_listed_with_whether_they_fit(tmp_path, capsys, machine, monkeypatch):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    assert run(tmp_path / "home", "list") == 0
    present, suggestions = capsys.readouterr().out.split("\n\nSuggested:\n")
    assert present.startswith("On this computer:\nstarter: chosen, 3 MB. Fits: about ")
    lines = suggestions.splitlines()
    assert [line.partition(":")[0] for line in lines] == [suggested.name for suggested in suggested_models()]
    assert "Fits: about " in lines[0]
    assert "This model does not fit" in lines[-1]
    assert sum("needs an account" in line for line in lines) == sum(suggested.gated for suggested in suggested_models())


def test_what_is_on_this_computer_is_not_suggested(tmp_path, capsys, machine, monkeypatch):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    name = suggested_models()[0].name
    shutil.copytree(paths.starter(), paths.models() / name)
    unfinished = paths.models() / "bees" / f"{hub_cache.UNFINISHED}half"
    unfinished.mkdir(parents=True)
    (unfinished / "model.safetensors").write_bytes(bytes(2_000_000))
    assert run(tmp_path, "list", "--set", f"model.name={name}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("starter: 3 MB. Fits: about ")
    assert lines[2].startswith(f"{name}: chosen, 3 MB. Fits: about ")
    assert lines[3] == "bees/half: 2 MB, not complete."
    assert not any(line.startswith(name) for line in lines[4:])


def test_a_trained_model_is_listed_with_its_rounds():
    details = ModelDetails(kind="folder", folder="/home/ada/mine", bytes=4_000_000, rounds=1, fit="Fits.")
    assert model.model_line(details) == "/home/ada/mine: 4 MB, 1 round trained here. Fits."


def test_the_first_model_is_one_line_that_the_window_reads(tmp_path, capsys, machine, monkeypatch):
    assert run(tmp_path, "first") == 0
    offer = read_first_model(capsys.readouterr().out.encode())
    assert offer is not None
    assert (offer.fits, offer.gated) == (True, False)
    assert offer.swarm is None or offer.weights < 1e9, "the swarm that suits a small one comes with the offer"
    old = DeviceCapacity(free=int(2e9), speeds={"float32": 5e9, "bfloat16": 5e9})
    monkeypatch.setattr(model.model_fit, "measure_machine", lambda _: old)
    assert run(tmp_path, "first") == 0
    assert read_first_model(capsys.readouterr().out.encode()) is None
    assert read_first_model(b"a warning") is None


def test_the_hub_is_searched(tmp_path, capsys, monkeypatch):
    with local_hub() as hub:
        hub.add("bees/tiny", paths.starter())
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        assert run(tmp_path, "search", "bees") == 0
        assert capsys.readouterr().out.startswith("bees/tiny:")
        assert run(tmp_path, "search", "wasps") == 0
        assert "no such model" in capsys.readouterr().out


def test_without_an_engine_the_choice_is_for_the_next_one(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "mine"
    shutil.copytree(paths.starter(), folder)
    home = tmp_path / "home"
    for words, chosen in (
        (str(folder / "config.json"), ModelSettings(folder=str(folder))),
        ("https://huggingface.co/Qwen/Qwen3-0.6B/tree/main", ModelSettings(name="Qwen/Qwen3-0.6B")),
        ("starter", ModelSettings()),
    ):
        assert run(home, "choose", words) == 0
        assert settings.read(home / "settings.toml").model == chosen
    assert "The next engine trains the starter." in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    assert model_of("mine") == ModelSettings(folder=str(folder)), "a relative path"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("choose",), "needs a model behind it"),
        (("search",), "needs words behind it"),
        (("list", "more"), "needs nothing behind it"),
        (("choose", "/nowhere"), f"There is no model in {Path('/nowhere').absolute()}"),
        (("choose", "x.gguf"), "x.gguf cannot be read: "),
        (("cancel",), "No engine"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path, capsys, words, says):
    assert run(tmp_path, *words) != 0
    assert says in capsys.readouterr().err


def test_a_folder_of_a_person_is_not_removed(tmp_path, capsys):
    folder = tmp_path / "mine"
    folder.mkdir()
    assert run(tmp_path / "home", "remove", str(folder)) == 1
    assert f"{folder} is a folder of yours, which Waggle does not delete." in capsys.readouterr().err
    assert folder.is_dir()
