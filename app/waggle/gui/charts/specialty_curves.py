"""The reward of each specialty over the rounds: small charts on one scale, side by side."""

import math
from collections.abc import Mapping

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QPainter, QPainterPath, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip

from waggle.gui.i18n.formatting import decimal, one_line, tooltip_text, tr, tr_sentence
from waggle.gui.state.chart_series import Stretch
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import PaintedWidget

NARROWEST, MOST_COLUMNS = 168, 5  # the least width of a chart in pixels, and how many stand in a row
BETWEEN, CURVE, BELOW = 24, 40, 16  # pixels between columns, of a curve, and between rows
LEAST_TOP = 0.1  # of the scale


class SpecialtyCurves(PaintedWidget):
    """Curves are by the place of a round, so that all charts have the same width of time."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, name=tr("Reward by specialty"))
        self._curves: list[tuple[str, Stretch]] = []
        self._count = 0
        self._metrics = QFontMetricsF(theme.font("small"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_curves(self, curves: Mapping[str, Stretch], count: int) -> None:
        """Show the trend of each title over `count` rounds."""
        listed = list(curves.items())
        if (listed, count) == (self._curves, self._count):
            return
        self._curves, self._count = listed, count
        self.setAccessibleDescription("; ".join(self._words(title, curve) for title, curve in listed))
        self._fit()
        self.update()

    @property
    def top(self) -> float:
        """The upper end of the scale."""
        return max([LEAST_TOP, *(reward for _, curve in self._curves for _, reward in curve)])

    def _words(self, title: str, curve: Stretch) -> str:
        words = tr("%1: from %2 to %3").replace("%1", tr_sentence(one_line(title)))
        return words.replace("%2", decimal(curve[0][1], 2)).replace("%3", decimal(curve[-1][1], 2))

    def sizeHint(self) -> QSize:
        return QSize(self.theme.px(NARROWEST), self._height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self._height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """The height depends on the number of columns, which the width decides."""
        self.setFixedHeight(self._height())

    def _columns(self) -> int:
        fitting = (self.width() + BETWEEN) // (self.theme.px(NARROWEST) + BETWEEN)
        return max(1, min(MOST_COLUMNS, fitting, len(self._curves) or 1))

    def _cell_height(self) -> float:
        return self._metrics.height() + 4 + self.theme.px(CURVE)

    def _height(self) -> int:
        rows = math.ceil(len(self._curves) / self._columns())
        return max(0, math.ceil(rows * (self._cell_height() + BELOW)) - BELOW)

    def place_of(self, number: int) -> QRectF:
        """The rectangle of a specialty; read from left to right."""
        columns = self._columns()
        wide = (self.width() - BETWEEN * (columns - 1)) / columns
        row, at = divmod(number, columns)
        x = at * (wide + BETWEEN)
        if self.layoutDirection() == Qt.LayoutDirection.RightToLeft:
            x = self.width() - x - wide
        return QRectF(x, row * (self._cell_height() + BELOW), wide, self._cell_height())

    def draw(self, painter: QPainter, place: QRectF) -> None:
        for number, (title, curve) in enumerate(self._curves):
            self._draw_cell(painter, self.place_of(number), title, curve)

    def _draw_cell(self, painter: QPainter, cell: QRectF, title: str, curve: Stretch) -> None:
        line = QRectF(cell.left(), cell.top(), cell.width(), self._metrics.height())
        words = decimal(curve[-1][1], 2)
        room = cell.width() - self._metrics.horizontalAdvance(words) - 10
        name = self._metrics.elidedText(tr_sentence(one_line(title)), Qt.TextElideMode.ElideRight, room)
        painter.setFont(self.theme.font("small"))
        for text, tone, side in ((name, "text", Qt.AlignmentFlag.AlignLeft), (words, "text_soft", Qt.AlignmentFlag.AlignRight)):
            painter.setPen(self.theme.colour(tone))
            painter.drawText(line, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, text)
        plot = QRectF(cell.left(), line.bottom() + 4, cell.width(), self.theme.px(CURVE)).adjusted(1, 2, -3, -1)
        painter.setPen(QPen(self.theme.colour("grid"), 1))
        painter.drawLine(plot.bottomLeft(), plot.bottomRight())
        across = plot.width() / max(1, self._count - 1)
        points = [QPointF(plot.left() + at * across, plot.bottom() - plot.height() * reward / self.top) for at, reward in curve]
        path = QPainterPath(points[0])
        for point in points[1:]:
            path.lineTo(point)
        area = QPainterPath(path)
        area.lineTo(points[-1].x(), plot.bottom())
        area.lineTo(points[0].x(), plot.bottom())
        shade = QColor(self.theme.colour("accent_line"))
        shade.setAlphaF(0.14)
        painter.fillPath(area, shade)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        pen = QPen(self.theme.colour("accent_line"), 1.8)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.setPen(pen)
        painter.drawPath(path)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.colour("accent_line"))
        painter.drawEllipse(points[-1], 2.5, 2.5)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), tooltip_text(self.words_at(QPointF(event.pos()))), self)
            return True
        return super().event(event)

    def words_at(self, point: QPointF) -> str:
        """The words about the specialty at this point; empty where there is none."""
        entries = enumerate(self._curves)
        return next((self._words(*entry) for number, entry in entries if self.place_of(number).contains(point)), "")
