"""The held-out score by round on Home: the curve with its 95% interval, first right answers, and measured references."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPolygonF

from waggle.core.confidence_interval import interval_of
from waggle.core.text.round_number import round_number
from waggle.gui.charts.painted.painted_chart import PaintedChart
from waggle.gui.charts.plotted.measured_legend import ALONE, WITH_PEERS, measured_pen
from waggle.gui.i18n.formatting import figure, one_line, peer_name, percent, plural, tr
from waggle.gui.state import chart_series
from waggle.gui.state.measured_curves import MeasuredLine, measured_lines
from waggle.gui.state.story.learning_story import exams
from waggle.gui.state.story.namesakes import Namesakes, namesakes, short_name
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import hexagon
from waggle.protocol.events import Aha, HeldOutScore
from waggle.protocol.state import State

LINE = 18  # pixels of a line of text, before text scaling
BEFORE, BEHIND, ABOVE, BELOW = 42, 62, 26, 24  # pixels around the plot, before text scaling
LOWEST, KEY, SIGN, APART = 120, 22, 14, 18  # pixels: of all; the line that explains the signs; a sign; and between two
CELL, IN_SIGHT = 6.5, 9.0  # pixels: radius of a first right answer, and between the middles of two at least
NEAR = 12.0  # pixels between the pointer and what it points at
LOWEST_TOP = 0.1  # a share
MOST_TICKS = 9  # lines across the plot


def moved_apart(places: Sequence[float], first: float, last: float, apart: float) -> list[float]:
    """Places in order, each at least so far behind the one before; all between `first` and `last` if these leave the room."""
    moved: list[float] = []
    for place in places:
        moved.append(max([place, *(before + apart for before in moved[-1:])]))
    ends = last
    for number in reversed(range(len(moved))):
        moved[number] = min(moved[number], ends)
        ends = moved[number] - apart
    return [max(first, place) for place in moved]


def line_name(line: MeasuredLine) -> str:
    return tr("alone") if line.is_alone else tr("with peers")


def first_answer_words(aha: Aha, peer: str) -> str:
    """A first right answer, or the peer whose answer was learned from before it."""
    words = tr("%1: %2 was right first").replace("%2", peer) if aha.origin else tr("First right answer in %1")
    return words.replace("%1", tr(one_line(aha.specialty)))


def whole_words(aha: Aha) -> str:
    """The same, with the fingerprint of the peer's key."""
    return first_answer_words(aha, peer_name(aha.name, aha.origin))


