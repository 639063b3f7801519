"""The two charts of Progress, drawn by pyqtgraph: loaded when that page is first opened, never before."""

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
import pyqtgraph
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPen

from waggle.core.confidence_interval import interval_of
from waggle.gui.charts import label_placement
from waggle.gui.charts.axis import Tick, axis_ticks, label_stride, round_words
from waggle.gui.i18n.formatting import decimal, duration, one_line, percent, tr, tr_sentence
from waggle.gui.state import chart_series
from waggle.gui.state.chart_series import Axis
from waggle.gui.theme.theme import Look
from waggle.protocol.events import Aha, HeldOutScore
from waggle.protocol.state import State

MOST_POINTS = 1500
LABEL_ROOM = 108  # pixels right of the last point, for the lines' names; this and what follows of words as large as they are made
APART = 17  # pixels between two labels
AXIS_WIDTH, BELOW, LOWEST = 44, 26, 90  # pixels for the words of the axes, and the least that a chart is high
ABOVE_LINES = 1  # in depth
AHAS, AHA_WIDTH, ASIDE = 3, 300, 6  # the newest ones; pixels for the words of each, and between them and its line


class Label(msgspec.Struct, frozen=True):
    """A name at the end of a line."""

    x: float
    y: float
    words: str
    role: str


class PauseBand(msgspec.Struct, frozen=True):
    """A time on the clock axis in which no round was played."""

    start: float
    end: float
    words: str


class EventMark(msgspec.Struct, frozen=True):
    """An aha, or another exam: where it stands and what it was."""

    x: float
    words: str
    round: int


