"""Test that a damaged history is rebuilt from the record of events, of one model only, whole or not at all."""

import os

import pytest

from killing import killed_after
from waggle.core.errors import HistoryError
from waggle.core.settings import ModelSettings, Settings
from waggle.engine.storage.history import History, read_days
from waggle.engine.storage.history_recovery import fill_in, open_or_rebuild
from waggle.protocol import events, json_lines
from waggle.protocol.state import Snapshot, State

GRIDS = events.SpecialtyInfo(dataset="binary_matrix", title="Grids")
STARTER, OTHER = ModelSettings(), ModelSettings(name="owner/other")
AHA = events.Aha(round=1, at=1.0, specialty="Grids")


def played(number: int, reward: float = 0.5) -> events.RoundSummary:
    return events.RoundSummary(round=number, at=1.0, reward=reward, solved=0.5, seconds=2.0, completions=64, external=3)


def score(number: int) -> events.HeldOutScore:
    return events.HeldOutScore(round=number, at=1.0, right=number, total=270)


def ready(model: str = "m", first: int = 0) -> events.Ready:
    return events.Ready(
        protocol=1, version="0", node="n", name="n", swarm="s", charter="c", specialties=(GRIDS,), model=model, model_note="",
        backend="torch", device="cpu", device_reason="", threads=1, cores=2, round=first, completions=0, group_size=8,
        parameters=1,
    )  # fmt: skip


def begun(model: ModelSettings, first: int = 0) -> list[events.EngineEvent]:
    """The events of a start with this model from this round on."""
    return [events.SettingsChanged(settings=Settings(model=model)), ready(model.name, first)]


def rounds(*numbers: int, reward: float = 0.5) -> list[events.EngineEvent]:
    return [events.RoundCompleted(summary=played(number, reward)) for number in numbers]


@pytest.fixture
def home(tmp_path):
    """A home with a damaged history."""
    (tmp_path / "events").mkdir()
    (tmp_path / "history.sqlite").write_bytes(b"this is no database, whatever its name says" * 100)
    return tmp_path


def record(home, content, *, hour: int = 8, written: float = 1000.0) -> None:
    """A record whose name is of this hour, by the clock of then, and which was last written at this time."""
    path = home / "events" / f"20260101T{hour:02}0000-000000.jsonl"
    path.write_bytes(b"".join(map(json_lines.line, content)) + b'{"type":"Cut')
    os.utime(path, (written, written))


def rebuilt(home, model: ModelSettings = STARTER):
    return open_or_rebuild(home / "history.sqlite", home / "events", model)


def test_all_that_is_on_record_comes_back_and_the_damaged_file_is_kept_aside(home):
    record(home, [*begun(STARTER), *rounds(0, 1, 2), events.AhaHappened(aha=AHA), events.HeldOutMeasured(score=score(2))])
    state = State(settings=Settings(), rounds=(played(2), played(3)))
    record(home, [Snapshot(state=state), *rounds(4)], written=2000.0, hour=9)
    history, done = rebuilt(home)
    assert done.rounds == 5
    assert done.aside.read_bytes().startswith(b"this is no database")
    history.close()
    history, done = rebuilt(home)
    assert done is None, "it is whole"
    content = history.chart_points()
    assert [each.round for each in content.rounds] == [0, 1, 2, 3, 4]
    assert (content.held_out, content.ahas) == ((score(2),), (AHA,))
    assert history.successes.datasets() == ("binary_matrix",)


def test_without_a_record_a_new_history_begins(home):
    history, done = rebuilt(home)
    assert done.rounds == 0
    history.save_round(played(1))
    assert len(history.chart_points().rounds) == 1


def test_each_model_gets_back_its_own_rounds(home):
    record(home, [*begun(STARTER), *rounds(0, 1, 2, reward=0.9), *begun(OTHER), *rounds(0, 1, reward=0.1)])
    chosen = events.SettingsChanged(settings=Settings(model=OTHER), after_restart=("model.name",))
    later = [*begun(STARTER, 3), *rounds(3, reward=0.9), chosen, *rounds(4, reward=0.9), *begun(OTHER, 2)]
    record(home, later, hour=9, written=2000.0)
    mine, _ = rebuilt(home)
    assert [(each.round, each.reward) for each in mine.chart_points().rounds] == [(number, 0.9) for number in range(5)]
    other, _ = open_or_rebuild(home / "other.sqlite", home / "events", OTHER)
    assert other.chart_points().rounds == ()
    (home / "third.sqlite").write_bytes(b"damaged" * 1000)
    third, _ = open_or_rebuild(home / "third.sqlite", home / "events", OTHER)
    assert [each.reward for each in third.chart_points().rounds] == [0.1, 0.1]


def test_rounds_of_a_clock_that_was_ahead_come_back_where_they_belong(home):
    record(home, [*begun(STARTER), *rounds(0, 1)], hour=10)
    record(home, [*begun(STARTER, 2), *rounds(2, 3)], hour=9, written=2000.0)
    history, done = rebuilt(home)
    assert done.rounds == 4
    assert [each.round for each in history.chart_points().rounds] == [0, 1, 2, 3]


