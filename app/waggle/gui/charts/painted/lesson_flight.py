"""A lesson as it happens: right answers fly to the model as honey cells, examples of peers as blue ones, and it glows."""

import math
import time
from collections.abc import Callable, Sequence

import msgspec
from PySide6.QtCore import QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import QColor, QHideEvent, QPainter, QPen
from PySide6.QtWidgets import QWidget

from waggle.gui.theme.theme import Theme, tokens
from waggle.gui.widgets.drawing import hexagon
from waggle.gui.widgets.painted_widgets import PaintedWidget

FRAME_MS = 16
CELL, BOW, GLOW = 8.0, 40.0, 22.0  # pixels: a cell, how far its path bends, and how far the glow reaches
LANDED = 0.7  # the share of the time after which all cells have arrived, and it glows


class Flight(msgspec.Struct, frozen=True):
    """The path of a cell, in pixels of the widget below; `role` is its colour."""

    start: QPointF
    end: QPointF
    role: str


class LessonFlight(PaintedWidget):
    """Lies over a widget, takes no events, and is there only while something flies. With less motion nothing does."""

    def __init__(self, theme: Theme, below: QWidget, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(theme)
        self.setParent(below)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._clock, self._begun = clock, 0.0
        self._measure: Callable[[], Sequence[Flight]] = tuple
        self._flights: Sequence[Flight] = ()
        self._frames = QTimer(self)
        self._frames.setInterval(FRAME_MS)
        self._frames.timeout.connect(self._advance)
        self.hide()

    def fly(self, measure: Callable[[], Sequence[Flight]]) -> None:
        """Show the flights that `measure` returns for each frame: the layout may still move what they are between."""
        self._measure, self._begun = measure, self._clock()
        if not (self.theme.moves and self._place()):
            return
        self.raise_()
        self.show()
        self._frames.start()

    def _place(self) -> bool:
        """Measure the flights again; False if there are none to be seen."""
        below = self.parentWidget()
        assert below is not None
        self.setGeometry(below.rect())
        self._flights = self._measure()
        return below.isVisible() and bool(self._flights)

    def _share(self) -> float:
        """How much of the time is over."""
        return (self._clock() - self._begun) * 1000 / max(1, tokens().duration["flow"])

    def _advance(self) -> None:
        if self._share() >= 1 or not self._place():
            self.hide()
        self.update()

    def hideEvent(self, event: QHideEvent) -> None:
        self._frames.stop()
        self.hide()  # also if the page was hidden: nothing flies when it is shown again
        super().hideEvent(event)

    def draw(self, painter: QPainter, place: QRectF) -> None:
        share = self._share()
        for number, flight in enumerate(self._flights):
            late = 0.2 * number / len(self._flights)  # one after the other
            part = min(1.0, max(0.0, (share - late) / (LANDED - 0.2)))
            if 0 < part < 1:
                self._draw_cell(painter, flight, (1 - math.cos(math.pi * part)) / 2)
        for end, role in {(flight.end.toTuple(), flight.role) for flight in self._flights}:
            self._draw_glow(painter, QPointF(*end), role, (share - LANDED) / (1 - LANDED))

    def _draw_cell(self, painter: QPainter, flight: Flight, part: float) -> None:
        bow = QPointF(BOW * math.sin(math.pi * part), 0)
        at = flight.start + (flight.end - flight.start) * part + bow
        painter.setPen(QPen(self.theme.colour("surface"), 1.5))
        painter.setBrush(self.theme.colour(flight.role))
        painter.drawPolygon(hexagon(at.x(), at.y(), CELL))

    def _draw_glow(self, painter: QPainter, at: QPointF, role: str, part: float) -> None:
        if 0 < part < 1:
            glow = QColor(self.theme.colour(role))
            glow.setAlphaF(0.35 * (1 - part))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(glow)
            painter.drawPolygon(hexagon(at.x(), at.y(), CELL + GLOW * part))