class ScoreCurve(PaintedChart):
    """Draws nothing until there is a score. Its accessible description says what stands in it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, name=tr("Right answers to new questions, by round"))
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # time runs left to right in every language
        self._exams: list[list[HeldOutScore]] = []
        self._references: tuple[MeasuredLine, ...] = ()
        self._ahas: tuple[Aha, ...] = ()
        self._several: Namesakes = frozenset()
        self._ends = (0.0, 1.0)
        self._drawn: tuple[object, ...] = ()
        self.setMinimumHeight(theme.px(LOWEST))

    def show_state(self, state: State) -> None:
        groups = exams(state)
        first = float(groups[0][0].round) if groups else 0.0
        last = max(
            [first + 1.0, *(float(group[-1].round) for group in groups), *(float(round_number(aha.round)) for aha in state.ahas)]
        )
        references = measured_lines(state, groups, last)
        several = namesakes(state.peers.values(), state.ahas)
        drawn = (tuple(score for group in groups for score in group), state.ahas, last, references, several)
        if drawn == self._drawn:
            return
        self._drawn, self._exams, self._ends = drawn, groups, (first, last)
        self._references, self._several = references, several
        self._ahas = tuple(aha for aha in state.ahas if first <= round_number(aha.round) <= last)
        self.setAccessibleDescription(". ".join(self._in_words()))
        self.update()

    def _in_words(self) -> list[str]:
        tests = [
            f"{_after(score)}: {percent(score.right / score.total)}" for score in (self._exams[-1][-5:] if self._exams else [])
        ]
        known = [each for each in self._references if each.shares]
        elsewhere = [f"{tr('Measured elsewhere')}, {line_name(each)}: {percent(each.shares[-1])}" for each in known]
        return [*tests, *elsewhere, *map(whole_words, self._ahas)]

    def plot(self) -> QRectF:
        """Where the curve is drawn."""
        px = self.theme.px
        return QRectF(self.rect()).adjusted(px(BEFORE), px(ABOVE), -px(BEHIND), -px(BELOW + KEY))

    def _ticks(self) -> list[float]:
        highest = [interval_of(score.right, score.total)[1] for group in self._exams for score in group]
        highest += [share for each in self._references for share in each.shares]
        most = min(MOST_TICKS, max(3, int(self.plot().height() // self.theme.px(34)) + 1))
        return chart_series.value_ticks(max([LOWEST_TOP, *highest]), most=most)

    def _at(self, number: float, share: float, top: float) -> QPointF:
        plot, (first, last) = self.plot(), self._ends
        return QPointF(
            plot.left() + plot.width() * (number - first) / (last - first), plot.bottom() - plot.height() * share / top
        )

    def draw(self, painter: QPainter, place: QRectF) -> None:
        if not self._exams:
            return
        plot = self.plot()
        ticks = self._ticks()
        top = ticks[-1]
        self._draw_axes(painter, plot, ticks)
        self._draw_references(painter, top)
        for group in self._exams:
            self._draw_exam(painter, group, top)
        self._draw_ahas(painter, top)
        self._draw_key(painter, plot)
        score = self._exams[-1][-1]
        end = self._at(score.round, score.right / score.total, top)
        painter.setFont(self.theme.font("heading"))
        painter.setPen(self.theme.colour("accent_text"))
        beside = QRectF(
            end.x() + self.theme.px(10), end.y() - self.theme.px(LINE) / 2, self.theme.px(BEHIND), self.theme.px(LINE)
        )
        painter.drawText(beside, Qt.AlignmentFlag.AlignVCenter, percent(score.right / score.total))

    def _draw_axes(self, painter: QPainter, plot: QRectF, ticks: Sequence[float]) -> None:
        px, line = self.theme.px, self.theme.px(LINE)
        painter.setFont(self.theme.font("caption"))
        for value in ticks:
            y = round(plot.bottom() - plot.height() * value / ticks[-1]) + 0.5
            painter.setPen(QPen(self.theme.colour("grid"), 1))
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            painter.setPen(self.theme.colour("text_faint"))
            box = QRectF(plot.left() - px(BEFORE), y - line / 2, px(BEFORE - 8), line)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, percent(value))
        first, last = self._ends
        metrics = QFontMetricsF(painter.font())
        right_end = 0.0
        for tick in chart_series.integer_ticks(first, last, most=max(2, int(plot.width() // px(110)))):
            words = figure(int(tick)) if right_end else plural(int(tick), "%n round", "%n rounds")
            width, x = metrics.horizontalAdvance(words) + 4, self._at(tick, 0.0, 1.0).x()
            x_left = max(plot.left() - px(8), x - width / 2)
            if x_left > right_end:
                painter.drawText(QRectF(x_left, plot.bottom() + px(5), width, line), Qt.AlignmentFlag.AlignVCenter, words)
                right_end = x_left + width + px(8)

    def key(self) -> list[tuple[str, str]]:
        """What is drawn beside the curve, the band or a cell by its colour, and what it means."""
        words = [("band", tr("margin of error"))]
        words += [("accent", tr("first right answer, by itself"))] if any(not aha.origin for aha in self._ahas) else []
        return words + ([("peer", tr("a peer was right first"))] if any(aha.origin for aha in self._ahas) else [])

    def _draw_key(self, painter: QPainter, plot: QRectF) -> None:
        """Below the axis, what the band and the cells mean, as far as there is room."""
        px = self.theme.px
        painter.setFont(self.theme.font("caption"))
        metrics = QFontMetricsF(painter.font())
        start, middle = plot.left(), plot.bottom() + px(BELOW + KEY / 2)
        for sign, words in self.key():
            width = metrics.horizontalAdvance(words) + 2
            if start + px(SIGN + 6) + width > self.width():
                return
            if sign == "band":
                painter.fillRect(QRectF(start, middle - px(4), px(SIGN), px(8)), self._band())
            else:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(self.theme.colour(sign))
                painter.drawPolygon(hexagon(start + px(SIGN) / 2, middle, CELL))
            painter.setPen(self.theme.colour("text_soft"))
            box = QRectF(start + px(SIGN + 6), middle - px(LINE) / 2, width, px(LINE))
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, words)
            start = box.right() + px(APART)

    def _band(self) -> QColor:
        faint = self.theme.colour("accent_line")
        faint.setAlphaF(0.16)
        return faint

    def _draw_references(self, painter: QPainter, top: float) -> None:
        for each in self._references:
            name, points = line_name(each), [self._at(*point, top) for point in zip(each.rounds, each.shares, strict=True)]
            if len(points) < 2:
                continue
            painter.setPen(QPen(*measured_pen(self.theme, ALONE if each.is_alone else WITH_PEERS)))
            painter.drawPolyline(QPolygonF(points))
            painter.setFont(self.theme.font("caption"))
            width = QFontMetricsF(painter.font()).horizontalAdvance(name) + 4
            box = QRectF(points[-1].x() - width, points[-1].y() - self.theme.px(LINE), width, self.theme.px(LINE))
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, name)

    def _draw_exam(self, painter: QPainter, group: Sequence[HeldOutScore], top: float) -> None:
        """The curve of one set of questions, and its 95% interval as a band."""
        bounds = [interval_of(score.right, score.total) for score in group]
        low = [self._at(score.round, bound[0], top) for score, bound in zip(group, bounds, strict=True)]
        high = [self._at(score.round, bound[1], top) for score, bound in zip(group, bounds, strict=True)]
        faint = self._band()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(faint)
        if len(group) == 1:  # a band of one point has no width
            faint.setAlphaF(0.4)
            painter.setPen(QPen(faint, 3))
            painter.drawLine(low[0], high[0])
        painter.drawPolygon(QPolygonF([*low, *reversed(high)]))
        points = [self._at(score.round, score.right / score.total, top) for score in group]
        strong = QPen(self.theme.colour("accent_line"), 2.6)
        strong.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.setPen(strong)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(QPolygonF(points))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.colour("accent_line"))
        for point in points if len(points) < 30 else points[-1:]:
            painter.drawEllipse(point, 4, 4)

    def _aha_points(self, top: float) -> list[QPointF]:
        """On the curve after the rounds of the first right answers; near ones are moved along it, so that each is in sight."""
        places = [self._at(round_number(aha.round), 0.0, top).x() for aha in self._ahas]
        plot = self.plot()
        return [self._on_curve(x, top) for x in moved_apart(places, plot.left(), plot.right(), IN_SIGHT)]

    def _on_curve(self, x: float, top: float) -> QPointF:
        plot, (begins, ends) = self.plot(), self._ends
        number = begins + (ends - begins) * (x - plot.left()) / plot.width()
        scores = [score for group in self._exams for score in group]
        after = next((i for i, score in enumerate(scores) if score.round >= number), len(scores) - 1)
        before, later = scores[max(0, after - 1)], scores[after]
        share = later.right / later.total
        if later.round > before.round and number <= later.round:
            part = max(0.0, (number - before.round) / (later.round - before.round))
            share = before.right / before.total * (1 - part) + share * part
        return self._at(number, share, top)

    def _draw_ahas(self, painter: QPainter, top: float) -> None:
        points = self._aha_points(top)
        for aha, point in zip(self._ahas, points, strict=True):
            painter.setPen(QPen(self.theme.colour("surface"), 1.6))
            painter.setBrush(self.theme.colour("peer" if aha.origin else "accent"))
            painter.drawPolygon(hexagon(point.x(), point.y(), CELL))
        taught = [place for place, aha in enumerate(self._ahas) if aha.origin]
        if taught:
            self._draw_note(painter, self._ahas[taught[-1]], points[taught[-1]])

    def _draw_note(self, painter: QPainter, aha: Aha, point: QPointF) -> None:
        """The words about one first right answer, above the plot, and a thin line down to it."""
        plot, px = self.plot(), self.theme.px
        painter.setFont(self.theme.font("tag"))
        metrics = QFontMetricsF(painter.font())
        words = first_answer_words(aha, short_name(aha.name, aha.origin, self._several))
        words = metrics.elidedText(words, Qt.TextElideMode.ElideRight, plot.width())
        width = metrics.horizontalAdvance(words) + 4
        x_left = max(plot.left(), min(point.x() - px(10), plot.right() - width))
        painter.setPen(QPen(self.theme.colour("peer"), 1, Qt.PenStyle.DotLine))
        painter.drawLine(QPointF(point.x(), plot.top() - px(6)), QPointF(point.x(), point.y() - CELL - 2))
        painter.setPen(self.theme.colour("peer"))
        painter.drawText(QRectF(x_left, plot.top() - px(ABOVE) + 1, width, px(LINE)), Qt.AlignmentFlag.AlignVCenter, words)

    def words_at(self, point: QPointF) -> str:
        """What is drawn at this point, in words; empty where nothing is."""
        if not self._exams:
            return ""
        top = self._ticks()[-1]
        near = [(aha, place) for aha, place in zip(self._ahas, self._aha_points(top), strict=True) if _near(place, point)]
        if near:
            return whole_words(min(near, key=lambda each: (each[1] - point).manhattanLength())[0])
        for score in (score for group in self._exams for score in group):
            if _near(self._at(score.round, score.right / score.total, top), point):
                words = tr("%1 of %2 right").replace("%1", figure(score.right)).replace("%2", figure(score.total))
                return f"{_after(score)}: {words}"
        return ""


def _after(score: HeldOutScore) -> str:
    return plural(score.round, "After %n round", "After %n rounds")


def _near(place: QPointF, pointer: QPointF) -> bool:
    return (place - pointer).manhattanLength() < NEAR