def test_of_a_model_that_began_anew_the_rounds_before_come_back_into_the_days_alone(home):
    lived = [*rounds(0, 1, 2), events.AhaHappened(aha=AHA), events.HeldOutMeasured(score=score(2))]
    record(home, [*begun(STARTER), *lived, *begun(STARTER), *rounds(0, 1, reward=0.1)])
    history, _ = rebuilt(home)
    content = history.chart_points()
    assert ([(each.round, each.reward) for each in content.rounds], content.held_out, content.ahas) == (
        [(0, 0.1), (1, 0.1)],
        (),
        (),
    )
    days, _newest = read_days(home / "history.sqlite")
    assert [(day.rounds, day.answers) for day in days] == [(5, 5 * 64)]


def test_first_successes_whose_events_are_on_record_no_more_come_back_with_a_snapshot(home):
    state = State(settings=Settings(), ready=ready(), rounds=(played(3),), held_out=(score(2),), ahas=(AHA,))
    record(home, [Snapshot(state=state), *rounds(4)])
    history, _ = rebuilt(home)
    content = history.chart_points()
    assert ([each.round for each in content.rounds], content.held_out, content.ahas) == ([3, 4], (score(2),), (AHA,))
    assert history.successes.datasets() == ("binary_matrix",)


def test_a_snapshot_from_before_another_model_is_ready_says_nothing_of_that(home):
    preparing = events.Preparing(part="Loading", done=1, parts=5)
    state = State(settings=Settings(model=OTHER), ready=ready(), preparing=preparing, rounds=(played(3),))
    record(home, [Snapshot(state=state), ready("other"), *rounds(1)])
    history, _ = rebuilt(home, OTHER)
    assert [each.round for each in history.chart_points().rounds] == [1]


def test_a_rebuilding_that_fails_or_is_killed_is_begun_again(home):
    record(home, [*begun(STARTER), *rounds(0, 1)])
    (home / "history.rebuilding").mkdir()  # as on a disk that takes no more
    for _ in range(2):
        with pytest.raises(HistoryError):
            rebuilt(home)
    (home / "history.rebuilding").rmdir()
    history, done = rebuilt(home)
    assert (done.rounds, len(history.chart_points().rounds)) == (2, 2)


def test_what_sqlite_had_beside_the_damaged_file_is_not_taken_for_that_of_the_new_one(home):
    before = History(home / "before.sqlite")
    before.save_round(played(50))
    (home / "history.sqlite-wal").write_bytes((home / "before.sqlite-wal").read_bytes())
    (home / "history.sqlite").rename(home / "history.damaged")  # and the next operation was a kill
    record(home, [*begun(STARTER), *rounds(0, 1)])
    history, _ = rebuilt(home)
    assert [each.round for each in history.chart_points().rounds] == [0, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_between_any_two_operations_on_files_leaves_no_empty_history_behind(home):
    record(home, [*begun(STARTER), *rounds(0, 1)])
    damaged, kills = (home / "history.sqlite").read_bytes(), 0
    while killed_after(kills, lambda: rebuilt(home)[0].close()):
        history, _ = rebuilt(home)
        assert [each.round for each in history.chart_points().rounds] == [0, 1], f"at operation {kills}"
        history.close()
        kills += 1
        for path in home.glob("history*"):
            path.unlink()
        (home / "history.sqlite").write_bytes(damaged)
    assert kills > 5


def test_an_older_history_gets_the_rounds_that_the_model_has_from_the_record(home):
    record(home, [*begun(STARTER), *rounds(0, 1, 2, 3, 4), events.HeldOutMeasured(score=score(3))])
    path = home / "history.sqlite"
    path.unlink()
    history = History(path)
    history.save_round(played(0, reward=0.9))
    history.save_round(played(1, reward=0.9))
    assert fill_in(history, path, home / "events", STARTER, 5) == 3
    content = history.chart_points()
    assert [(each.round, each.reward) for each in content.rounds] == [(0, 0.9), (1, 0.9), (2, 0.5), (3, 0.5), (4, 0.5)]
    assert content.held_out == (score(3),)
    assert fill_in(history, path, home / "events", STARTER, 5) == 0
    days, _ = read_days(path)
    assert [day.rounds for day in days] == [5], "no round counts twice"
    assert not path.with_suffix(".rebuilding").exists()


def test_a_history_that_is_gone_comes_back_as_far_as_the_model_and_the_record_go(home):
    record(home, [*begun(STARTER), *rounds(0, 1, 2, 3)])
    path = home / "history.sqlite"
    path.unlink()
    history, done = rebuilt(home)
    assert done is None
    assert fill_in(history, path, home / "events", STARTER, 3) == 3, "the model does not know the last round"
    assert [each.round for each in history.chart_points().rounds] == [0, 1, 2]


def test_a_second_damaged_history_does_not_replace_the_first_that_was_set_aside(home):
    rebuilt(home)[0].close()
    (home / "history.sqlite").write_bytes(b"damaged again" * 100)
    _, done = rebuilt(home)
    assert done.aside.read_bytes().startswith(b"damaged again")
    assert (home / "history.damaged-2").read_bytes().startswith(b"this is no database")
