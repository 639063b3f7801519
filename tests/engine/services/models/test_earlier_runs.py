"""The trainings of other models in a home are found in its files, with their names and scores."""

from contextlib import closing
from dataclasses import replace

import msgspec

from waggle.core import paths
from waggle.engine.runtime.model_source import ModelRecord
from waggle.engine.services.models.earlier_runs import MOST_SCORES, earlier_runs, thinned
from waggle.engine.storage.history import History
from waggle.models.storage.checkpoint import CheckpointState
from waggle.protocol.events import HeldOutScore, RoundSummary


def score(number: int, right: int = 3) -> HeldOutScore:
    return HeldOutScore(round=number, at=1e9 + number, right=right, total=30, exam="a", by_specialty={"Fractions": (right, 30)})


def trained(home: paths.Home, *, rounds: int, right: int, hub: str = "") -> None:
    """A history of so many rounds with scores, and a checkpoint that names the model."""
    home.model.root.mkdir(parents=True, exist_ok=True)
    with closing(History(home.model.history)) as history, history.transaction():
        for number in range(rounds):
            history.save_round(RoundSummary(round=number, at=1e9 + rounds + number, reward=0.5, solved=0.25, seconds=1.0))
        history.save_score(score(0, 1))
        history.save_score(score(rounds, right))
    folder = home.model.checkpoints / f"r{rounds:08d}"
    folder.mkdir(parents=True)
    state = CheckpointState(round=rounds, step=rounds, epoch=0, charter="", base="b", hub=hub)
    (folder / "state.json").write_bytes(msgspec.json.encode(state))


def test_other_trainings_are_told_newest_first_and_the_present_one_is_not(tmp_path):
    home = paths.Home(tmp_path)
    small, present = (replace(home, model_root=tmp_path / "models" / name) for name in ("bees--small", "bees--present"))
    trained(home, rounds=40, right=9)
    (tmp_path / "models.json").write_bytes(msgspec.json.encode(ModelRecord(folder="/home/anna/my-model", name="")))
    trained(small, rounds=20, right=12, hub="bees/small 0123abc")
    trained(present, rounds=60, right=2, hub="bees/present 0123abc")
    runs = earlier_runs(present).runs
    assert [(run.model, run.rounds) for run in runs] == [("my-model", 40), ("bees/small", 20)]
    assert [(each.round, each.right) for each in runs[1].held_out] == [(0, 1), (20, 12)]
    assert all(not each.by_specialty for run in runs for each in run.held_out)
    assert [run.model for run in earlier_runs(home).runs] == ["bees/present", "bees/small"]


def test_the_first_model_of_a_home_is_the_starter_where_its_list_says_so(tmp_path):
    home = paths.Home(tmp_path)
    trained(home, rounds=5, right=9)
    (tmp_path / "models.json").write_bytes(msgspec.json.encode(ModelRecord(folder="", name="")))
    (run,) = earlier_runs(replace(home, model_root=tmp_path / "models" / "other")).runs
    assert (run.model, run.is_starter) == ("", True)


def test_a_damaged_history_and_one_without_scores_are_left_out(tmp_path):
    present = replace(paths.Home(tmp_path), model_root=tmp_path / "models" / "present")
    for name in ("damaged", "empty"):
        (tmp_path / "models" / name).mkdir(parents=True)
    (tmp_path / "models/damaged/history.sqlite").write_bytes(b"no database" * 400)
    History(tmp_path / "models/empty/history.sqlite").close()
    assert earlier_runs(present).runs == ()


def test_an_answer_is_bounded_and_keeps_the_last_score():
    few = thinned([score(number) for number in range(10_001)])
    assert len(few) <= MOST_SCORES
    assert few[-1].round == 10_000
    assert thinned([score(1), score(2)])[0].round == 1
