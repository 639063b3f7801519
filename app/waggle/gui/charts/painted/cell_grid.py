"""A chart of cells of equal size, in as many columns as fit: its height follows from its width."""

import math

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy

from waggle.gui.charts.painted.painted_chart import PaintedChart
from waggle.gui.theme.theme import Theme


class CellGrid(PaintedChart):
    """`narrowest` is the least width of a column, before text scaling; `between` and `below` are gaps; all in pixels."""

    narrowest: int
    most_columns: int
    between: int
    below: int

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__(theme, name=name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def count(self) -> int:
        raise NotImplementedError

    def cell_height(self) -> float:
        """The least, in pixels, without the gap below."""
        raise NotImplementedError

    def place_of(self, number: int) -> QRectF:
        """The rectangle of a cell, from the left; a subclass says in which order cells are read."""
        raise NotImplementedError

    def fit(self) -> None:
        """Take the height that the cells need. Call it when their number or size changes."""
        self.setFixedHeight(self.least_height())

    def columns(self) -> int:
        fitting = (self.width() + self.between) // (self.theme.px(self.narrowest) + self.between)
        return max(1, min(self.most_columns, fitting))

    def rows(self) -> int:
        return math.ceil(self.count() / self.columns())

    def cell(self, row: int, column: int) -> QRectF:
        """The rectangle at this place."""
        wide = (self.width() - self.between * (self.columns() - 1)) / self.columns()
        height = max(self.cell_height(), (self.height() + self.below) / max(1, self.rows()) - self.below)
        return QRectF(column * (wide + self.between), row * (height + self.below), wide, height)

    def sizeHint(self) -> QSize:
        return QSize(self.theme.px(self.narrowest), self.least_height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.least_height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def least_height(self) -> int:
        return max(0, math.ceil(self.rows() * (self.cell_height() + self.below)) - self.below)
