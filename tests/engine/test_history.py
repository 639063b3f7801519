"""History in SQLite."""

import itertools
import random
import sqlite3

import pytest

from waggle.engine.history import POINTS, History
from waggle.engine.rebuilding import rebuild
from waggle.errors import HistoryError
from waggle.protocol import events, wire
from waggle.protocol.state import Snapshot, State


def summary(number: int, reward: float = 0.5) -> events.RoundSummary:
    return events.RoundSummary(round=number, at=1.0, reward=reward, solved=0.0, seconds=0.1, by_specialty={"Logic": 0.5})


def score(number: int) -> events.HeldOutScore:
    return events.HeldOutScore(round=number, at=1.0, right=number, total=270)


def test_rounds_and_scores_survive_a_restart(tmp_path):
    first = History(tmp_path / "history.sqlite")
    for number in range(5):
        first.keep_round(summary(number))
    first.keep_score(score(0))
    first.close()
    told = History(tmp_path / "history.sqlite").told()
    assert told.rounds == tuple(summary(number) for number in range(5))
    assert told.held_out == (score(0),)


def test_an_aha_is_kept_once_and_known_after_a_restart(tmp_path):
    first = History(tmp_path / "history.sqlite")
    late = events.Aha(round=9, at=2.0, specialty="Logic", origin="12D3", name="Brisk Otter")
    early = events.Aha(round=4, at=1.0, specialty="Grids")
    first.keep_aha("propositional_logic", late)
    first.keep_aha("binary_matrix", early)
    first.keep_aha("propositional_logic", early)
    first.keep_teacher("bf", b"a" * 38)
    first.keep_teacher("bf", b"b" * 38)
    first.close()
    again = History(tmp_path / "history.sqlite")
    assert again.taught_by() == {"bf": b"b" * 38}
    assert again.told().ahas == (early, late)
    assert sorted(again.solved()) == ["binary_matrix", "propositional_logic"]


def test_a_round_played_again_after_a_kill_replaces_its_first_try(tmp_path):
    history = History(tmp_path / "history.sqlite")
    history.keep_round(summary(3, reward=0.1))
    history.keep_round(summary(3, reward=0.9))
    assert [one.reward for one in history.told().rounds] == [0.9]


def test_a_score_taken_again_replaces_the_first(tmp_path):
    history = History(tmp_path / "history.sqlite")
    history.keep_score(score(3))
    again = events.HeldOutScore(round=3, at=2.0, right=9, total=270)
    history.keep_score(again)
    assert history.told().held_out == (again,)
    assert [history.has_score(number) for number in (2, 3)] == [False, True]


def test_a_long_history_is_thinned_evenly(tmp_path):
    history = History(tmp_path / "history.sqlite")
    for number in range(2 * POINTS + 10):
        history.keep_round(summary(number))
    rounds = [one.round for one in history.told().rounds]
    assert len(rounds) <= POINTS
    assert {later - sooner for sooner, later in itertools.pairwise(rounds)} == {3}


def test_a_damaged_file_is_kept_aside_and_a_new_history_begins(tmp_path):
    path = tmp_path / "history.sqlite"
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    history = History(path)
    history.keep_round(summary(1))
    assert len(history.told().rounds) == 1
    assert history.set_aside is not None
    assert history.set_aside.read_bytes().startswith(b"this is no database")


def test_a_damaged_row_costs_one_point_of_a_chart(tmp_path):
    path = tmp_path / "history.sqlite"
    history = History(path)
    for number in range(3):
        history.keep_round(summary(number))
    history.close()
    with sqlite3.connect(path) as database:
        database.execute("update rounds set summary = x'7bff' where round = 1")
    database.close()
    again = History(path)
    assert again.set_aside is None
    assert [one.round for one in again.told().rounds] == [0, 2]


