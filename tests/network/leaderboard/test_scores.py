"""Scores are summed by model, trained together or alone, and nodes are ranked only in a private swarm."""

from pathlib import Path

import msgspec
import pytest

from waggle.core.peer_id import PEER_ID_PREFIX
from waggle.network.leaderboard import scores_file
from waggle.network.leaderboard.scores import (
    FARTHEST,
    MAX_NODES,
    MAX_SCORES,
    PLACES,
    RECENT,
    SCORES_PER_NODE,
    Scoreboard,
    SheetScore,
)
from waggle.network.limits.address_ranges import RELAYED
from waggle.tasks.rollout_group import NEWCOMERS


def mark(node: int, epoch: int, *, right: int = 4, round_number: int = 0, learned: int = 1, model: str = "a") -> SheetScore:
    return SheetScore(
        origin=node.to_bytes(38, "big"), epoch=epoch, round=round_number, learned=learned, model=model, right=right, total=16
    )


def test_a_node_has_one_mark_an_epoch() -> None:
    marks = Scoreboard(ranked=True)
    assert marks.add(mark(1, 5))
    assert not marks.add(mark(1, 5, right=16))
    assert not marks.add(mark(1, 4))
    assert marks.add(mark(1, 6))
    assert (marks.epoch_of((1).to_bytes(38, "big")), marks.epoch_of(b"nobody")) == (6, -1)


def test_members_and_those_alone_stand_on_the_same_rounds_of_their_own() -> None:
    marks = Scoreboard(ranked=False)
    for epoch in range(24):
        marks.add(mark(1, epoch, round_number=10 * epoch, right=8))
        marks.add(mark(2, epoch, round_number=5 * epoch, right=6))
        marks.add(mark(3, epoch, round_number=10 * epoch, right=2, learned=0))
        marks.add(mark(4, epoch, round_number=7, right=1, model="b", learned=0))
    together, alone, other = marks.comparison().curves
    assert [(entry.model, entry.together) for entry in (together, alone, other)] == [("a", True), ("a", False), ("b", False)]
    assert len(together.points) == len(alone.points) == PLACES
    assert [entry.round for entry in together.points] == [entry.round for entry in alone.points]
    assert together.points[0].nodes == 2
    assert together.points[-1].nodes == 1
    assert together.points[-1].right / together.points[-1].total == 0.5
    assert sum(entry.total for entry in together.points) == 24 * 2 * 16


def test_a_node_that_joins_moves_to_the_other_curve_and_keeps_what_it_was_alone() -> None:
    marks = Scoreboard(ranked=True)
    marks.add(mark(1, 1, round_number=3, right=2, learned=0))
    marks.add(mark(1, 2, round_number=9, right=8, learned=4))
    comparison = marks.comparison()
    assert [(curve.together, sum(entry.right for entry in curve.points)) for curve in comparison.curves] == [
        (True, 8),
        (False, 2),
    ]
    assert [(entry.together, entry.right, entry.total) for entry in comparison.entrants] == [(True, 8, 16)]


def test_only_a_swarm_that_knows_its_members_ranks_them() -> None:
    for ranked in (True, False):
        marks = Scoreboard(ranked=ranked)
        for node in range(5):
            marks.add(mark(node, 1, right=node))
        comparison = marks.comparison()
        assert comparison.ranked is ranked
        best_first = [entry.right for entry in comparison.entrants] == [4, 3, 2, 1, 0]
        assert best_first is ranked


def test_what_is_kept_is_bounded() -> None:
    marks = Scoreboard(ranked=True)
    for epoch in range(SCORES_PER_NODE + 50):
        marks.add(mark(0, epoch, right=16 if epoch >= SCORES_PER_NODE + 50 - RECENT else 0))
    for node in range(1, MAX_NODES + 20):
        marks.add(mark(node, 1))
    comparison = marks.comparison()
    assert len(comparison.entrants) == MAX_NODES
    assert comparison.sheets == SCORES_PER_NODE + 50 + MAX_NODES + 19


