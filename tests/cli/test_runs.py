"""Runs of nodes are listed by name and compared by reward and held-out score, in the terminal and as a file."""

import json
from contextlib import closing
from pathlib import Path

import pytest

import waggle
from waggle import node
from waggle.cli import main
from waggle.core import paths
from waggle.engine.storage.history import History
from waggle.engine.storage.runs import runs_of
from waggle.protocol.events import HeldOutScore, RoundSummary


def write_runs(folder: Path, *runs: tuple[str, float, int], count: int = 40) -> None:
    """A history of runs one after the other, each with a reward and right answers of 200 at its end."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(History(paths.Home(folder).model.history)) as history:
        for place, (name, reward, right) in enumerate(runs):
            for number in range(place * count, (place + 1) * count):
                history.save_round(RoundSummary(round=number, at=1e9 + number, reward=reward, solved=0.0, seconds=1.0, run=name))
            history.save_score(HeldOutScore(round=(place + 1) * count, at=1e9, right=right, total=200))


@pytest.fixture
def folder(tmp_path) -> Path:
    write_runs(tmp_path / "first", ("plain", 0.125, 20), ("dapo", 0.5, 90))
    return tmp_path / "first"


def test_the_runs_of_a_node_are_listed_with_what_they_reached(folder, capsys):
    assert main.main(["runs", "--home", str(folder)]) == 0
    head, plain, dapo = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "rounds", "reward", "held", "out", "folder"]
    assert plain.split() == ["plain", "1–40", "0.125", "10.0%", str(folder)]
    assert dapo.split() == ["dapo", "41–80", "0.500", "45.0%", str(folder)]
    write_runs(folder.parent / "second", ("other", 0.25, 30))
    assert main.main(["runs", str(folder), str(folder.parent / "second"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["runs"]
    assert [(fact["name"], fact["rounds"], fact["held_out"]) for fact in facts] == [
        ("plain", 40, 0.1),
        ("dapo", 40, 0.45),
        ("other", 40, 0.15),
    ]


def test_two_runs_are_compared_in_equal_parts_and_written(folder, tmp_path, capsys):
    file = tmp_path / "compared.json"
    assert main.main(["compare", "plain", "dapo", "--home", str(folder), "--write", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "B solves more new questions." in printed
    assert "37–40     0.125     0.500       10.0%       45.0%" in printed
    compared = json.loads(file.read_text())
    assert [part["first"] for part in compared["parts"]] == list(range(0, 40, 4))
    assert all(part["reward"] == [0.125, 0.5] for part in compared["parts"])
    assert compared["differ"] is True
    assert main.main(["compare", "plain", "dapo", "--home", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == compared
    assert main.main(["compare", "plain", "dapo", "--home", str(folder), "--write", str(file)]) == 1, "it is there already"


def test_a_folder_stands_for_its_newest_run_and_close_scores_decide_nothing(folder, capsys):
    write_runs(folder.parent / "second", ("other", 0.25, 84), count=10)
    assert main.main(["compare", str(folder), str(folder.parent / "second")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"A  dapo  {folder}\nB  other  ")
    assert "too close to tell" in printed
    assert main.main(["compare", "plain", "nothing", "--home", str(folder)]) == 1
    assert "There is no run nothing.\n        Known here: plain, dapo." in capsys.readouterr().err


def test_where_nothing_was_played_that_is_said(tmp_path, capsys):
    assert main.main(["runs", "--home", str(tmp_path)]) == 0
    assert "No round has been played here yet." in capsys.readouterr().out


def test_rounds_carry_the_name_that_was_chosen_and_else_one_of_their_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))
    chosen = {
        "swarm.solo": True, "computer.threads": 1, "computer.priority": "normal", "learning.held_out_questions": 1,
        "learning.questions": 4, **node.AT_ANY_TIME,
    }  # fmt: skip
    for name, until in (("", 1), ("My baseline", 2)):
        with node.run(tmp_path, chosen | {"tracking.run": name}, until_round=until) as running:
            assert len(list(running.rounds())) == 1
    first, second = runs_of(paths.Home(tmp_path))
    assert first.name.startswith("Starter-0.8M_First-light_")
    assert (second.name, [summary.round for summary in second.rounds]) == ("My-baseline", [1])
