"""Test the history in SQLite."""

import itertools
import random
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from waggle.core.errors import HistoryDamaged, HistoryError
from waggle.engine.storage.history import MAX_CHART_POINTS, History, read_days
from waggle.protocol import events, events_identity


def summary(number: int, reward: float = 0.5) -> events.RoundSummary:
    return events.RoundSummary(round=number, at=1.0, reward=reward, solved=0.0, seconds=0.1, by_specialty={"Logic": 0.5})


def score(number: int) -> events.HeldOutScore:
    return events.HeldOutScore(round=number, at=1.0, right=number, total=270)


def test_rounds_and_scores_survive_a_restart(tmp_path):
    first = History(tmp_path / "history.sqlite")
    for number in range(5):
        first.save_round(summary(number))
    first.save_score(score(0))
    first.close()
    content = History(tmp_path / "history.sqlite").chart_points()
    assert content.rounds == tuple(summary(number) for number in range(5))
    assert content.held_out == (score(0),)


def test_an_aha_is_kept_once_and_known_after_a_restart(tmp_path):
    first = History(tmp_path / "history.sqlite")
    late = events.Aha(round=9, at=2.0, specialty="Logic", origin="12D3", name="Brisk Otter")
    early = events.Aha(round=4, at=1.0, specialty="Grids")
    first.successes.save("propositional_logic", late)
    first.successes.save("binary_matrix", early)
    first.successes.save("propositional_logic", early)
    first.successes.save_teacher("bf", b"a" * 38)
    first.successes.save_teacher("bf", b"b" * 38)
    first.close()
    reopened = History(tmp_path / "history.sqlite")
    assert reopened.successes.teachers() == {"bf": b"b" * 38}
    assert reopened.chart_points().ahas == (early, late)
    assert sorted(reopened.successes.datasets()) == ["binary_matrix", "propositional_logic"]


def test_a_round_played_again_after_a_kill_replaces_its_first_try(tmp_path):
    history = History(tmp_path / "history.sqlite")
    history.save_round(summary(3, reward=0.1))
    history.save_round(summary(3, reward=0.9))
    assert [row.reward for row in history.chart_points().rounds] == [0.9]


def test_a_score_taken_again_replaces_the_first(tmp_path):
    history = History(tmp_path / "history.sqlite")
    history.save_score(score(3))
    second_score = events.HeldOutScore(round=3, at=2.0, right=9, total=270)
    history.save_score(second_score)
    assert history.chart_points().held_out == (second_score,)
    assert [history.has_score(number) for number in (2, 3)] == [False, True]


def test_a_long_history_is_thinned_evenly(tmp_path):
    history = History(tmp_path / "history.sqlite")
    for number in range(2 * MAX_CHART_POINTS + 10):
        history.save_round(summary(number))
    rounds = [row.round for row in history.chart_points().rounds]
    assert len(rounds) <= MAX_CHART_POINTS
    assert {later - sooner for sooner, later in itertools.pairwise(rounds)} == {3}


def test_a_damaged_row_costs_one_point_of_a_chart(tmp_path):
    path = tmp_path / "history.sqlite"
    history = History(path)
    for number in range(3):
        history.save_round(summary(number))
    history.close()
    with sqlite3.connect(path) as database:
        database.execute("update rounds set summary = x'7bff' where round = 1")
    database.close()
    assert [row.round for row in History(path).chart_points().rounds] == [0, 2]


def days(folder: Path) -> tuple[events_identity.Day, ...]:
    days, _newest = read_days(folder / "history.sqlite")
    return days


@pytest.mark.parametrize("name", ["completions", "solved", "external", "seconds"])
def test_a_damaged_name_in_a_row_costs_its_day_what_it_named_and_no_more(tmp_path, name):
    history, played = History(tmp_path / "history.sqlite"), replace(summary(1), completions=64, solved=0.25, external=3)
    history.save_round(played)
    (whole,) = days(tmp_path)
    assert (whole.answers, whole.right, whole.learned, whole.seconds) == (64, 16, 3, 0.1)
    history._write("update rounds set summary = cast(replace(cast(summary as text), ?, 'damaged') as blob)", name)
    lost = {"completions": ("answers", "right"), "solved": ("right",), "external": ("learned",), "seconds": ("seconds",)}[name]
    (damaged,) = days(tmp_path)
    assert damaged == replace(whole, **dict.fromkeys(lost, 0))
    history.rewind_to(0)
    history.save_round(played)
    (both,) = days(tmp_path)
    for figure in ("answers", "right", "learned", "seconds"):
        assert getattr(both, figure) == getattr(whole, figure) + getattr(damaged, figure)


@pytest.mark.parametrize("seed", range(150))
def test_a_file_with_damaged_bytes_is_read_as_far_as_it_goes_or_found_damaged(tmp_path, seed):
    path, chance = tmp_path / "history.sqlite", random.Random(seed)
    history = History(path)
    history.save_round(summary(1))
    history.save_score(score(1))
    history.successes.save("bf", events.Aha(round=4, at=1.0, specialty="Grids"))
    history.successes.save_teacher("bf", b"a" * 38)
    history.close()
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 4, 300))):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content[: chance.choice((len(content), chance.randrange(len(content))))])
    try:
        reopened = History(path)
    except HistoryDamaged:
        return
    assert len(reopened.chart_points().rounds) <= 1
    assert all(isinstance(name, str) for name in reopened.successes.datasets())
    assert all(isinstance(origin, bytes) for origin in reopened.successes.teachers().values())
    reopened.save_round(summary(2))
    assert 2 in [row.round for row in reopened.chart_points().rounds]
    reopened.close()