def test_a_node_that_claims_a_million_rounds_does_not_press_the_others_to_the_left() -> None:
    marks = Scoreboard(ranked=False)
    for epoch in range(PLACES):
        for node in (1, 2):
            marks.add(mark(node, epoch, round_number=100 * epoch))
        marks.add(mark(3, epoch, round_number=10**12 + epoch))
    (curve,) = marks.comparison().curves
    assert curve.points[-1].round < 10_000
    assert sum(entry.total for entry in curve.points) == 2 * PLACES * 16, "its marks count, but are not drawn"


def member(node: int, epoch: int, right: int = 4) -> SheetScore:
    return SheetScore(
        origin=PEER_ID_PREFIX + (node + 1).to_bytes(32, "big"), epoch=epoch, round=1, learned=1, model="a", right=right, total=16
    )


def test_marks_are_kept_in_a_file_and_no_more_than_are_worth_it(tmp_path: Path) -> None:
    path, now = tmp_path / "ab.msgpack", 1000 * 600.0
    assert scores_file.read(path, now) == []
    known = Scoreboard(ranked=True, known=[member(node, epoch) for node in range(60) for epoch in range(200)], clock=lambda: now)
    scores_file.write(path, known.all())
    restarted = scores_file.read(path, now)
    assert len(restarted) == len(known.all()) == MAX_SCORES
    assert min(mark.epoch for mark in restarted) > 0, "the oldest are let go"
    assert Scoreboard(ranked=True, known=restarted).comparison().entrants == known.comparison().entrants
    assert path.stat().st_size < scores_file.MAX_BYTES


def test_marks_that_cannot_be_are_not_believed(tmp_path: Path) -> None:
    path, now = tmp_path / "ab.msgpack", 1000 * 600.0
    lies = [member(1, 2000), member(2, 7, right=17), mark(3, 7)]  # of the future, more than all, nobody's
    scores_file.write(path, [*lies, member(4, 7)])
    assert scores_file.read(path, now) == [member(4, 7)]


def test_a_damaged_file_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "ab.msgpack"
    path.write_bytes(b"\x91nonsense")
    assert scores_file.read(path, 0.0) == []
    assert path.with_suffix(".damaged").read_bytes() == b"\x91nonsense"


def test_one_range_leaves_the_others_their_places_models_and_axis() -> None:
    marks = Scoreboard(ranked=False)
    for epoch in range(8):
        for node in range(8):
            marks.add(mark(node, epoch, right=8, round_number=100 * epoch, model=f"model {node}"))
            marks.add(mark(100 + node, epoch, right=8, round_number=100 * epoch, model="shared"))
    honest = marks.comparison().curves
    for name in range(2 * MAX_NODES):
        model = f"invented {name}" if name % 2 else "shared"
        marks.add(crowded(1000 + name, 8, "8.8.4.0/24", round_number=100 * (name % 8), model=model))
    comparison = marks.comparison()
    assert len(comparison.entrants) == MAX_NODES
    assert {each.model for each in comparison.curves} == {"shared", *(f"model {node}" for node in range(7))}
    (drawn,) = [each for each in comparison.curves if each.model == "shared"]
    (before,) = [each for each in honest if each.model == "shared"]
    assert [each.round for each in drawn.points] == [each.round for each in before.points]
    for point, as_before in zip(drawn.points, before.points, strict=True):
        assert point.right == as_before.right, "everything honest counts"
        assert point.total - as_before.total <= as_before.total / 4, "all names of one range have a fifth at most"
    assert all(marks.epoch_of(mark(node, 0).origin) == 7 for node in (*range(8), *range(100, 108)))

    for name in range(MAX_NODES):
        marks.add(crowded(3000 + name, 8, "8.8.4.0/24", round_number=2**40, model="shared"))
    assert all(point.round <= FARTHEST * 700 for each in marks.comparison().curves for point in each.points)


