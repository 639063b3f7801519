"""The files of a trained model change between two starts: in what does not count, in how it speaks, and in its numbers."""

import json
import shutil
from pathlib import Path

import pytest

import system_folders
from end_to_end.programs import Engine, running
from models.local_hub import local_hub
from models.storage.test_ownership import change_configuration, retrain
from waggle.cli import main
from waggle.core import paths
from waggle.protocol import commands, events
from waggle.protocol.events_models import ModelChanged
from waggle.protocol.events_swarms import StartedAgain

TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
CHAT = "The chat template of this model changed since it was trained last."


@pytest.fixture
def model(tmp_path) -> Path:
    """A model of one's own, which would be the starter if its weights were."""
    folder = shutil.copytree(paths.starter(), tmp_path / "model")
    retrain(folder)
    return folder


def engine_in(tmp_path: Path, folder: object) -> Engine:
    chosen = (f"model.folder={folder}", "model.prompt_form=plain", "swarm.solo=true")
    return Engine(tmp_path / "home", *chosen, environment={"HOME": str(tmp_path)})


def train(engine: Engine) -> tuple[events.Ready, list[str]]:
    """Wait for a round, then end; the Ready event, and all warnings."""
    ready = engine.wait(events.Ready, 120)
    engine.wait_round(ready.round, 120)
    assert engine.end() == 0
    assert engine.state().changed is None
    return ready, [event.title for event in engine.all_events if isinstance(event, events.Warned)]


@pytest.mark.timeout(600)
def test_what_does_not_count_goes_on_and_another_template_says_so_and_goes_on(model, tmp_path):
    with running(engine_in(tmp_path, model)) as engine:
        first, _ = train(engine)
    change_configuration(model)
    with running(engine_in(tmp_path, "~/model")) as engine:
        second, warnings = train(engine)
    assert (second.round > first.round, second.base, warnings) == (True, first.base, [])
    moved = model.rename(tmp_path / "moved")
    (moved / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|eos|>", "chat_template": TEMPLATE}))
    with running(engine_in(tmp_path, moved)) as engine:
        third, warnings = train(engine)
    assert (third.round > second.round, third.base, warnings) == (True, first.base, [CHAT])
    with running(engine_in(tmp_path, moved)) as engine:
        fourth, warnings = train(engine)
    assert (fourth.round > third.round, fourth.base, warnings) == (True, first.base, [])


@pytest.mark.timeout(600)
def test_other_numbers_ask_also_after_a_kill_and_the_old_one_can_be_kept(model, tmp_path, capsys):
    with running(engine_in(tmp_path, model)) as engine:
        before, _ = train(engine)
    retrain(model)
    with running(engine_in(tmp_path, model)) as engine:
        changed = engine.wait(ModelChanged, 120)
        engine.kill()
    with running(engine_in(tmp_path, model)) as engine:
        changed_after = engine.wait(ModelChanged, 120)
        assert (changed_after.model, changed_after.fits, changed_after.is_whole) == ("model", True, True)
        assert changed_after.rounds == changed.rounds > 0
        assert main.main(["ctl", "--home", str(tmp_path / "home"), "status"]) == 0
        printed = capsys.readouterr().out
        assert "Waiting for you: model has changed since you trained it." in printed
        assert "`waggle ctl keep`" in printed
        assert engine.state().phase == "preparing"
        assert isinstance(engine.command(commands.DecideTraining, choice="keep"), events.CommandDone)
        ready, _ = train(engine)
        assert (ready.round, ready.base) == (changed.rounds, before.base)
    with running(engine_in(tmp_path, model)) as engine:
        later, _ = train(engine)
    assert (later.round > ready.round, later.base) == (True, before.base), "it does not ask again"


@pytest.mark.timeout(600)
def test_it_can_begin_anew_and_the_old_training_is_found_again_with_its_files(model, tmp_path):
    with running(engine_in(tmp_path, model)) as engine:
        before, _ = train(engine)
    old = shutil.copytree(model, tmp_path / "old")
    retrain(model)
    with running(engine_in(tmp_path, model)) as engine:
        rounds = engine.wait(ModelChanged, 120).rounds
        assert main.main(["ctl", "--home", str(tmp_path / "home"), "anew"]) == 0
        new, _ = train(engine)
        assert new.round == 0
        assert new.base != before.base
    with running(engine_in(tmp_path, model)) as engine:
        later, _ = train(engine)
    assert (later.round > 0, later.base) == (True, new.base), "it does not ask again"
    with running(engine_in(tmp_path, old)) as engine:
        ready, _ = train(engine)
    assert (ready.round, ready.base) == (rounds, before.base)


@pytest.mark.timeout(600)
def test_while_it_asks_another_model_can_be_chosen_and_an_answer_without_a_question_is_refused(model, tmp_path):
    with running(engine_in(tmp_path, model)) as engine:
        train(engine)
    retrain(model)
    with running(engine_in(tmp_path, model)) as engine:
        engine.wait(ModelChanged, 120)
        start = len(engine.lines)
        assert isinstance(engine.command(commands.ChooseModel), events.CommandDone)
        assert engine.wait(events.Ready, 120, start=start).model.startswith("Starter")
        refused = engine.command(commands.DecideTraining, choice="anew")
        assert isinstance(refused, events.CommandRefused)
        assert refused.title == "There is nothing to decide."
        assert engine.end() == 0


@pytest.mark.timeout(600)
def test_what_comes_from_the_hub_and_was_trained_in_a_folder_goes_on_there(model, tmp_path):
    with running(engine_in(tmp_path, model)) as engine:
        before, _ = train(engine)
    with local_hub() as hub:
        hub.add("bees/tiny", model)
        chosen = ("model.name=bees/tiny", "model.prompt_form=plain", "swarm.solo=true")
        where = {"HF_ENDPOINT": hub.endpoint, system_folders.CACHE: str(tmp_path / "cache")}
        with running(Engine(tmp_path / "home", *chosen, environment=where)) as engine:
            engine.wait(StartedAgain, 120, lambda event: event.reason == "This model was trained here before.")
            ready, warnings = train(engine)
    assert (ready.round > before.round, ready.base, warnings) == (True, before.base, [])
