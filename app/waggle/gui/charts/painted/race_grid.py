"""First successes in a race: a numbered row for each copy, a cell for each specialty; what is learned moves between rows."""

import math
import time
from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QHideEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy

from waggle.gui.charts.painted.painted_chart import PaintedChart
from waggle.gui.i18n.formatting import tr, visible
from waggle.gui.state.race_state import Race, solved_words
from waggle.gui.theme.theme import Theme, tokens
from waggle.gui.widgets.drawing import hexagon
from waggle.protocol.events_race import Lane

ROW, CELL, FIRST = 19, 9.0, 34.0  # pixels: a row at least, the radius of a cell, its first place
UNKNOWN = Race(racers=4, specialties=("",) * 9)  # until a race has said how many copies and which specialties there are
FRAME_MS = 16
TOGETHER = 3  # cells that move at once at most: more than these come where the window catches up


class RaceGrid(PaintedChart):
    """Empty: not solved yet; honey: solved alone; blue: solved after learning from a node that had."""

    def __init__(self, theme: Theme, lane: Lane, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(theme)
        self._lane: Lane = lane
        self._race, self._clock = UNKNOWN, clock
        self._jumps: dict[tuple[int, int], float] = {}  # moving cells, and when each began
        self.frames = QTimer(self)
        self.frames.setInterval(FRAME_MS)
        self.frames.timeout.connect(self._frame)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self.show_race(Race())

    def show_race(self, race: Race) -> None:
        before, self._race = self._race, race if race.racers else UNKNOWN
        race = self._race
        run, old = race.progress_of(self._lane), before.progress_of(self._lane)
        if race.racers != before.racers:
            self.updateGeometry()
            self._jumps.clear()
        if run.solved != old.solved or race.racers != before.racers:
            if self.theme.moves and self.isVisible():
                fresh = [cell for cell, teacher in run.solved.items() if teacher is not None and cell not in old.solved]
                if len(self._jumps) + len(fresh) <= TOGETHER:
                    self._jumps |= dict.fromkeys(fresh, self._clock())
            if race.phase in ("stopped", "failed"):
                self._jumps.clear()  # all stands where it stopped
            if self._jumps:
                self.frames.start()
            self.update()
        self.setAccessibleName(solved_words(race, self._lane) if race is not UNKNOWN else tr("No race yet"))

    def sizeHint(self) -> QSize:
        return QSize(round(FIRST + 9 * 2 * CELL * 1.1), ROW * max(4, self._race.racers))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _row(self) -> float:
        """The height of a row in pixels."""
        return self.height() / max(4, self._race.racers)

    def _step(self) -> float:
        """The pixels from one cell to the next."""
        return min(self._row(), (self.width() - FIRST - CELL) / max(1, len(self._race.specialties)))

    def _place(self, racer: int, specialty: int) -> QPointF:
        x = FIRST + CELL + self._step() * specialty
        if self.layoutDirection() == Qt.LayoutDirection.RightToLeft:
            x = self.width() - x
        return QPointF(x, self._row() * (racer + 0.5))

    def _frame(self) -> None:
        ended = self._clock() - tokens().duration["flow"] / 1000
        self._jumps = {cell: begun for cell, begun in self._jumps.items() if begun > ended}
        if not self._jumps:
            self.frames.stop()
        self.update()

    def hideEvent(self, event: QHideEvent) -> None:
        self._jumps.clear()
        self.frames.stop()
        super().hideEvent(event)

    def draw(self, painter: QPainter, place: QRectF) -> None:
        solved = self._race.progress_of(self._lane).solved
        away = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        painter.setFont(self.theme.font("caption"))
        for racer in range(self._race.racers):
            painter.setPen(self.theme.colour("text_faint"))
            number = QRectF(self.width() - 24 if away else 0, self._row() * racer, 24, self._row())
            painter.drawText(number, Qt.AlignmentFlag.AlignCenter, str(racer + 1))
            for specialty in range(len(self._race.specialties)):
                cell = (racer, specialty)
                there = cell in solved and cell not in self._jumps
                self._cell(painter, self._place(*cell), learned=solved.get(cell) is not None, filled=there)
        now, span = self._clock(), tokens().duration["flow"] / 1000
        for (racer, specialty), begun in self._jumps.items():
            teacher = solved[racer, specialty]
            if teacher is None:
                continue
            share = (1 - math.cos(math.pi * min(1.0, (now - begun) / span))) / 2
            start, end = self._place(teacher, specialty), self._place(racer, specialty)
            bow = QPointF(14 * math.sin(math.pi * share), 0)
            self._cell(painter, start + (end - start) * share + bow, learned=True, filled=True)

    def _cell(self, painter: QPainter, place: QPointF, *, learned: bool, filled: bool) -> None:
        edge = ("peer" if learned else "accent_line") if filled else "control" if self._race is not UNKNOWN else "border"
        painter.setPen(QPen(self.theme.colour(edge), 1.3))
        painter.setBrush(self.theme.colour(("peer" if learned else "accent") if filled else "surface"))
        painter.drawPolygon(hexagon(place.x(), place.y(), min(self._step() * 0.42, self._row() * 0.42)))

    def cell_words(self, racer: int, specialty: int) -> str:
        """The tooltip of a cell; empty before a race."""
        race = self._race
        if race is UNKNOWN:
            return ""
        solved = race.progress_of(self._lane).solved
        words = f"{tr('Copy %1').replace('%1', str(racer + 1))}, {tr(visible(race.specialties[specialty]))}: "
        if (racer, specialty) not in solved:
            return words + tr("not solved yet")
        teacher = solved[racer, specialty]
        if teacher is None:
            return words + tr("found by itself")
        return words + tr("learned from copy %1").replace("%1", str(teacher + 1))

    def words_at(self, point: QPointF) -> str:
        for racer in range(self._race.racers):
            for specialty in range(len(self._race.specialties)):
                away = self._place(racer, specialty) - point
                if math.hypot(away.x(), away.y()) < CELL:
                    return self.cell_words(racer, specialty)
        return ""