def test_a_crowd_of_one_range_has_half_of_a_curve_where_there_is_but_one_other() -> None:
    marks = Scoreboard(ranked=False)
    for epoch in range(10):
        marks.add(mark(1, epoch, right=8))
    for name in range(300):
        marks.add(crowded(1000 + name, 5, "8.8.4.0/24"))
    (curve,) = marks.comparison().curves
    (point,) = curve.points
    assert (point.right, point.total) == (10 * 8, 2 * 10 * 16)


@pytest.mark.parametrize("unknown", [RELAYED, NEWCOMERS])
def test_homes_without_a_range_have_half_of_a_curve_together_and_all_where_there_is_nobody_else(unknown: str) -> None:
    marks = Scoreboard(ranked=False)
    for node in range(50):
        for epoch in range(4):
            marks.add(msgspec.structs.replace(mark(node, epoch, right=8), source=unknown))
    (curve,) = marks.comparison().curves
    assert [(each.right, each.total, each.nodes) for each in curve.points] == [(200 * 8, 200 * 16, 50)]
    for place in range(20):
        for epoch in range(2):
            marks.add(crowded(100 + place, epoch, f"8.8.{place}.0/24"))
    (curve,) = marks.comparison().curves
    assert [(each.right, each.total) for each in curve.points] == [(40 * 8, 80 * 16)]


def test_whoever_has_most_marks_makes_room_for_more() -> None:
    marks = Scoreboard(ranked=False)
    for epoch in range(SCORES_PER_NODE):
        for node in range(8):
            marks.add(mark(node, epoch))
        for node in range(30):
            marks.add(crowded(1000 + node, epoch, "8.8.4.0/24"))
    stored = marks.all()
    assert len(stored) == MAX_SCORES
    assert sum(not each.source for each in stored) == 8 * SCORES_PER_NODE
    assert len({each.origin for each in stored}) == 38
    for node in range(8, MAX_NODES - 30):
        marks.add(mark(node, SCORES_PER_NODE))
    assert len(marks.all()) == MAX_SCORES
    assert len(marks.comparison().entrants) == MAX_NODES


def test_a_node_that_loses_its_only_mark_is_forgotten() -> None:
    marks = Scoreboard(ranked=False)
    for node in range(99):
        for epoch in range(100):
            marks.add(mark(node, epoch))
    for node in range(101):
        marks.add(crowded(1000 + node, 1, "8.8.4.0/24"))
    assert len(marks.all()) == MAX_SCORES
    assert len(marks.comparison().entrants) == 199


def crowded(node: int, epoch: int, source: str, *, round_number: int = 0, model: str = "a") -> SheetScore:
    """A score with no right answer, from an address range."""
    return msgspec.structs.replace(mark(node, epoch, right=0, round_number=round_number, model=model), source=source)


@pytest.mark.parametrize("names", [1, 2])
@pytest.mark.parametrize("sheets", [1, SCORES_PER_NODE])
def test_among_several_one_who_claims_to_be_further_or_to_know_all_says_nothing_for_the_others(names: int, sheets: int) -> None:
    marks = Scoreboard(ranked=False)
    for node in range(10):
        for epoch in range(SCORES_PER_NODE):
            marks.add(msgspec.structs.replace(mark(node, epoch, round_number=4 * epoch, right=2), source=f"10.{node}.0.0/24"))
    before = marks.comparison().curves[0].points
    furthest = 4 * (SCORES_PER_NODE - 1)
    for epoch in range(sheets):
        for name in range(names):
            rounds = FARTHEST * furthest if sheets == 1 else furthest
            marks.add(msgspec.structs.replace(mark(100 + name, epoch, round_number=rounds, right=16), source="8.8.8.0/24"))
    (curve,) = marks.comparison().curves
    assert [entry.round for entry in curve.points] == [entry.round for entry in before]
    assert curve.points[-1].right / curve.points[-1].total < 0.21  # one of eleven, who knows all