class Chart(pyqtgraph.PlotWidget):  # type: ignore[misc]
    """One plot in the look's colours: grid, axes in words, labels at the lines' ends."""

    def __init__(self, look: Look, name: str, *, shows_axis: bool) -> None:
        pyqtgraph.setConfigOptions(antialias=True)
        super().__init__()
        self.look = look
        self.getPlotItem().setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # time runs so in every chart
        self._name = name
        self.setAccessibleName(name)
        for part in (self, self.viewport()):  # nothing in it can be chosen
            part.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setMenuEnabled(False)
        self.setMouseEnabled(False, False)
        self.hideButtons()
        self._shows_axis = shows_axis
        self._labels: list[tuple[pyqtgraph.TextItem, Label]] = []
        self._notes: list[tuple[pyqtgraph.TextItem, float]] = []  # of ahas, newest first
        self._stretches: list[list[tuple[float, float, float]]] = []  # of each, places, and between what it runs there
        self._top, self._ends = 1.0, (0.0, 1.0)
        self._ticks: list[Tick] = []  # of the left axis
        self._places: list[Tick] = []  # of the one below
        self._ratio = self.devicePixelRatioF()
        self.setMinimumHeight(look.px(LOWEST))
        self.getPlotItem().setContentsMargins(0, 4, 0, 0)
        self.getViewBox().sigResized.connect(self._fit)
        self.getAxis("left").setWidth(look.px(AXIS_WIDTH))
        self.getAxis("bottom").setHeight(look.px(BELOW) if shows_axis else look.px(6))

    def begin(self, top: float, *, shares: bool, x: tuple[float, float], axis: Axis) -> None:
        """Clear and draw ground, grid and axes; `x` are the ends of the data."""
        plot = self.getPlotItem()
        plot.clear()
        self._labels, self._notes, self._stretches = [], [], []
        self.setBackground(self.look.colour("surface"))
        ticks = chart_series.value_ticks(top)
        self._top, self._ends = ticks[-1], x
        digits = 1 if round(ticks[1], 1) == round(ticks[1], 2) else 2
        self._ticks = [(t, percent(t) if shares else decimal(t, digits)) for t in ticks]
        self._places = axis_ticks(axis, x) if self._shows_axis else []
        self._fit()
        plot.setYRange(-self._top * 0.04, self._top * 1.05, padding=0)
        for name in ("left", "bottom"):
            self._dress_axis(self.getAxis(name))
        grid = [float(tick) for tick in ticks for _ in range(2)]
        across = [2 * x[0] - x[1], 2 * x[1] - x[0]]  # beyond both sides, however wide the chart becomes
        self.curve(across * len(ticks), grid, self.pen(self.look.colour("grid")), connect="pairs")

    def pen(self, ink: QColor, width: float = 1, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
        """As wide on a dense screen as on another: pyqtgraph counts in the screen's own pixels."""
        pen = QPen(ink, width * self._ratio, style)
        pen.setCosmetic(True)
        return pen

    def event(self, event: QEvent) -> bool:
        """On a screen of another density its lines stay as wide as they are."""
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            wider, self._ratio = self.devicePixelRatioF() / self._ratio, self.devicePixelRatioF()
            for line in self.scene().items():
                if isinstance(line, pyqtgraph.PlotCurveItem | pyqtgraph.InfiniteLine):
                    pen = QPen(line.opts["pen"] if isinstance(line, pyqtgraph.PlotCurveItem) else line.pen)
                    pen.setWidthF(pen.widthF() * wider)
                    line.setPen(pen)
        return bool(super().event(event))

    def _fit(self, *_resized: object) -> None:
        """The ends of the data, with room for the lines' names right of them, and as many words on both axes as have room."""
        first, last = self._ends
        width = max(last - first, 1e-9)
        words = self.look.px(LABEL_ROOM)
        room = width * words / max(200, self.width() - self.look.px(AXIS_WIDTH) - words)
        self.getPlotItem().setXRange(first - width * 0.008, last + room, padding=0)
        high = self.getViewBox().height()
        every = math.ceil(len(self._ticks) * self.look.px(APART) / high) if high > 0 else 1
        self.getAxis("left").setTicks([self._ticks[:: max(1, every)]])
        pixel = (width * 1.008 + room) / max(1.0, self.getViewBox().width())
        metrics = QFontMetricsF(self.look.font("caption"))
        wide = [metrics.horizontalAdvance(f" {tick_words} ") * pixel for _, tick_words in self._places]
        self.getAxis("bottom").setTicks([self._places[:: label_stride([at for at, _ in self._places], wide)]])
        self.spread_labels()
        self.place_notes()

    def curve(self, x: Sequence[float], y: Sequence[float], pen: object, connect: str = "all") -> pyqtgraph.PlotCurveItem:
        """Only a line: `plot` would make dots to go with it, and look at the view three times."""
        item = pyqtgraph.PlotCurveItem(np.array(x, float), np.array(y, float), pen=pen, connect=connect)
        self.addItem(item)
        return item

    def _dress_axis(self, axis: pyqtgraph.AxisItem) -> None:
        ground = pyqtgraph.mkPen(self.look.colour("surface"))
        axis.setPen(ground)
        axis.setTickPen(ground)
        axis.setTextPen(self.look.colour("text_faint"))
        axis.setTickFont(self.look.font("caption"))
        axis.setStyle(tickLength=0, tickTextOffset=8)

    def band(self, band: PauseBand, *, named: bool) -> None:
        region = pyqtgraph.LinearRegionItem(
            (band.start, band.end),
            movable=False,
            brush=self.look.colour("sunken"),
            pen=self.pen(self.look.colour("border")),
        )
        region.setZValue(-5)
        self.addItem(region)
        if named:
            self._note(band.end, self._top * 0.06, f" {band.words}", "text_faint")

    def aha(self, mark: EventMark, *, named: bool) -> None:
        self._upright(mark, "accent_line", "accent_text", named=named)

    def change(self, mark: EventMark) -> None:
        """What stands right of it cannot be compared with what stands left of it."""
        self._upright(mark, "control", "text_faint", named=True)

    def _upright(self, mark: EventMark, ink: str, role: str, *, named: bool) -> None:
        """A dashed line; its words stand where `place_notes` finds room."""
        self.addItem(pyqtgraph.InfiniteLine(mark.x, pen=self.pen(self.look.colour(ink), 1, Qt.PenStyle.DashLine)))
        if named:
            metrics = QFontMetricsF(self.look.font("tag"))
            words = metrics.elidedText(mark.words, Qt.TextElideMode.ElideRight, self.look.px(AHA_WIDTH))
            note = self._note(mark.x, self._top, words, role)
            self._back(note)
            self._notes.append((note, mark.x))

    def _back(self, note: pyqtgraph.TextItem) -> None:
        """The grid and other lines pass behind its words."""
        note.fill = pyqtgraph.mkBrush(self.look.colour("surface"))
        note.textItem.document().setDocumentMargin(1)
        note.updateTextPos()  # else its middle is that of a higher one until something else moves it
        note.setZValue(ABOVE_LINES)

    def cell(self, x: float, y: float) -> None:
        """Where an aha stands on the curve."""
        look = {"symbol": "h", "size": 13, "pen": self.pen(self.look.colour("surface"), 2), "brush": self.look.colour("accent")}
        dot = pyqtgraph.ScatterPlotItem([x], [y], **look)
        dot.setZValue(ABOVE_LINES + 1)
        self.addItem(dot)

    def place_notes(self) -> None:
        """Clear of each other, of the curve, and of the words at its end and below."""
        box = self.getViewBox()
        (first, last), (low, high) = box.viewRange()
        wide, tall = box.width() / (last - first), box.height() / (high - low)
        if not self._notes or min(wide, tall) <= 0:
            return
        parts = []
        for curve in self._stretches:
            points = [((x - first) * wide, (high - upper) * tall, (high - lower) * tall) for x, lower, upper in curve]
            parts += [label_placement.Box(a[0], min(a[1], b[1]), b[0], max(a[2], b[2])) for a, b in pairwise(points)]
        for label, at in self._labels:
            x_left, middle, size = (at.x - first) * wide, (high - at.y) * tall, label.boundingRect()
            parts.append(
                label_placement.Box(x_left, middle - size.height() / 2, x_left + size.width(), middle + size.height() / 2)
            )
        room = label_placement.Box(
            0, 0, (self._ends[1] - first) * wide, (high - self._top * 0.06) * tall - self.look.px(APART) / 2
        )
        lines = [((x - first) * wide, note.boundingRect().width() + 2 * ASIDE) for note, x in self._notes]
        places = label_placement.place_labels(lines, room, self.look.px(APART), parts)
        for (note, _), place in zip(self._notes, places, strict=True):
            note.setVisible(place is not None)
            if place is not None:
                note.setPos(first + (place.left + ASIDE) / wide, high - (place.top + place.bottom) / 2 / tall)

    def interval(self, x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> None:
        self._stretches.append(list(zip(x, low, high, strict=True)))
        faint = self.look.colour("accent_line")
        faint.setAlphaF(0.16)
        clear = pyqtgraph.mkPen(0, 0, 0, 0)
        edges = [self.curve(x, edge, clear) for edge in (low, high)]
        self.addItem(pyqtgraph.FillBetweenItem(*edges, brush=faint))

    def faint(self, x: Sequence[float], y: Sequence[float]) -> None:
        ink = self.look.colour("accent_line")
        ink.setAlphaF(0.28)
        self.curve(x, y, self.pen(ink))

    def line(self, x: Sequence[float], y: Sequence[float], role: str, style: Qt.PenStyle, *, width: float, dots: bool) -> None:
        self.curve(x, y, self.pen(self.look.colour(role), width, style))
        dots_at = (list(x), list(y)) if dots else ([x[-1]], [y[-1]])
        scatter = pyqtgraph.ScatterPlotItem(*dots_at, size=8, pen=None, brush=self.look.colour(role))
        scatter.setZValue(ABOVE_LINES + 1)  # the ground of the label beside it begins in its middle
        self.addItem(scatter)

    def label(self, label: Label) -> None:
        note = self._note(label.x, label.y, label.words, label.role)
        self._back(note)
        self._labels.append((note, label))

    def _note(self, x: float, y: float, words: str, role: str) -> pyqtgraph.TextItem:
        note = pyqtgraph.TextItem(words, color=self.look.colour(role), anchor=(0, 0.5))
        note.setFont(self.look.font("tag"))
        option = note.textItem.document().defaultTextOption()
        option.setTextDirection(Qt.LayoutDirection.LeftToRight)  # its first spaces keep it away from the line
        note.textItem.document().setDefaultTextOption(option)
        note.setPos(x, y)
        self.addItem(note)
        return note

    def spread_labels(self, *_resized: object) -> None:
        """Two labels never touch: the upper one goes up, the lower one down, as far as there is room below."""
        if len(self._labels) != 2:
            return
        (below, low), (above, high) = sorted(self._labels, key=lambda entry: entry[1].y)
        apart = self.look.px(APART) * self._top * 1.09 / max(1.0, self.getViewBox().height())
        near = max(0.0, apart - (high.y - low.y))
        lowest = max(low.y - near / 2, apart / 2 - self._top * 0.04) if near else low.y
        below.setPos(low.x, lowest)
        above.setPos(high.x, max(high.y + near / 2, lowest + apart) if near else high.y)


class HeldOutChart(Chart):
    """The honest score with its 95% interval."""

    def __init__(self, look: Look) -> None:
        super().__init__(look, tr("Held-out score by round; the table shows the same"), shows_axis=False)

    def show_state(self, state: State, axis: Axis, ends: tuple[float, float], bands: Sequence[PauseBand]) -> None:
        rounds, scores = chart_series.rounds(state), chart_series.scores(state)
        exams = [
            _curve_of(exam, chart_series.event_positions(exam, rounds, axis)) for exam in chart_series.by_question_set(scores)
        ]
        self.begin(max([0.1, *(high for exam in exams for high in exam.high)]), shares=True, x=ends, axis=axis)
        for band in bands:
            self.band(band, named=True)
        ahas, changes = aha_marks(state, axis, ends) if scores else [], _changes(exams)
        names = [f"{mark.words}, {round_words(mark.round)}" for mark in (*ahas, *changes)]
        self.setAccessibleName(". ".join([self._name, *names]))
        if not scores:
            return
        for exam in exams:
            self.interval(exam.x, exam.low, exam.high)
        for mark in ahas:
            self.aha(mark, named=True)
        for mark in changes:
            self.change(mark)
        for exam in exams:
            self.line(exam.x, exam.shares, "accent_line", Qt.PenStyle.SolidLine, width=2.6, dots=len(scores) < 30)
            for mark in ahas:
                if exam.x[0] <= mark.x <= exam.x[-1]:
                    self.cell(mark.x, float(np.interp(mark.x, exam.x, exam.shares)))
        newest, share = exams[-1].x[-1], exams[-1].shares[-1]
        self.label(Label(newest, share, f"   {tr('You')}  {percent(share, 1)}", "accent_text"))
        self.place_notes()


class ScoreCurve(msgspec.Struct, frozen=True):
    """Scores on the same questions: where each stands, its share and its interval."""

    round: int  # of the first one
    x: list[float]
    shares: list[float]
    low: list[float]
    high: list[float]


def _curve_of(scores: Sequence[HeldOutScore], x: list[float]) -> ScoreCurve:
    shares = [score.right / score.total if score.total else 0.0 for score in scores]
    low, high = zip(*(interval_of(score.right, score.total) for score in scores), strict=True)
    return ScoreCurve(scores[0].round, x, shares, list(low), list(high))


def _changes(exams: Sequence[ScoreCurve]) -> list[EventMark]:
    """Between the last score on some questions and the first on others, the newest first."""
    words = tr("The questions change here")
    return [EventMark((before.x[-1] + after.x[0]) / 2, words, after.round) for before, after in pairwise(exams)][::-1]


class RewardChart(Chart):
    """What training answers earn: each round faint, the trend strong, peers' mean as a dashed level."""

    def __init__(self, look: Look) -> None:
        super().__init__(look, tr("Reward by round; the table shows the same"), shows_axis=True)

    def show_state(self, state: State, axis: Axis, ends: tuple[float, float], bands: Sequence[PauseBand]) -> None:
        rounds, peers = chart_series.rounds(state), chart_series.peers_reward(state)
        raw = [summary.reward for summary in rounds]
        mine = chart_series.trend(raw, chart_series.trend_width(len(raw)))
        self.begin(chart_series.reward_ceiling(raw, mine, peers), shares=False, x=ends, axis=axis)
        for band in bands:
            self.band(band, named=False)
        if not rounds:
            return
        for mark in aha_marks(state, axis, ends):
            self.aha(mark, named=False)
        x = chart_series.round_positions(rounds, axis)
        every = max(1, len(x) // MOST_POINTS)
        self.faint(x[::every], raw[::every])
        if peers is not None:
            self.line([x[0], x[-1]], [peers, peers], "peer", Qt.PenStyle.DashLine, width=2, dots=False)
            self.label(Label(x[-1], peers, f"   {tr('Peers')}  {decimal(peers, 2)}", "peer"))
        self.line(x, mine, "accent_line", Qt.PenStyle.SolidLine, width=2.6, dots=False)
        self.label(Label(x[-1], mine[-1], f"   {tr('You')}  {decimal(mine[-1], 2)}", "accent_text"))
        self.spread_labels()


def pause_bands(state: State, axis: Axis) -> list[PauseBand]:
    """Pauses worth a band: on the clock only, and not narrower than a hundredth of it."""
    rounds = chart_series.rounds(state)
    if axis != "clock" or len(rounds) < 2:
        return []
    whole = rounds[-1].at - rounds[0].at
    pauses = [pause for pause in chart_series.pauses(rounds) if (pause.end - pause.start) * 100 > whole]
    words = tr("No rounds for %1")
    return [PauseBand(pause.start, pause.end, words.replace("%1", duration(pause.end - pause.start))) for pause in pauses]


def aha_marks(state: State, axis: Axis, ends: tuple[float, float]) -> list[EventMark]:
    """The newest ahas that stand between both ends, newest first."""
    places = zip(state.ahas, chart_series.event_positions(state.ahas, chart_series.rounds(state), axis), strict=True)
    marks_in_range = [EventMark(x, _aha_words(aha), aha.round) for aha, x in places if ends[0] <= x <= ends[1]]
    return marks_in_range[-AHAS:][::-1]


def _aha_words(aha: Aha) -> str:
    words = tr("Aha: %1, from %2").replace("%2", one_line(aha.name)) if aha.origin else tr("Aha: %1")
    return words.replace("%1", tr_sentence(one_line(aha.specialty)))


def axis_range(state: State, axis: Axis) -> tuple[float, float]:
    """The first and last place that any point of either chart stands on."""
    rounds = chart_series.rounds(state)
    positions = [
        *chart_series.round_positions(rounds, axis),
        *chart_series.event_positions(chart_series.scores(state), rounds, axis),
    ]
    if not positions:
        return 0.0, 1.0
    return min(positions), max(max(positions), min(positions) + 1)
