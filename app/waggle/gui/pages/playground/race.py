"""The race: two practice swarms on this computer, one sharing and one not, shown while they run."""

from typing import TYPE_CHECKING

from msgspec.structs import replace
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPen, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QWidget

from waggle.gui.charts.painted.race_grid import ROW, UNKNOWN, RaceGrid
from waggle.gui.engine_client.race_process import RaceProcess
from waggle.gui.i18n.formatting import figure, plural, tr
from waggle.gui.state.race_state import Race, detail, exam_scores, fold, headline, recent_scores, solved_words, transfer_words
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import StretchRow
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.drawing import hexagon
from waggle.gui.widgets.layout import UNLIMITED, WIDE, as_widget, card, column, restyle, row
from waggle.gui.widgets.painted_widgets import Chip, PaintedWidget
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.events_race import Lane, RaceEvent

if TYPE_CHECKING:
    from waggle.gui.charts.plotted.race_chart import RaceChart


class HexagonKey(PaintedWidget):
    """A sample cell for the legend."""

    def __init__(self, theme: Theme, fill: str, edge: str) -> None:
        super().__init__(theme, QSize(14, 14))
        self._fill, self._edge = fill, edge

    def draw(self, painter: QPainter, place: QRectF) -> None:
        painter.setPen(QPen(self.theme.colour(self._edge), 1.2))
        painter.setBrush(self.theme.colour(self._fill))
        painter.drawPolygon(hexagon(place.center().x(), place.center().y(), 5.5))


HIGHEST, WIDE_HIGHEST = 0.55, 0.45  # height of curves and lanes as a share of the page's width, and where the page is wide
LARGE = 1000  # pixels of width from which these hold
MOST_ROW, WIDE_ROW = 40, 66  # pixels: a row of cells at most, and where the page is wide
SOLID, DOTTED = Qt.PenStyle.SolidLine, Qt.PenStyle.DotLine


class LegendLine(PaintedWidget):
    """A sample of a curve for the legend."""

    def __init__(self, theme: Theme, role: str, style: Qt.PenStyle) -> None:
        super().__init__(theme, QSize(22, 14))
        self._role, self._style = role, style

    def draw(self, painter: QPainter, place: QRectF) -> None:
        painter.setPen(QPen(self.theme.colour(self._role), 2.5, self._style))
        middle = round(place.center().y())
        painter.drawLine(0, middle, self.width(), middle)


