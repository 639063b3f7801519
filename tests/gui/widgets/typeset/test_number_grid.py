"""Grids of digits are painted as squares, each digit in a colour of its own, and nothing else is taken for one."""

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from waggle.gui.pages.live.question_card import LINES, AnswerTile
from waggle.gui.state.story.typesetting import grid_in
from waggle.gui.theme.theme import Theme, ThemeName
from waggle.gui.widgets.typeset.number_grid import LARGEST, cell_size, colour_of, draw_grid
from waggle.protocol.events import ShownCompletion

MATRIX = "1 0 0 1\n2 1 0 1\n1 0 1 1\n0 1 1 0"


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        (MATRIX, (4, 4)),
        (" 9 9 0 9 \n", (1, 4)),
        ("9", None),
        ("1 2", None),
        ("12 3 4 5", None),
        ("1 2 3\n4 5", None),
        ("So: 1 2 3 4", None),
        ("", None),
        ("\n".join(["1 2"] * 99), None),
        (" ".join("1" * 99), None),
        ("٣ ٣ ٣ ٣", (1, 4)),
    ],
)
def test_what_is_a_grid(words: str, shape: tuple[int, int] | None) -> None:
    grid = grid_in(words)
    assert (grid and (len(grid), len(grid[0]))) == shape


@pytest.mark.parametrize("mode", ["light", "dark", "high_contrast"])
def test_every_digit_has_a_colour_of_its_own(theme: Theme, mode: ThemeName) -> None:
    theme.use(mode)
    assert len({colour_of(theme, digit).name() for digit in range(10)}) == 10
    theme.use("light")


def test_the_whole_grid_has_room(theme: Theme) -> None:
    grid = grid_in(MATRIX)
    assert grid is not None
    assert cell_size(grid, QRectF(0, 0, 200, 36)) == 9
    assert cell_size(grid, QRectF(0, 0, 900, 900)) == LARGEST
    image = QImage(200, 80, QImage.Format.Format_RGB32)
    image.fill(theme.colour("surface"))
    painter = QPainter(image)
    draw_grid(painter, theme, grid, QRectF(0, 0, 200, 80))
    painter.end()
    assert image.pixelColor(3, 3) == colour_of(theme, 1)
    assert image.pixelColor(23, 3) == colour_of(theme, 0)
    assert image.pixelColor(3, 23) == colour_of(theme, 2)
    assert image.pixelColor(100, 3) == theme.colour("surface")


def test_an_answer_that_is_a_grid_is_whole_and_read_as_it_is(theme: Theme) -> None:
    tile = AnswerTile(theme)
    text = f"<answer>{MATRIX}</answer>"
    answer = ShownCompletion(text=text, judged=True, reason=f"wrong: {MATRIX}", start=8, length=len(MATRIX))
    tile.show_answer((answer, None, 1), mine=True, going=False)
    assert tile.lines_needed(9) == LINES
    assert tile.accessibleName().startswith("wrong: <answer>1 0 0 1"), "once, and not in the chip, too"
    tile.show_answer((ShownCompletion(text="9" * 400, judged=True), None, 1), mine=True, going=False)
    assert tile.lines_needed(9) > LINES
