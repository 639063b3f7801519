"""One node in Python: a real engine with the starter, its rounds and events, and how it ends."""

import logging
from pathlib import Path

import pytest

import waggle
from waggle import node
from waggle.core import settings
from waggle.core.errors import EngineError, SettingsError
from waggle.core.settings import ScheduleSettings, Settings
from waggle.engine.storage.pause_request import PauseRequest
from waggle.protocol import commands, events
from waggle.protocol.schedule import Wishes

QUICK = {
    "swarm.solo": True, "computer.threads": 1, "computer.priority": "normal", "learning.held_out_questions": 1,
    "learning.questions": 4, **node.AT_ANY_TIME,
}  # fmt: skip


@pytest.fixture(autouse=True)
def this_source(monkeypatch):
    """The engine's process imports the same Waggle as this test."""
    monkeypatch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))


def test_a_node_plays_so_many_rounds_in_all_and_the_next_run_continues(tmp_path):
    with node.run(tmp_path / "home", QUICK, until_round=2) as running:
        first = list(running.rounds())
        assert running.state.phase == "stopped"
        assert running.state.ready.questions == 4
    assert [summary.round for summary in first] == [0, 1]
    assert all(summary.tokens for summary in first)
    with node.run(tmp_path / "home", QUICK, until_round=3) as running:
        assert [summary.round for summary in running.rounds()] == [2]
    with node.run(tmp_path / "home", QUICK, until_round=3) as running:
        assert list(running.rounds()) == [], "so many were played before"


def test_events_are_typed_commands_are_answered_and_a_block_that_ends_saves(tmp_path):
    answers = []
    with node.run(tmp_path, QUICK) as running:
        for event in running:
            if isinstance(event, events.QuestionsDrawn) and event.round == 0:
                running.send(commands.ChangeSettings(id="theme", values={"window.theme": "dark"}))
            if isinstance(event, events.CommandDone):
                answers.append(event.id)
            if isinstance(event, events.RoundCompleted) and event.summary.round == 1:
                break
    assert answers == ["theme"]
    assert running.state.settings.window.theme == "dark"
    assert running.state.phase == "stopped"
    assert list(running) == [], "it is closed"
    with pytest.raises(EngineError, match="The engine has ended"):
        running.send(commands.Stop(id="late"))
    with node.run(tmp_path, QUICK, until_round=0) as next_run:
        assert list(next_run.rounds()) == []
        assert next_run.state.round >= 2, "the rounds were saved"


def test_what_cannot_be_used_is_refused_before_anything_starts(tmp_path):
    for values, words in (
        ({"learning.group_sise": 4}, "There is no setting|unknown setting"), ({"learning.group_size": 1}, "learning.group_size"),
        ({"learning.group_size": "many"}, "learning.group_size"), ({"swarm.solo": object()}, "swarm.solo cannot be"),
    ):  # fmt: skip
        with pytest.raises(SettingsError, match=words):
            node.run(tmp_path / "home", values)
    with pytest.raises(SettingsError, match="until_round"):
        node.run(tmp_path / "home", until_round=-1)
    assert not (tmp_path / "home").exists()


def test_a_question_that_only_a_person_can_answer_is_an_error(tmp_path):
    nowhere = QUICK | {"model.folder": "/nowhere"}
    with pytest.raises(EngineError, match="There is no model in /nowhere"), node.run(tmp_path, nowhere) as running:
        list(running.rounds())


def test_an_engine_that_fails_says_why(tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(EngineError, match="home") as raised, node.run(tmp_path / "home", QUICK) as running:
        list(running.rounds())
    assert "code" not in raised.value.title


def test_why_a_node_waits_is_logged_once(tmp_path, caplog):
    PauseRequest(tmp_path / "asked.json").save(Wishes(paused=True))
    with node.run(tmp_path, QUICK, until_round=1) as running, caplog.at_level(logging.WARNING, "waggle.node"):
        rounds = running.rounds()
        for _ in running:
            if running.state.phase == "paused":
                break
        running.send(commands.ChangeSettings(id="any", values={"window.theme": "dark"}))
        running.send(commands.Resume(id="go"))
        assert [summary.round for summary in rounds] == [0]
    assert [record.message.partition(".")[0] for record in caplog.records] == ["Paused"]
    caplog.clear()


def test_no_rule_holds_a_node_back_that_runs_at_any_time():
    assert set(node.AT_ANY_TIME) == {f"when.{name}" for name in ScheduleSettings.__struct_fields__}


@pytest.mark.parametrize("value", [True, 7, 0.25, "two words", 'a "quote"\n', ("a", "b=c"), (), None])
def test_a_value_is_read_back_as_it_was_written(value):
    key, read = settings.assignment(settings.override("swarm.seeds", value))
    assert key == "swarm.seeds"
    assert (tuple(read) if isinstance(read, list) else read) == value
    assert settings.read(Path("nowhere"), (settings.override("swarm.seeds", None),)) == Settings()
