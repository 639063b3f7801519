"""What a chart says about one place of its axis, drawn over it: a line, dots on the curves, and a card with the values."""

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QWidget

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import PaintedWidget

PAD, ASIDE, LINE, DOT = 9, 12, 17, 4.5  # pixels: margin of the card, its distance from the line, a row of it, radius of a dot


class Value(msgspec.Struct, frozen=True):
    """A value of a curve, in the coordinates of the data; `role` is the curve's colour. Without `y` it has no dot."""

    words: str
    role: str = "text_soft"
    x: float = 0.0
    y: float | None = None


class Reading(msgspec.Struct, frozen=True):
    """The values around one place, below a heading."""

    heading: str
    values: tuple[Value, ...]

    @property
    def words(self) -> str:
        """All of it in one line, for screen readers."""
        return ". ".join((self.heading, *(value.words for value in self.values)))


class ReadingOverlay(PaintedWidget):
    """Lies over a chart and takes no events. Places are in its pixels."""

    def __init__(self, theme: Theme, chart: QWidget) -> None:
        super().__init__(theme)
        self.setParent(chart)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # as the chart
        self._plot, self._at = QRectF(), 0.0
        self._heading, self._rows = "", list[tuple[str, str]]()
        self._dots: list[tuple[QPointF, str]] = []
        self._band: QRectF | None = None
        self._is_focused = False
        self.hide()

    def show_reading(self, plot: QRectF, at: float, reading: Reading, dots: Sequence[tuple[QPointF, str]]) -> None:
        """`plot` is the area of the curves, `at` the place that is read."""
        self._plot, self._at, self._dots = plot, at, list(dots)
        self._heading, self._rows = reading.heading, [(value.words, value.role) for value in reading.values]
        self._refresh()

    def show_band(self, band: QRectF | None) -> None:
        """Mark the part that a person is about to choose; None: none."""
        self._band = band
        self._refresh()

    def show_focus(self, *, focused: bool) -> None:
        self._is_focused = focused
        self._refresh()

    def clear_reading(self) -> None:
        self._heading = ""
        self._refresh()

    def _refresh(self) -> None:
        self.setVisible(bool(self._heading) or self._band is not None or self._is_focused)
        self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        if self._is_focused:
            painter.setPen(QPen(self.theme.colour("focus"), 2))
            painter.drawRoundedRect(place.adjusted(1, 1, -1, -1), 6, 6)
        if self._band is not None:
            fill = self.theme.colour("accent_line")
            fill.setAlphaF(0.18)
            painter.fillRect(self._band, fill)
        if not self._heading:
            return
        painter.setPen(QPen(self.theme.colour("text_faint"), 1))
        painter.drawLine(QPointF(self._at, self._plot.top()), QPointF(self._at, self._plot.bottom()))
        painter.setPen(QPen(self.theme.colour("surface"), 2))
        for dot, role in self._dots:
            painter.setBrush(self.theme.colour(role))
            painter.drawEllipse(dot, DOT, DOT)
        self._draw_card(painter, place)

    def _draw_card(self, painter: QPainter, place: QRectF) -> None:
        """Right of the line, or left of it where that has no room."""
        px = self.theme.px
        strong, plain = QFontMetricsF(self.theme.font("tag")), QFontMetricsF(self.theme.font("small"))
        marks = px(12)
        widths = [marks + plain.horizontalAdvance(words) for words, _ in self._rows]
        widest = max([strong.horizontalAdvance(self._heading), *widths])
        size = (min(widest + 2 * px(PAD), place.width()), px(LINE) * (1 + len(self._rows)) + 2 * px(PAD) - px(4))
        x = self._at + px(ASIDE)
        if x + size[0] > place.right():
            x = max(place.left(), self._at - px(ASIDE) - size[0])
        card = QRectF(x, max(place.top(), min(self._plot.top() + px(4), place.bottom() - size[1])), *size)
        painter.setPen(QPen(self.theme.colour("border"), 1))
        painter.setBrush(self.theme.colour("surface"))
        painter.drawRoundedRect(card, 8, 8)
        painter.setClipRect(card)
        line = QRectF(card.left() + px(PAD), card.top() + px(PAD) - px(2), card.width() - 2 * px(PAD), px(LINE))
        sides = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.setFont(self.theme.font("tag"))
        painter.setPen(self.theme.colour("text"))
        painter.drawText(line, sides, self._heading)
        painter.setFont(self.theme.font("small"))
        for words, role in self._rows:
            line.translate(0, px(LINE))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self.theme.colour(role))
            painter.drawEllipse(QPointF(line.left() + px(4), line.center().y()), px(3), px(3))
            painter.setPen(self.theme.colour("text"))
            painter.drawText(line.adjusted(marks, 0, 0, 0), sides, words)
