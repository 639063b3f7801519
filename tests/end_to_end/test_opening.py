"""An engine that dies while it opens a model does not open it again by itself, and a model that would kill it is refused."""

import json
import shutil
import time
from pathlib import Path

import pytest

from end_to_end.programs import SLOW, Engine, running
from waggle.core import paths
from waggle.protocol import commands, events

ALONE = ("swarm.solo=true",)
ENDED = "The engine ended while it opened the model in"


@pytest.fixture
def other(tmp_path):
    return Path(shutil.copytree(paths.starter(), tmp_path / "another"))


def kill_while_opening(engine: Engine, home: Path) -> None:
    """SIGKILL as soon as the engine has written down what it opens."""
    deadline = time.monotonic() + 120 * SLOW
    while not (home / "opening.json").exists():
        assert engine.process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)
    engine.kill()
    assert (home / "opening.json").exists(), "it was opened before the kill"


def goes_back(engine: Engine) -> None:
    """Wait until the starter plays, and the engine has said why."""
    warned = engine.wait(events.Warned, 120, lambda event: event.title.startswith(ENDED))
    assert warned.advice.startswith("The starter is trained instead.")
    ready = engine.wait(events.Ready, 120)
    assert ready.model.startswith("Starter")
    engine.wait(events.RoundCompleted, 60, lambda event: event.summary.round >= ready.round)


def test_a_chosen_model_whose_opening_is_killed_is_left_for_the_one_before_and_may_be_chosen_once_more(tmp_path, other):
    home = tmp_path / "home"
    with running(Engine(home, *ALONE)) as engine:
        engine.wait_round(0, 120)
        assert isinstance(engine.command(commands.ChooseModel, 120, folder=str(other)), events.CommandDone)
        kill_while_opening(engine, home)
    with running(Engine(home, *ALONE)) as engine:
        goes_back(engine)
        start = len(engine.lines)
        assert isinstance(engine.command(commands.ChooseModel, 120, folder=str(other)), events.CommandDone)
        assert engine.wait(events.Ready, 120, start=start).model.startswith("another")
        engine.wait(events.RoundCompleted, 60, start=start)
        assert engine.end() == 0
    assert not (home / "opening.json").exists()


def test_a_model_of_the_settings_whose_opening_is_killed_is_left_for_the_starter_at_every_start(tmp_path, other):
    home, chosen = tmp_path / "home", f'model.folder="{other}"'
    with running(Engine(home, *ALONE, chosen)) as engine:
        kill_while_opening(engine, home)
    for _ in range(2):
        with running(Engine(home, *ALONE, chosen)) as engine:
            goes_back(engine)
            assert engine.end() == 0


def test_an_end_in_the_middle_of_an_opening_blames_no_model(tmp_path, other):
    home, chosen = tmp_path / "home", f'model.folder="{other}"'
    with running(Engine(home, *ALONE, chosen)) as engine:
        deadline = time.monotonic() + 120 * SLOW
        while not (home / "opening.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert engine.end() == 0
    with running(Engine(home, *ALONE, chosen)) as engine:
        assert engine.wait(events.Ready, 120).model.startswith("another")
        assert engine.end() == 0


def test_a_model_that_would_end_the_engine_is_refused_and_training_goes_on(tmp_path, other):
    """Its tokenizer.json of 44 kB doubles a text 600 times."""
    words = json.loads((other / "tokenizer.json").read_text())
    doubling = {"type": "Replace", "pattern": {"String": "e"}, "content": "ee"}
    words["normalizer"] = {"type": "Sequence", "normalizers": [doubling] * 600}
    (other / "tokenizer.json").write_text(json.dumps(words))
    home = tmp_path / "home"
    with running(Engine(home, *ALONE)) as engine:
        engine.wait_round(0, 120)
        start = len(engine.lines)
        refused = engine.command(commands.ChooseModel, 120, folder=str(other))
        assert isinstance(refused, events.CommandRefused)
        assert "times as long" in refused.title
        engine.wait(events.RoundCompleted, 60, start=start)
        assert not [event for event in engine.all_events[start:] if isinstance(event, events.Preparing)]
        assert engine.end() == 0
    with running(Engine(home, *ALONE, f'model.folder="{other}"')) as engine:
        assert "times as long" in engine.wait(events.Warned, 120, lambda event: "times" in event.title).title
        assert engine.wait(events.Ready, 120).model.startswith("Starter")
        assert engine.end() == 0