@pytest.mark.parametrize("seed", range(150))
def test_a_file_with_damaged_bytes_is_read_as_far_as_it_goes_or_set_aside(tmp_path, seed):
    path, chance = tmp_path / "history.sqlite", random.Random(seed)
    history = History(path)
    history.keep_round(summary(1))
    history.keep_score(score(1))
    history.keep_aha("bf", events.Aha(round=4, at=1.0, specialty="Grids"))
    history.keep_teacher("bf", b"a" * 38)
    history.close()
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 4, 300))):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content[: chance.choice((len(content), chance.randrange(len(content))))])
    again = History(path)
    assert len(again.told().rounds) <= 1
    assert all(isinstance(name, str) for name in again.solved())
    assert all(isinstance(origin, bytes) for origin in again.taught_by().values())
    again.keep_round(summary(2))
    assert 2 in [one.round for one in again.told().rounds]
    again.close()


def ready(specialty: events.SpecialtyInfo) -> events.Ready:
    return events.Ready(
        protocol=1, version="0", node="n", name="n", swarm="s", charter="c", specialties=(specialty,), model="m", model_note="",
        backend="torch", device="cpu", device_reason="", threads=1, cores=2, round=0, completions=0, group_size=8, parameters=1,
    )  # fmt: skip


def played(number: int, day: int) -> events.RoundSummary:
    at = 86_400.0 * day + 43_200
    return events.RoundSummary(round=number, at=at, reward=0.5, solved=0.5, seconds=2.0, completions=64, external=3)


def test_very_many_rounds_take_bounded_room_and_the_days_still_add_up(tmp_path):
    history = History(tmp_path / "history.sqlite")
    with history.at_once():
        for number in range(1200):
            history.keep_round(played(number, number // 400))
    before = history.days()
    history.thin(most=1000)
    history.thin(most=900)
    kept = [one.round for one in history.told().rounds]
    assert len(kept) < 800
    assert kept[-300:] == list(range(900, 1200)), "the newer ones are all there"
    assert history.days() == before
    assert [(day.rounds, day.answers, day.learned) for day in before] == [(400, 400 * 64, 1200)] * 3


def test_a_damaged_history_is_rebuilt_from_the_record_of_events(tmp_path):
    record = tmp_path / "events"
    record.mkdir()
    specialty = events.SpecialtyInfo(dataset="binary_matrix", title="Grids")
    aha = events.Aha(round=1, at=1.0, specialty="Grids")
    told = [ready(specialty), *(events.RoundCompleted(summary=played(number, 0)) for number in range(3))]
    told += [events.AhaHappened(aha=aha), events.HeldOutMeasured(score=score(2))]
    (record / "a.jsonl").write_bytes(b"".join(map(wire.line, told)) + b'{"type":"Cut')
    state = State(rounds=(played(2, 0), played(3, 0)))
    again = [Snapshot(state=state), events.RoundCompleted(summary=played(4, 1))]
    (record / "b.jsonl").write_bytes(b"".join(map(wire.line, again)))
    (tmp_path / "history.sqlite").write_bytes(b"damaged" * 1000)
    history = History(tmp_path / "history.sqlite")
    assert history.set_aside is not None
    assert rebuild(history, record) == 5
    history.close()
    found = History(tmp_path / "history.sqlite").told()
    assert [one.round for one in found.rounds] == [0, 1, 2, 3, 4]
    assert (found.held_out, found.ahas) == ((score(2),), (aha,))


def test_a_history_that_cannot_be_opened_just_now_is_whole_and_stays_where_it_is(tmp_path):
    first = History(tmp_path / "history.sqlite")
    first.keep_round(summary(7))
    first.close()
    (tmp_path / "history.sqlite-wal").mkdir()  # as on a full disk: SQLite finds no place for what it needs beside the file
    for _ in range(2):
        with pytest.raises(HistoryError, match="cannot be opened"):
            History(tmp_path / "history.sqlite")
    (tmp_path / "history.sqlite-wal").rmdir()
    again = History(tmp_path / "history.sqlite")
    assert again.set_aside is None
    assert [one.round for one in again.told().rounds] == [7]
