"""The part of an axis that charts show: what zooming, moving and growing data make of it."""

import pytest
from pytestqt.qtbot import QtBot

from waggle.gui.charts.plotted.visible_part import LEAST, VisiblePart


@pytest.fixture
def part(qapp: object) -> VisiblePart:
    part = VisiblePart(None)
    part.set_whole((0.0, 100.0))
    return part


def test_at_first_all_is_shown(part: VisiblePart) -> None:
    assert (part.ends, part.is_whole, part.has_newest, part.place) == ((0.0, 100.0), True, True, None)


@pytest.mark.parametrize(
    ("first", "last", "ends"),
    [
        (20.0, 40.0, (20.0, 40.0)),
        (40.0, 20.0, (20.0, 40.0)),
        (-30.0, 10.0, (0.0, 40.0)),
        (90.0, 130.0, (60.0, 100.0)),
        (-1.0, 101.0, (0.0, 100.0)),
        (50.0, 50.0, (50.0, 50.0 + 100 * LEAST)),
    ],
)
def test_a_part_lies_in_the_whole_and_is_never_too_short(
    part: VisiblePart, first: float, last: float, ends: tuple[float, float]
) -> None:
    part.choose(first, last)
    assert part.ends == ends
    assert part.is_whole == (ends == (0.0, 100.0))


def test_zooming_leaves_the_place_where_it_is_and_ends_at_the_whole(part: VisiblePart) -> None:
    part.zoom(30.0, 0.5)
    assert part.ends == (15.0, 65.0)
    part.zoom(30.0, 2.0)
    assert part.is_whole


def test_moving_goes_by_a_share_and_stops_at_the_ends(part: VisiblePart) -> None:
    part.choose(20.0, 40.0)
    part.move(0.5)
    assert part.ends == (30.0, 50.0)
    part.move(-9.0)
    assert part.ends == (0.0, 20.0)


@pytest.mark.parametrize(("chosen", "after"), [((80.0, 100.0), (90.0, 110.0)), ((20.0, 40.0), (20.0, 40.0))])
def test_a_part_with_the_newest_follows_and_another_stays(
    part: VisiblePart, chosen: tuple[float, float], after: tuple[float, float]
) -> None:
    part.choose(*chosen)
    part.set_whole((0.0, 110.0))
    assert part.ends == after
    assert part.has_newest == (after[1] == 110.0)


def test_what_shrinks_below_a_part_is_shown_whole(part: VisiblePart) -> None:
    part.choose(0.0, 50.0)
    part.set_whole((0.0, 30.0))
    assert part.is_whole


def test_a_signal_only_tells_of_a_change(part: VisiblePart, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(part.part_changed):
        part.show_whole()
        part.zoom(10.0, 3.0)
    with qtbot.waitSignal(part.part_changed):
        part.choose(1.0, 2.0)
    with qtbot.waitSignal(part.place_changed):
        part.read(1.5)
    with qtbot.assertNotEmitted(part.place_changed):
        part.read(1.5)
