"""A chosen model whose disk is not there at a start is waited for; no other is trained before a person says so."""

import shutil
from pathlib import Path

import pytest

from end_to_end.programs import Engine, running
from waggle.cli import main
from waggle.core import paths, settings
from waggle.protocol import commands, events
from waggle.protocol.events_models import ModelUnavailable

ALONE = ("swarm.solo=true", "learning.questions=1", "learning.local=1")


@pytest.fixture
def home(tmp_path: Path) -> paths.Home:
    return paths.Home(tmp_path / "home").prepare()


@pytest.fixture
def model(tmp_path: Path, home: paths.Home) -> Path:
    """The folder of the chosen model, with which a round was played."""
    folder = Path(shutil.copytree(paths.starter(), tmp_path / "disk" / "mine"))
    settings.change(home.settings, {"model.folder": str(folder)})
    with running(Engine(home.root, *ALONE)) as engine:
        assert engine.wait(events.Ready, 120).model.startswith("mine")
        engine.wait(events.RoundCompleted, 120)
        assert engine.end() == 0
    return folder


def unplug(model: Path) -> Path:
    """Take the disk with the model away."""
    return model.parent.rename(model.parent.with_name("elsewhere"))


def trains(engine: Engine) -> bool:
    return any(isinstance(event, events.Ready | events.RoundCompleted) for event in engine.all_events)


def test_the_engine_asks_at_each_start_and_goes_on_by_itself_once_the_disk_is_back(home, model, capsys):
    disk = unplug(model)
    for ends in (Engine.kill, Engine.end):
        with running(Engine(home.root, *ALONE)) as engine:
            assert engine.wait(ModelUnavailable, 120).reason == f"There is no model in {model}."
            assert main.main(["status", "--home", str(home.root)]) == 0
            printed = capsys.readouterr().out
            assert "Waiting for you: Your model is not available right now" in printed
            assert f"There is no model in {model}" in printed
            assert "`waggle model choose starter`" in printed
            ends(engine)
            assert not trains(engine)
    with running(Engine(home.root, *ALONE)) as engine:
        engine.wait(ModelUnavailable, 120)
        disk.rename(model.parent)
        ready = engine.wait(events.Ready, 120)
        assert (ready.model.startswith("mine"), ready.round > 0) == (True, True), "what it had learned goes on"
        assert len([event for event in engine.all_events if isinstance(event, ModelUnavailable)]) == 1, "it asks once"
        assert engine.end() == 0
    assert settings.read(home.settings).model.folder == str(model)


@pytest.mark.parametrize("by", ["the window", "a command"])
def test_the_starter_is_trained_once_a_person_says_so_and_the_model_goes_on_once_it_is_chosen_again(home, model, by, capsys):
    disk = unplug(model)
    with running(Engine(home.root, *ALONE)) as engine:
        engine.wait(ModelUnavailable, 120)
        if by == "the window":
            assert isinstance(engine.command(commands.ChooseModel), events.CommandDone)
        else:
            assert main.main(["model", "choose", "starter", "--home", str(home.root)]) == 0
        assert engine.wait(events.Ready, 120).model.startswith("Starter")
        start = len(engine.lines)
        disk.rename(model.parent)
        assert isinstance(engine.command(commands.ChooseModel, 120, folder=str(model)), events.CommandDone)
        ready = engine.wait(events.Ready, 120, start=start)
        assert (ready.model.startswith("mine"), ready.round > 0) == (True, True)
        assert engine.end() == 0
