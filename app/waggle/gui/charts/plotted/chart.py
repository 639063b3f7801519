"""A line chart with grid, axes and labels at the ends of its lines. Imports pyqtgraph, so load it only when a chart is shown."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pyqtgraph
from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPen

from waggle.gui.charts.plotted.axis import Tick, axis_ticks, label_stride
from waggle.gui.i18n.formatting import decimal, percent
from waggle.gui.state import chart_series
from waggle.gui.state.chart_series import Axis
from waggle.gui.theme.theme import Theme

LABEL_ROOM = 96  # pixels right of the last point, for the labels; this and the next are before text scaling
APART = 17  # pixels between two labels
AXIS_WIDTH, BELOW, LOWEST = 44, 26, 90  # pixels for the words of both axes, and the least height of a chart
ABOVE_LINES = 1  # z value


class EndLabel(msgspec.Struct, frozen=True):
    """A name at the end of a line, in the coordinates of the data; `role` is a colour of the theme."""

    x: float
    y: float
    words: str
    role: str


class LineChart(pyqtgraph.PlotWidget):  # type: ignore[misc]
    """One plot in the colours of the theme: `begin` clears it, then lines and labels are added."""

    room_for_labels = float(LABEL_ROOM)

    def __init__(self, theme: Theme, name: str, *, shows_axis: bool) -> None:
        pyqtgraph.setConfigOptions(antialias=True)
        super().__init__()
        self.theme = theme
        self.getPlotItem().setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # time runs left to right in every language
        self._name, self.is_empty = name, True  # until something was drawn
        self.setAccessibleName(name)
        for part in (self, self.viewport()):  # nothing in a chart can be selected
            part.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setMenuEnabled(False)
        self.setMouseEnabled(False, False)
        self.hideButtons()
        self._shows_axis = shows_axis
        self._labels: list[tuple[pyqtgraph.TextItem, EndLabel]] = []
        self._top, self._ends, self._label_room = 1.0, (0.0, 1.0), self.room_for_labels
        self._ticks: list[Tick] = []  # of the vertical axis
        self._places: list[Tick] = []  # of the horizontal axis
        self._ratio = self.devicePixelRatioF()
        self.setMinimumHeight(theme.px(LOWEST))
        self.getPlotItem().setContentsMargins(0, 4, 0, 0)
        self.getViewBox().sigResized.connect(self._fit)
        self.getAxis("left").setWidth(theme.px(AXIS_WIDTH))
        self.getAxis("bottom").setHeight(theme.px(BELOW) if shows_axis else theme.px(6))

    def sizeHint(self) -> QSize:
        """The least size. By default it is the size of what was last painted, and a page could grow but never shrink."""
        return QSize(self.minimumWidth(), self.minimumHeight())

    def begin(self, top: float, *, shares: bool, x: tuple[float, float], axis: Axis, labelled: bool = True) -> None:
        """Clear, and draw background, grid and axes.

        `top`: the highest value; `shares`: values are shares, shown in percent; `x`: both ends of what is shown of the data;
        `labelled`: the lines end there, so there must be room for their labels.
        """
        plot, self.is_empty = self.getPlotItem(), False
        plot.clear()
        self._labels = []
        self.setBackground(self.theme.colour("surface"))
        ticks = chart_series.value_ticks(top)
        self._top, self._ends, self._label_room = ticks[-1], x, self.room_for_labels if labelled else 0
        digits = 1 if round(ticks[1], 1) == round(ticks[1], 2) else 2
        self._ticks = [(t, percent(t) if shares else decimal(t, digits)) for t in ticks]
        self._places = axis_ticks(axis, x) if self._shows_axis else []
        self._fit()
        plot.setYRange(-self._top * 0.04, self._top * 1.05, padding=0)
        for name in ("left", "bottom"):
            self._dress_axis(self.getAxis(name))
        grid = [float(tick) for tick in ticks for _ in range(2)]
        across = [2 * x[0] - x[1], 2 * x[1] - x[0]]  # beyond both ends, however wide the chart becomes
        self.draw_curve(across * len(ticks), grid, self.pen(self.theme.colour("grid")), connect="pairs")

    def pen(self, ink: QColor, width: float = 1, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
        """A pen with a width in logical pixels: pyqtgraph's cosmetic pens count device pixels."""
        pen = QPen(ink, width * self._ratio, style)
        pen.setCosmetic(True)
        return pen

    def event(self, event: QEvent) -> bool:
        """Keep the logical width of all lines when the window moves to a screen of another density."""
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            wider, self._ratio = self.devicePixelRatioF() / self._ratio, self.devicePixelRatioF()
            for line in self.scene().items():
                if isinstance(line, pyqtgraph.PlotCurveItem | pyqtgraph.InfiniteLine):
                    pen = QPen(line.opts["pen"] if isinstance(line, pyqtgraph.PlotCurveItem) else line.pen)
                    pen.setWidthF(pen.widthF() * wider)
                    line.setPen(pen)
        return bool(super().event(event))

    def _fit(self, *_resized: object) -> None:
        """Set the range (the data, and room for the labels right of it) and as many ticks on both axes as fit."""
        first, last = self._ends
        width = max(last - first, 1e-9)
        words = self.theme.px(self._label_room)
        room = width * words / max(200, self.width() - self.theme.px(AXIS_WIDTH) - words)
        self.getPlotItem().setXRange(first - width * 0.008, last + room, padding=0)
        high = self.getViewBox().height()
        every = math.ceil(len(self._ticks) * self.theme.px(APART) / high) if high > 0 else 1
        self.getAxis("left").setTicks([self._ticks[:: max(1, every)]])
        pixel = (width * 1.008 + room) / max(1.0, self.getViewBox().width())
        metrics = QFontMetricsF(self.theme.font("caption"))
        wide = [metrics.horizontalAdvance(f" {tick_words} ") * pixel for _, tick_words in self._places]
        self.getAxis("bottom").setTicks([self._places[:: label_stride([at for at, _ in self._places], wide)]])
        self.spread_labels()

    def draw_curve(self, x: Sequence[float], y: Sequence[float], pen: object, connect: str = "all") -> pyqtgraph.PlotCurveItem:
        """Add a line only: pyqtgraph's `plot` would add a scatter item, and update the view three times."""
        item = pyqtgraph.PlotCurveItem(np.array(x, float), np.array(y, float), pen=pen, connect=connect)
        self.addItem(item)
        return item

    def _dress_axis(self, axis: pyqtgraph.AxisItem) -> None:
        ground = pyqtgraph.mkPen(self.theme.colour("surface"))
        axis.setPen(ground)
        axis.setTickPen(ground)
        axis.setTextPen(self.theme.colour("text_faint"))
        axis.setTickFont(self.theme.font("caption"))
        axis.setStyle(tickLength=0, tickTextOffset=8)

    def draw_line(
        self, x: Sequence[float], y: Sequence[float], role: str, style: Qt.PenStyle, *, width: float, dots: bool
    ) -> None:
        self.draw_curve(x, y, self.pen(self.theme.colour(role), width, style))
        dots_at = (list(x), list(y)) if dots else ([x[-1]], [y[-1]])
        scatter = pyqtgraph.ScatterPlotItem(*dots_at, size=8, pen=None, brush=self.theme.colour(role))
        scatter.setZValue(ABOVE_LINES + 1)  # above the background of the label, which begins at the middle of the dot
        self.addItem(scatter)

    def draw_label(self, label: EndLabel) -> None:
        note = self._add_note(label.x, label.y, label.words, label.role)
        self._give_background(note)
        self._labels.append((note, label))

    def _add_note(self, x: float, y: float, words: str, role: str, *, centred: bool = False) -> pyqtgraph.TextItem:
        note = pyqtgraph.TextItem(words, color=self.theme.colour(role), anchor=(0.5 if centred else 0, 0.5))
        note.setFont(self.theme.font("tag"))
        option = note.textItem.document().defaultTextOption()
        option.setTextDirection(Qt.LayoutDirection.LeftToRight)  # its leading spaces keep it away from the line
        note.textItem.document().setDefaultTextOption(option)
        note.setPos(x, y)
        self.addItem(note)
        return note

    def _give_background(self, note: pyqtgraph.TextItem) -> None:
        """Give a note a background, so that grid and lines pass behind its words."""
        note.fill = pyqtgraph.mkBrush(self.theme.colour("surface"))
        note.textItem.document().setDocumentMargin(1)
        note.updateTextPos()  # else it stays centred for the former, larger margin until it is moved
        note.setZValue(ABOVE_LINES)

    def spread_labels(self, *_resized: object) -> None:
        """Keep two labels apart: move the upper one up, and the lower one down as far as there is room."""
        if len(self._labels) != 2:
            return
        (below, low), (above, high) = sorted(self._labels, key=lambda entry: entry[1].y)
        apart = self.theme.px(APART) * self._top * 1.09 / max(1.0, self.getViewBox().height())
        near = max(0.0, apart - (high.y - low.y))
        lowest = max(low.y - near / 2, apart / 2 - self._top * 0.04) if near else low.y
        below.setPos(low.x, lowest)
        above.setPos(high.x, max(high.y + near / 2, lowest + apart) if near else high.y)
