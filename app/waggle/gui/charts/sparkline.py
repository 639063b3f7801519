"""Sparkline of the reward of the last rounds.

A faint line for each round, a strong one for the trend, a dashed one for the peers' trend.
"""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPen

from waggle.gui.i18n.formatting import decimal, figure, tr
from waggle.gui.state import chart_series
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import PaintedWidget
from waggle.gui.widgets.text import set_tip
from waggle.protocol.events import RoundSummary

LINE = 18  # pixels of a line of text, before text scaling; also the least distance of two labels


class Sparkline(PaintedWidget):
    """Draws nothing until there are two rounds."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, name=tr("Reward of the last rounds"))
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # time runs left to right in every language
        self._rounds: Sequence[RoundSummary] = ()
        self._peers: list[chart_series.Stretch] = []
        self.setMinimumHeight(theme.px(70))

    def show_rounds(self, rounds: Sequence[RoundSummary]) -> None:
        if rounds == self._rounds:
            return
        self._rounds, self._peers = rounds, chart_series.peers_rewards(rounds)
        if len(rounds) > 1:
            self.setAccessibleName(tr("Reward of the last rounds: you %1").replace("%1", decimal(self._trend()[-1], 2)))
        earned, dashed = chart_series.peers_reward_now(self._peers, len(rounds)), ""
        if earned is not None:
            dashed = tr("Dashed is what the answers of peers earned: %1 in the last rounds.").replace("%1", decimal(earned, 2))
        set_tip(self, dashed)
        self.setAccessibleDescription(dashed)
        self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        if len(self._rounds) < 2:
            return
        px = self.theme.px
        plot = place.adjusted(px(34), px(8), -px(92), -px(22))
        raw, mine = [summary.reward for summary in self._rounds], self._trend()
        ticks = chart_series.value_ticks(
            chart_series.reward_ceiling(raw, mine, self._peers), most=max(4, int(plot.height() // px(24)))
        )
        painter.setFont(self.theme.font("caption"))
        self._grid(painter, plot, ticks)
        self._rounds_axis(painter, plot)
        painter.setClipRect(plot.adjusted(-4, -6, 4, 4))
        self._curve(painter, _points(raw, plot, ticks[-1]), QPen(_translucent_colour(self.theme.colour("accent_line")), 1))
        end = QPointF(plot.right(), _height(mine[-1], plot, ticks[-1]))
        labels = [(end, "accent_line", "accent_text", f"{tr('You')} {decimal(mine[-1], 2)}")]
        for stretch in self._peers:
            points = [(place / (len(raw) - 1), reward) for place, reward in stretch]
            pen = QPen(self.theme.colour("peer"), 2, Qt.PenStyle.DashLine)
            if len(points) == 1:  # a dot
                pen = QPen(self.theme.colour("peer"), 4, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
            self._curve(painter, _path(points, plot, ticks[-1]), pen)
        if (reward := chart_series.peers_reward_now(self._peers, len(raw))) is not None:
            end = QPointF(plot.left() + plot.width() * points[-1][0], _height(reward, plot, ticks[-1]))
            labels.append((end, "peer", "peer", f"{tr('Peers')} {decimal(reward, 2)}"))
        strong = QPen(self.theme.colour("accent_line"), 2.5)
        strong.setCapStyle(Qt.PenCapStyle.RoundCap)
        strong.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        self._curve(painter, _points(mine, plot, ticks[-1]), strong)
        painter.setClipping(False)
        self._labels(painter, plot, labels)

    def _trend(self) -> list[float]:
        values = [summary.reward for summary in self._rounds]
        return chart_series.trend(values, chart_series.trend_width(len(values)))

    def _grid(self, painter: QPainter, plot: QRectF, ticks: Sequence[float]) -> None:
        digits, line = 2 if round(ticks[1], 1) != round(ticks[1], 2) else 1, self.theme.px(LINE)
        for value in ticks:
            y = round(_height(value, plot, ticks[-1])) + 0.5
            painter.setPen(QPen(self.theme.colour("grid"), 1))
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            painter.setPen(self.theme.colour("text_faint"))
            side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            box = QRectF(plot.left() - self.theme.px(38), y - line / 2, self.theme.px(30), line)
            painter.drawText(box, side, decimal(value, digits))

    def _rounds_axis(self, painter: QPainter, plot: QRectF) -> None:
        first, last = self._rounds[0].round, self._rounds[-1].round
        words = [(0.0, f"{tr('round')} {figure(first)}"), (1.0, figure(last))]
        width = QFontMetricsF(painter.font()).horizontalAdvance(words[0][1]) + 8
        if last - first > 8 and plot.width() >= 3 * width:
            words.append((0.5, figure((first + last) // 2)))
        painter.setPen(self.theme.colour("text_faint"))
        for share, label in words:
            side = (Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight)[int(share * 2)]
            x_left = plot.left() + (plot.width() - width) * share
            box = QRectF(x_left, plot.bottom() + self.theme.px(5), width, self.theme.px(LINE))
            painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, label)

    def _curve(self, painter: QPainter, path: QPainterPath, pen: QPen) -> None:
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(path)

    def _labels(self, painter: QPainter, plot: QRectF, labels: Sequence[tuple[QPointF, str, str, str]]) -> None:
        """Labels right of the plot, each with a dot at the end of its line: where that is, both colours, and the words."""
        painter.setFont(self.theme.font("tag"))
        room, high = self.theme.px(82), self.theme.px(LINE)
        spread = max(0.0, high - abs(labels[0][0].y() - labels[-1][0].y())) / 2 if len(labels) > 1 else 0.0
        lowest = max(end.y() for end, *_ in labels)
        for end, line, ink, words in labels:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self.theme.colour(line))
            painter.drawEllipse(end, 4, 4)
            painter.setPen(self.theme.colour(ink))
            shift = spread if end.y() == lowest else -spread
            box = QRectF(plot.right() + self.theme.px(10), end.y() - high / 2 + shift, room, high)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, words)


def _translucent_colour(colour: QColor) -> QColor:
    colour.setAlphaF(0.30)
    return colour


def _height(value: float, plot: QRectF, top: float) -> float:
    return plot.bottom() - plot.height() * value / top


def _points(values: Sequence[float], plot: QRectF, top: float) -> QPainterPath:
    return _path([(i / (len(values) - 1), value) for i, value in enumerate(values)], plot, top)


def _path(points: Sequence[tuple[float, float]], plot: QRectF, top: float) -> QPainterPath:
    """A line through points; their first number is the share of the width."""
    path = QPainterPath()
    for i, (share, value) in enumerate(points):
        point = QPointF(plot.left() + plot.width() * share, _height(value, plot, top))
        if i:
            path.lineTo(point)
        else:
            path.moveTo(point)
    if len(points) == 1:
        path.lineTo(path.currentPosition() + QPointF(0.01, 0))  # a line without length is not drawn
    return path
