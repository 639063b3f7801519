"""A line chart with annotations. Imports pyqtgraph, so load it only when a chart is shown."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pyqtgraph
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF

from waggle.gui.charts.plotted import label_placement
from waggle.gui.charts.plotted.aha_pins import AhaPins, Pin
from waggle.gui.charts.plotted.chart import APART, LineChart
from waggle.gui.state.chart_series import Axis
from waggle.gui.theme.theme import Theme

AHA_WIDTH, ASIDE = 300, 6  # pixels for the words of a note, and between them and its line
LOW = 240  # pixels at a text size of 100%: in a chart lower than this, long notes would cover the curve


class PauseBand(msgspec.Struct, frozen=True):
    """A pause on the clock axis."""

    start: float
    end: float
    words: str


class EventMark(msgspec.Struct, frozen=True):
    """An aha, or a change of the held-out questions: its x position, its words and its round; `short` for a low chart."""

    x: float
    words: str
    round: int
    short: str = ""  # empty: as `words`
    number: int = 0  # of an aha, counted from the oldest
    is_taught: bool = False  # whether an answer of a peer came before it


class AnnotatedChart(LineChart):
    """A chart with pauses, ahas, changes of questions and intervals, and their notes placed clear of everything else."""

    def __init__(self, theme: Theme, name: str, *, shows_axis: bool) -> None:
        self._notes: list[tuple[pyqtgraph.TextItem, EventMark]] = []  # of ahas, newest first
        self.pins = AhaPins(theme)
        self._intervals: list[list[tuple[float, float, float]]] = []  # for each curve: x, low and high of its points
        super().__init__(theme, name, shows_axis=shows_axis)

    def begin(self, top: float, *, shares: bool, x: tuple[float, float], axis: Axis, labelled: bool = True) -> None:
        self._notes, self.pins, self._intervals = [], AhaPins(self.theme), []
        super().begin(top, shares=shares, x=x, axis=axis, labelled=labelled)
        self.addItem(self.pins)

    def _fit(self, *_resized: object) -> None:
        super()._fit()
        self.place_notes()

    def draw_pause_band(self, band: PauseBand, *, named: bool) -> None:
        region = pyqtgraph.LinearRegionItem(
            (band.start, band.end),
            movable=False,
            brush=self.theme.colour("sunken"),
            pen=self.pen(self.theme.colour("border")),
        )
        region.setZValue(-5)
        self.addItem(region)
        if named:
            self._add_note(band.end, self._top * 0.06, f" {band.words}", "text_faint")

    def mark_aha(self, mark: EventMark, *, named: bool) -> None:
        self._draw_vertical(mark, "accent_line", "accent_text", named=named)

    def mark_question_change(self, mark: EventMark) -> None:
        """Mark a change of the questions: scores on both sides cannot be compared."""
        self._draw_vertical(mark, "control", "text_faint", named=True)

    def _draw_vertical(self, mark: EventMark, ink: str, role: str, *, named: bool) -> None:
        """Draw a dashed vertical line; `place_notes` places its words."""
        self.addItem(pyqtgraph.InfiniteLine(mark.x, pen=self.pen(self.theme.colour(ink), 1, Qt.PenStyle.DashLine)))
        if named:
            note = self._add_note(mark.x, self._top, self._note_words(mark), role)
            self._give_background(note)
            self._notes.append((note, mark))

    def _note_words(self, mark: EventMark) -> str:
        words = mark.short if mark.short and self.height() < self.theme.px(LOW) else mark.words
        metrics = QFontMetricsF(self.theme.font("tag"))
        return metrics.elidedText(words, Qt.TextElideMode.ElideRight, self.theme.px(AHA_WIDTH))

    def pin_aha(self, mark: EventMark, y: float) -> None:
        """Mark an aha at its place on the curve with a hexagon that has its number."""
        self.pins.add(Pin(mark.number, mark.x, y, mark.is_taught))

    def place_notes(self) -> None:
        """Place the notes clear of each other, of the curve, of its label, and of the words below."""
        box = self.getViewBox()
        (first, last), (low, high) = box.viewRange()
        wide, tall = box.width() / (last - first), box.height() / (high - low)
        if not self._notes or min(wide, tall) <= 0:
            return
        for note, mark in self._notes:
            note.setPlainText(self._note_words(mark))
        parts = []
        for curve in self._intervals:
            points = [((x - first) * wide, (high - upper) * tall, (high - lower) * tall) for x, lower, upper in curve]
            parts += [label_placement.LabelBox(a[0], min(a[1], b[1]), b[0], max(a[2], b[2])) for a, b in pairwise(points)]
        for label, at in self._labels:
            x_left, middle, size = (at.x - first) * wide, (high - at.y) * tall, label.boundingRect()
            parts.append(
                label_placement.LabelBox(x_left, middle - size.height() / 2, x_left + size.width(), middle + size.height() / 2)
            )
        room = label_placement.LabelBox(
            0, 0, (self._ends[1] - first) * wide, (high - self._top * 0.06) * tall - self.theme.px(APART) / 2
        )
        lines = [((mark.x - first) * wide, note.boundingRect().width() + 2 * ASIDE) for note, mark in self._notes]
        places = label_placement.place_labels(lines, room, self.theme.px(APART), parts)
        for (note, _), place in zip(self._notes, places, strict=True):
            note.setVisible(place is not None)
            if place is not None:
                note.setPos(first + (place.left + ASIDE) / wide, high - (place.top + place.bottom) / 2 / tall)

    def draw_interval(self, x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> None:
        self._intervals.append(list(zip(x, low, high, strict=True)))
        faint = self.theme.colour("accent_line")
        if len(x) == 1:  # a band of one point has no width
            faint.setAlphaF(0.4)
            self.draw_curve([x[0], x[0]], [low[0], high[0]], self.pen(faint, width=3))
            return
        faint.setAlphaF(0.16)
        clear = pyqtgraph.mkPen(0, 0, 0, 0)
        edges = [self.draw_curve(x, edge, clear) for edge in (low, high)]
        self.addItem(pyqtgraph.FillBetweenItem(*edges, brush=faint))

    def draw_faint_curve(self, x: Sequence[float], y: Sequence[float]) -> None:
        ink = self.theme.colour("accent_line")
        ink.setAlphaF(0.28)
        self.draw_curve(x, y, self.pen(ink))
