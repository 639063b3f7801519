"""Grids of digits, as puzzles have them, painted as coloured squares: at a glance, two of them are equal or not."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter

from waggle.gui.state.story.typesetting import NumberGrid
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import HUES

LARGEST, READABLE, APART = 20.0, 13.0, 1.0  # pixels: a cell at most, a cell with its digit at least, between two cells


def cell_size(grid: NumberGrid, place: QRectF, largest: float = LARGEST) -> float:
    """The side of a cell in pixels, so that the whole grid has room."""
    return min(largest, place.width() / len(grid[0]), place.height() / len(grid))


def draw_grid(painter: QPainter, theme: Theme, grid: NumberGrid, place: QRectF, largest: float = LARGEST) -> None:
    """Draw it from the upper left corner on. Digits are written in cells that are large enough."""
    side = cell_size(grid, place, largest)
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
