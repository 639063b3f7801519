"""A user chooses another model while the engine runs, and later the first one, which continues where it was."""

import json
import shutil
from pathlib import Path

import system_folders
from end_to_end.programs import Engine, running
from models.storage.test_ownership import retrain
from waggle.cli import main
from waggle.core import paths
from waggle.protocol import commands, events
from waggle.protocol.events_chat import ChatOffer, Turn, TurnProgress
from waggle.protocol.events_models import ModelChoice, ModelExported
from waggle.protocol.events_playground import QuestionAnswered, QuestionPosed
from waggle.protocol.events_swarms import StartedAgain

TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
SECRET = "a word that nobody else has: zyzzyva"
ALONE = ("swarm.solo=true",)


def test_each_model_keeps_what_it_learned_and_one_that_cannot_be_had_is_let_go_and_a_goodbye_removes_all(
    tmp_path, monkeypatch, capsys
):
    other = tmp_path / "another"
    shutil.copytree(paths.starter(), other)
    retrain(other)
    (other / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|eos|>", "chat_template": TEMPLATE}))
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", system_folders.CACHE: str(tmp_path / "cache")}
    with running(Engine(tmp_path / "home", *ALONE, environment=nowhere)) as engine:
        engine.wait_round(1, 120)
        first = json.loads((tmp_path / "home/models.json").read_bytes())
        assert (first["folder"], first["name"], first["before"]["name"]) == ("", "", ""), "the starter has played its first round"
        assert choose(engine, folder=str(other)).round == 0
        engine.command(commands.Pause)
        talk_with(engine, tmp_path / "home")
        engine.command(commands.Resume)
        begun = choose(engine)
        assert begun.round >= 2
        assert begun.model.startswith("Starter")

        engine.command(commands.Pause)
        start = len(engine.lines)
        engine.command(commands.ChooseModel, name="nobody/nothing")
        failed = engine.wait(ModelChoice, 120, lambda event: event.stage == "failed", start)
        assert "Hugging Face cannot be reached" in failed.title
        capsys.readouterr()
        assert main.main(["model", "cancel", "--home", str(tmp_path / "home")]) == 0
        assert capsys.readouterr().out == "No model is being downloaded.\n"
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken/config.json").write_text("{}")
        assert isinstance(engine.command(commands.ChooseModel, folder=str(tmp_path / "broken")), events.CommandRefused)
        after = [type(event) for event in engine.all_events[start:]]
        assert StartedAgain not in after, "the model in training was let go for one that cannot be had"
        assert events.QuestionsDrawn not in after, "the pause was lost"
        engine.command(commands.PoseQuestion, specialty="bf", number=7)
        posed = engine.wait(QuestionPosed).question
        engine.command(commands.PoseQuestion, specialty="bf", number=7)
        assert [event.question for event in engine.all_events if isinstance(event, QuestionPosed)] == [posed, posed], "pinned"
        engine.command(commands.AskModel, 60, specialty="bf", number=7, mine="no idea")
        tried = engine.wait(QuestionAnswered)
        assert tried.answers[0].rounds == 0
        assert tried.answers[-1].rounds >= 1, "the model before, and the model now"
        assert (tried.mine.text, tried.mine.reason) == ("<answer>no idea</answer>", "wrong: no idea")
        engine.command(commands.ExportModel, 60, path=str(tmp_path / "export"))
        assert engine.wait(ModelExported).rounds >= 1
        assert (tmp_path / "export" / "model.safetensors").is_file()
        assert main.main(["goodbye", "--home", str(tmp_path / "home"), "--remove", "all"]) == 0, "it stops the engine first"
        assert engine.end() == 0
    assert [path.name for path in (tmp_path / "home").rglob("*")] == [], "all that an engine writes is listed"


def talk_with(engine: Engine, home: Path) -> None:
    """A conversation during a pause: two turns, each answered by two models, and nothing of it on disk."""
    engine.command(commands.OfferChat)
    offered = engine.wait(ChatOffer)
    assert (offered.moments[0], offered.taught) == (0, True)
    first = reply_to(engine, words=SECRET, number=0)
    assert [reply.rounds for reply in first.replies] == [offered.moments[-1], 0]
    second = reply_to(engine, words="And again?", number=1, earlier=(first,))
    assert second.left_out == 0
    assert isinstance(engine.command(commands.ClearChat), events.CommandDone)
    files = [path for path in home.rglob("*") if path.is_file()]
    assert files
    assert not any(SECRET.encode() in path.read_bytes() for path in files)


def reply_to(engine: Engine, **words: object) -> Turn:
    start = len(engine.lines)
    assert isinstance(engine.command(commands.SendMessage, 60, **words), events.CommandDone)
    return engine.wait(TurnProgress, 60, lambda event: event.turn.finished, start).turn


def choose(engine: Engine, **choice: str) -> events.Ready:
    """Choose a model and wait until the engine trains it."""
    start = len(engine.lines)
    assert isinstance(engine.command(commands.ChooseModel, **choice), events.CommandDone)
    ready = engine.wait(events.Ready, 120, start=start)
    engine.wait(events.PhaseChanged, 30, lambda event: event.phase == "contributing", start)
    return ready