class LaneBox(QWidget):
    """One swarm: its recent share of right answers, and which member solved which specialty."""

    def __init__(self, theme: Theme, lane: Lane, name: str, key: LegendLine) -> None:
        super().__init__()
        self._lane: Lane = lane
        self._row = MOST_ROW
        self._figure, self._solved = text(theme, "", "title"), ElidedLabel(theme, "", "caption", "text_faint")
        self.comb = RaceGrid(theme, lane)
        self._about = ElidedLabel(theme, "", "caption", "text_faint")
        head = row(key, text(theme, name, "heading"), (self._about, 1), self._figure, gap=8)
        self.setLayout(column(head, (self.comb, 1), self._solved, gap=4))

    def show_race(self, race: Race) -> None:
        exam = race.exam
        recent = recent_scores(race)[self._lane] if race.rounds_played else ""
        self._figure.setText(exam_scores(exam)[self._lane] if exam else recent)
        self._about.say(tr("on new questions") if exam else when_right(race) if recent else "")
        self._solved.say(solved_words(race, self._lane) if race.racers else "")
        self.comb.show_race(race)
        self.limit(self._row)

    def limit(self, row: int) -> None:
        """Let a row of cells have so many pixels of height at most; the rest stays free below."""
        self._row, least = row, self.comb.sizeHint().height()
        self.setMaximumHeight(self.sizeHint().height() + least * row // ROW - least)


def when_right(race: Race) -> str:
    """Of which rounds the share of right answers is."""
    return tr("right when it stopped") if race.phase in ("stopped", "failed") else tr("recently right")


class RaceView(QWidget):
    """Runs one race at a time, in a process that goes on while other pages are shown. `ended` carries how it ended."""

    ended = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self.race = theme, Race()
        self._follow(RaceProcess(self))
        self._says, self._more = text(theme, "", "title", wrap=True), text(theme, "", "small", "soft", wrap=True)
        self._more.setMinimumWidth(min(420, theme.px(420)))  # else a scroll area computes a tall, narrow column
        self.button = Button(theme, tr("Start the race"), "primary", "play")
        self.button.clicked.connect(self._start_or_stop)
        self._stopped = Chip(theme, tr("Stopped"), "plain", "warn")
        self._stopped.hide()
        says = as_widget(column(row(self._stopped, None), self._says, self._more, gap=4))
        button = as_widget(column(self.button, None))
        self._top = card(StretchRow((says, 1), (button, 0), gap=24))
        self._chart: RaceChart | None = None
        self._room = column()
        self._jump = ElidedLabel(theme, "", "small", "text_soft")
        curve = text(theme, tr("Right answers while training"), "heading")
        self._about = ElidedLabel(theme, "", "caption", "text_faint")
        self._curves = card(row(curve, (self._about, 1)), (self._room, 1), self._jump, gap=6)
        self._lanes: dict[Lane, LaneBox] = {
            "sharing": LaneBox(theme, "sharing", tr("Sharing"), LegendLine(theme, "peer", SOLID)),
            "alone": LaneBox(theme, "alone", tr("Alone"), LegendLine(theme, "reference", DOTTED)),
        }
        own_find = row(HexagonKey(theme, "accent", "accent_line"), text(theme, tr("found by itself"), "caption", "soft"), gap=4)
        passed = row(HexagonKey(theme, "peer", "peer"), text(theme, tr("after learning from another"), "caption", "soft"), gap=4)
        self._cells = text(theme, "", "caption", "soft", wrap=True)
        key = column(row(own_find, passed, None, gap=12), self._cells, gap=3)
        self._side: QFrame = card((self._lanes["sharing"], 100), None, (self._lanes["alone"], 100), None, key, gap=12)
        self._arena = StretchRow((self._curves, 2), (self._side, 1), gap=12)
        self.setLayout(column(self._top, (self._arena, 100), None, gap=12))
        theme.changed.connect(self._draw)
        self._draw()

    def arrange(self, gap: int) -> None:
        self._arena.set_gap(gap)

    def take(self, line: RaceEvent) -> None:
        """Fold one message of the race's process into the view."""
        self.race = fold(self.race, line)
        self._draw()

    def _follow(self, process: RaceProcess) -> None:
        self.process = process
        process.message_received.connect(self.take)
        process.ended.connect(self._show_end)

    def take_over(self, before: "RaceView") -> None:
        """Take over the last race; a running one goes on here."""
        self.race = before.race
        if before.process.is_running:
            before.process.live_with(self)
            self._follow(before.process)
        self._draw()

    def start(self, *options: str) -> None:
        self.race = Race(phase="preparing")
        self._draw()
        self.process.start(*options)

    def stop(self) -> None:
        self.process.stop()
        if self.race.phase in ("preparing", "running"):
            self.race = replace(self.race, phase="stopped")
            self._draw()

    def _start_or_stop(self) -> None:
        if self.race.phase in ("preparing", "running"):
            self.stop()
        else:
            self.start()

    def _show_end(self, why: str) -> None:
        if self.race.phase != "failed" and (why or self.race.phase != "ended"):  # a failed one has said why
            self.race = replace(self.race, phase="failed", problem=why)
            self._draw()
        words = tr("Does sharing help? %1").replace("%1", headline(self.race))
        self.ended.emit(words)

    def _draw(self) -> None:
        race = self.race
        self._says.setText(headline(race))
        self._more.setText(detail(race))
        self._stopped.setVisible(race.phase == "failed")
        busy = race.phase in ("preparing", "running")
        words = tr("Stop") if busy else tr("Start the race") if race.phase == "idle" else tr("Race again")
        unexplained = race.phase == "failed" and not race.failure  # the next one may fail like it
        kind = "plain" if busy or unexplained else "primary"
        restyle(self.button, "kind", kind)
        self.button.change_to(kind, words, "cross" if busy else "play")
        self._jump.say(transfer_words(race))
        stopped = race.phase in ("stopped", "failed") and race.rounds_played
        ends = tr("as a trend, stopped after round %1") if stopped else tr("as a trend")
        if race.exam:
            ends = tr("as a trend; the result is from new questions")
        self._about.say(ends.replace("%1", figure(race.rounds_played)))
        specialties = len(race.specialties or UNKNOWN.specialties)
        self._cells.setText(plural(specialties, "One hexagon for %n specialty", "One hexagon for each of %n specialties"))
        for box in self._lanes.values():
            box.show_race(race)
        if self._chart is not None:
            self._chart.show_race(race)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._chart is None:
            from waggle.gui.charts.plotted.race_chart import RaceChart  # pyqtgraph: only now

            self._chart = RaceChart(self._theme)
            self._room.addWidget(self._chart)
            self._chart.show_race(self.race)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the curves wider than high on a large screen."""
        super().resizeEvent(event)
        wide = event.size().width()
        is_wide = wide >= self._theme.px(WIDE)
        for box in self._lanes.values():
            box.limit(WIDE_ROW if is_wide else MOST_ROW)
        highest = WIDE_HIGHEST if is_wide else HIGHEST
        self._arena.setMaximumHeight(round(wide * highest) if wide > self._theme.px(LARGE) else UNLIMITED)
