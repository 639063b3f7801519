"""Grids of digits, as puzzles have them, painted as coloured squares: at a glance, two of them are equal or not."""

import re

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import HUES

NumberGrid = tuple[tuple[int, ...], ...]  # rows of digits
LINE = re.compile(r"\d(?: \d)+")
LEAST, MOST_ROWS, MOST_COLUMNS = 4, 12, 30  # digits of a grid at least, and rows and columns at most
LARGEST, READABLE, APART = 20.0, 13.0, 1.0  # pixels: a cell at most, a cell with its digit at least, between two cells


def grid_in(words: str) -> NumberGrid | None:
    """The grid that a text is, and nothing else; None if it is something else."""
    lines = [line.strip() for line in words.strip().splitlines()]
    if not lines or len(lines) > MOST_ROWS or not all(LINE.fullmatch(line) for line in lines):
        return None
    rows = tuple(tuple(map(int, line.split())) for line in lines)
    widths = {len(row) for row in rows}
    if len(widths) > 1 or max(widths) > MOST_COLUMNS or sum(map(len, rows)) < LEAST:
        return None
    return rows


def cell_size(grid: NumberGrid, place: QRectF) -> float:
    """The side of a cell in pixels, so that the whole grid has room."""
    return min(LARGEST, place.width() / len(grid[0]), place.height() / len(grid))


def draw_grid(painter: QPainter, theme: Theme, grid: NumberGrid, place: QRectF) -> None:
    """Draw it from the upper left corner on. Digits are written in cells that are large enough."""
    side = cell_size(grid, place)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    font = QFont(theme.font("tag"))
    font.setPixelSize(max(8, round(side * 0.62)))
    painter.setFont(font)
    for down, row in enumerate(grid):
        for across, digit in enumerate(row):
            corner = place.topLeft() + QPointF(across * side, down * side)
            cell = QRectF(corner.x(), corner.y(), side - APART, side - APART)
            painter.fillRect(cell, colour_of(theme, digit))
            if side >= READABLE:
                painter.setPen(theme.colour("text_soft" if digit == 0 else "surface"))
                painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, str(digit))
    painter.restore()


def colour_of(theme: Theme, digit: int) -> QColor:
    """0 is empty; the other digits have colours of their own, the last three of them paler."""
    if digit == 0:
        return theme.colour("grid")
    colour = QColor(HUES[theme.mode][(digit - 1) % len(HUES[theme.mode])])
    if digit > len(HUES[theme.mode]):
        colour = colour.darker(135) if theme.mode != "light" else colour.lighter(135)
    return colour
