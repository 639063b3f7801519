"""Placement of the labels of a chart's vertical lines."""

import pytest

from waggle.gui.charts.plotted.label_placement import LabelBox, place_labels

ROOM = LabelBox(0, 0, 500, 60)  # three rows


@pytest.mark.parametrize(
    ("lines", "curve", "expected"),
    [
        ([(200, 100)], [], [(100, 0)]),
        ([(60, 100)], [], [(60, 0)]),  # no room at the left
        ([(200, 100), (190, 100), (400, 100)], [], [(100, 0), (90, 20), (300, 0)]),
        ([(200, 100)], [LabelBox(150, 5, 300, 30)], [(100, 40)]),
        ([(200, 100)], [LabelBox(0, 0, 500, 60)], [(100, 0)]),  # across the curve rather than nowhere
        ([(200, 100)] * 7, [], [(100, 0), (100, 20), (100, 40), (200, 0), (200, 20), (200, 40), None]),
        ([(300, 600)], [], [None]),
    ],
)
def test_words_stand_clear_of_each_other_and_of_the_curve(
    lines: list[tuple[float, float]], curve: list[LabelBox], expected: list[tuple[float, float] | None]
) -> None:
    assert [place and (place.left, place.top) for place in place_labels(lines, ROOM, 20, curve)] == expected