def played(number: int, day: int) -> events.RoundSummary:
    at = 86_400.0 * day + 43_200
    return events.RoundSummary(round=number, at=at, reward=0.5, solved=0.5, seconds=2.0, completions=64, external=3)


def test_very_many_rounds_take_bounded_room_and_the_days_still_add_up(tmp_path):
    history = History(tmp_path / "history.sqlite")
    with history.transaction():
        for number in range(1200):
            history.save_round(played(number, number // 400))
    before = days(tmp_path)
    history.thin_out(most=1000)
    history.thin_out(most=900)
    rounds = [row.round for row in history.chart_points().rounds]
    assert len(rounds) < 800
    assert rounds[-300:] == list(range(900, 1200)), "the newer ones are all there"
    assert days(tmp_path) == before
    assert [(day.rounds, day.answers, day.learned) for day in before] == [(400, 400 * 64, 1200)] * 3


def lived(history: History, rounds: int, learned: str = "bf") -> None:
    """The history of a model with a score before the first round and after each."""
    with history.transaction():
        for number in range(rounds):
            history.save_round(played(number, number // 2))
        for number in range(rounds + 1):
            history.save_score(score(number))
        history.successes.save(learned, events.Aha(round=rounds - 1, at=1.0, specialty="Grids"))
        history.successes.save_teacher(learned, b"a" * 38)


def known(history: History) -> tuple[list[int], list[int], tuple[str, ...], list[str]]:
    content = history.chart_points()
    numbers = [row.round for row in content.rounds], [row.round for row in content.held_out]
    return *numbers, history.successes.datasets(), list(history.successes.teachers())


def test_where_training_begins_anew_nothing_of_the_model_before_is_left_but_its_days(tmp_path):
    history = History(tmp_path / "history.sqlite")
    for life in (1, 2):
        lived(history, 6)
        history.rewind_to(0)
        assert known(history) == ([], [], (), [])
        assert [(day.rounds, day.answers, day.learned) for day in days(tmp_path)] == [(2 * life, 128 * life, 6 * life)] * 3
    history.save_score(score(0))
    history.rewind_to(0)
    assert history.has_score(0), "no round was played since"


def test_where_an_earlier_state_is_gone_on_from_the_rounds_after_it_are_left_in_the_days_alone(tmp_path):
    history = History(tmp_path / "history.sqlite")
    lived(history, 6)
    before = days(tmp_path)
    history.rewind_to(3)
    assert known(history) == ([0, 1, 2], [0, 1, 2, 3], ("bf",), ["bf"])
    assert days(tmp_path) == before


@pytest.mark.parametrize("number", [5, 6])
def test_what_a_kill_or_an_orderly_end_leaves_is_gone_on_with_as_it_is(tmp_path, number):
    history = History(tmp_path / "history.sqlite")
    lived(history, 6)
    before = known(history), days(tmp_path)
    history.rewind_to(number)
    assert (known(history), days(tmp_path)) == before


def test_the_chart_of_very_many_rounds_reaches_back_to_the_first_also_after_they_were_folded(tmp_path):
    history = History(tmp_path / "history.sqlite")
    with history.transaction():
        for number in range(40_000):
            history.save_round(summary(number))
    for most in (30_000, 20_000):
        history.thin_out(most)
        rounds = [row.round for row in history.chart_points().rounds]
        assert MAX_CHART_POINTS / 2 < len(rounds) <= MAX_CHART_POINTS
        assert rounds[0] < 10
        assert max(later - sooner for sooner, later in itertools.pairwise(rounds)) < 100


def test_what_is_to_be_written_at_once_is_not_written_in_part_however_many_rounds_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("waggle.engine.storage.history.MAX_ROUNDS", 100)
    history = History(tmp_path / "history.sqlite")

    def keep_many_and_fail() -> None:
        with history.transaction():
            for number in range(2001):
                history.save_round(summary(number))
            raise KeyError

    with pytest.raises(KeyError):
        keep_many_and_fail()
    assert history.chart_points().rounds == ()
    history.save_round(summary(7))
    assert [row.round for row in History(tmp_path / "history.sqlite").chart_points().rounds] == [7]


def test_a_history_that_cannot_be_opened_just_now_is_whole_and_stays_where_it_is(tmp_path):
    first = History(tmp_path / "history.sqlite")
    first.save_round(summary(7))
    first.close()
    (tmp_path / "history.sqlite-wal").mkdir()  # as on a full disk: SQLite finds no place for what it needs beside the file
    for _ in range(2):
        with pytest.raises(HistoryError, match="cannot be opened"):
            History(tmp_path / "history.sqlite")
    (tmp_path / "history.sqlite-wal").rmdir()
    reopened = History(tmp_path / "history.sqlite")
    assert [row.round for row in reopened.chart_points().rounds] == [7]


def test_a_long_row_of_scores_is_thinned_evenly_and_begins_with_the_first(tmp_path):
    history = History(tmp_path / "history.sqlite")
    with history.transaction():
        for number in range(2 * MAX_CHART_POINTS + 10):
            history.save_score(score(25 * number))
    rounds = [row.round for row in history.chart_points().held_out]
    assert MAX_CHART_POINTS / 2 < len(rounds) <= MAX_CHART_POINTS
    assert rounds[0] == 0
    assert {later - sooner for sooner, later in itertools.pairwise(rounds)} <= {50, 75}


def test_very_many_scores_take_bounded_room_and_the_newer_ones_all_stay(tmp_path):
    history = History(tmp_path / "history.sqlite")
    with history.transaction():
        for number in range(900):
            history.save_score(score(number))
    for most in (800, 600):
        history.thin_out(most)
    rounds = [row.round for row in history.chart_points().held_out]
    assert len(rounds) == 900 - 200 - 150
    assert rounds[-400:] == list(range(500, 900))
    assert history.has_score(899)
