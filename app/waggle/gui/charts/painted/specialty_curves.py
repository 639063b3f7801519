"""The reward of each specialty over the rounds: small charts on one scale, side by side."""

from collections.abc import Mapping

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QSizePolicy

from waggle.gui.charts.painted.cell_grid import CellGrid
from waggle.gui.i18n.formatting import decimal, one_line, tr
from waggle.gui.state.chart_series import Stretch
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import mirror_box

NARROWEST, MOST_COLUMNS = 168, 5  # the least width of a chart in pixels, and how many stand in a row
BETWEEN, CURVE, BELOW = 24, 40, 16  # pixels between columns, of a curve, and between rows
LEAST_TOP = 0.1  # of the scale
MOST_HIGHER = 3  # times the least height
SIZES = {False: QSizePolicy.Policy.Fixed, True: QSizePolicy.Policy.Expanding}


class SpecialtyCurves(CellGrid):
    """Curves are by the place of a round, so that all charts have the same width of time. They are higher where there is room."""

    narrowest, most_columns, between, below = NARROWEST, MOST_COLUMNS, BETWEEN, BELOW

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, tr("Reward by specialty"))
        self._curves: list[tuple[str, Stretch]] = []
        self._count = 0
        self._metrics = QFontMetricsF(theme.font("small"))
        self._grows = False

    def let_grow(self, grows: bool) -> None:
        """Whether it takes more height than it needs."""
        if grows != self._grows:
            self._grows = grows
            self.setSizePolicy(self.sizePolicy().horizontalPolicy(), SIZES[grows])
            self.fit()

    def fit(self) -> None:
        least = self.least_height()
        self.setMinimumHeight(least)
        self.setMaximumHeight(MOST_HIGHER * least if self._grows else least)

    def show_curves(self, curves: Mapping[str, Stretch], count: int) -> None:
        """Show the trend of each title over `count` rounds."""
        listed = list(curves.items())
        if (listed, count) == (self._curves, self._count):
            return
        self._curves, self._count = listed, count
        self.setAccessibleDescription("; ".join(self._words(title, curve) for title, curve in listed))
        self.fit()
        self.update()

    @property
    def top(self) -> float:
        """The upper end of the scale."""
        return max([LEAST_TOP, *(reward for _, curve in self._curves for _, reward in curve)])

    def _words(self, title: str, curve: Stretch) -> str:
        words = tr("%1: from %2 to %3").replace("%1", tr(one_line(title)))
        return words.replace("%2", decimal(curve[0][1], 2)).replace("%3", decimal(curve[-1][1], 2))

    def count(self) -> int:
        return len(self._curves)

    def cell_height(self) -> float:
        return self._metrics.height() + 4 + self.theme.px(CURVE)

    def place_of(self, number: int) -> QRectF:
        """The rectangle of a specialty; read across."""
        row, column = divmod(number, self.columns())
        return self.cell(row, column)

    def draw(self, painter: QPainter, place: QRectF) -> None:
        for number, (title, curve) in enumerate(self._curves):
            self._draw_cell(painter, mirror_box(painter, self.place_of(number), place), title, curve)

    def _draw_cell(self, painter: QPainter, cell: QRectF, title: str, curve: Stretch) -> None:
        line = QRectF(cell.left(), cell.top(), cell.width(), self._metrics.height())
        words = decimal(curve[-1][1], 2)
        room = cell.width() - self._metrics.horizontalAdvance(words) - 10
        name = self._metrics.elidedText(tr(one_line(title)), Qt.TextElideMode.ElideRight, room)
        painter.setFont(self.theme.font("small"))
        for text, tone, side in ((name, "text", Qt.AlignmentFlag.AlignLeft), (words, "text_soft", Qt.AlignmentFlag.AlignRight)):
            painter.setPen(self.theme.colour(tone))
            painter.drawText(line, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, text)
        below = line.bottom() + 4
        plot = QRectF(cell.left(), below, cell.width(), cell.bottom() - below).adjusted(1, 2, -3, -1)
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

    def words_at(self, point: QPointF) -> str:
        """The words about the specialty at this point; empty where there is none."""
        if self.layoutDirection() == Qt.LayoutDirection.RightToLeft:
            point = QPointF(self.width() - point.x(), point.y())
        entries = enumerate(self._curves)
        return next((self._words(*entry) for number, entry in entries if self.place_of(number).contains(point)), "")
