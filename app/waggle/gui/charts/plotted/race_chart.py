"""The two curves of a race. Imports pyqtgraph, so load it only when the first race begins."""

import math

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetricsF

from waggle.gui.charts.plotted.chart import LABEL_ROOM, EndLabel, LineChart
from waggle.gui.i18n.formatting import tr
from waggle.gui.state.race_state import Race, recent_scores
from waggle.gui.theme.theme import Theme
from waggle.protocol.events_race import Lane

LOWEST_TOP = 0.1
SKETCHED = 60  # steps of a curve that is only a sketch
BESIDE = 12  # pixels around the label of a line


class RaceChart(LineChart):
    """Right answers by round; the axis has the length of the whole race from the start."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, tr("Right answers by round, sharing and alone"), shows_axis=True)

    def sizeHint(self) -> QSize:
        """The least size: a scrolling page asks for it, and gives the chart the space that remains."""
        return QSize(self.theme.px(320), self.theme.px(220))

    def show_race(self, race: Race) -> None:
        alone, sharing = race.alone.trend, race.sharing.trend
        names = _end_name(tr("Sharing"), race, "sharing"), _end_name(tr("Alone"), race, "alone")
        widest = max(map(QFontMetricsF(self.theme.font("tag")).horizontalAdvance, names))
        self.room_for_labels = max(LABEL_ROOM, (widest + BESIDE) / self.theme.px(100) * 100)
        self.begin(max([LOWEST_TOP, *alone, *sharing]), shares=True, x=(1.0, float(race.rounds)), axis="round")
        if not race.rounds_played:
            self._sketch(race)
            return
        x = [float(number) for number in range(1, race.rounds_played + 1)]
        self.draw_line(x, alone, "reference", Qt.PenStyle.DotLine, width=2.2, dots=False)
        self.draw_line(x, sharing, "peer", Qt.PenStyle.SolidLine, width=2.6, dots=False)
        self.draw_label(EndLabel(x[-1], sharing[-1], names[0], "peer"))
        self.draw_label(EndLabel(x[-1], alone[-1], names[1], "text_soft"))
        self.spread_labels()

    def _sketch(self, race: Race) -> None:
        """Before the first round: two pale curves without figures, which favour neither swarm, where the real ones will be."""
        self.getPlotItem().clear()
        self._ticks, self._places = [], []
        self._fit()
        x = [1 + (race.rounds - 1) * place / SKETCHED for place in range(SKETCHED + 1)]
        for turn, style in ((1, Qt.PenStyle.SolidLine), (-1, Qt.PenStyle.DotLine)):
            y = [_sketched(place / SKETCHED, turn) for place in range(SKETCHED + 1)]
            self.draw_curve(x, y, self.pen(self.theme.colour("grid"), 2.4, style))
        self._add_note((1 + race.rounds) / 2, LOWEST_TOP * 0.35, tr("Both curves appear here"), "text_soft", centred=True)


def _sketched(part: float, turn: int) -> float:
    """A height that grows; with the opposite `turn`, it is the other one of two that cross in the middle."""
    return LOWEST_TOP * (0.95 - 0.8 * math.exp(-2.5 * part) + 0.05 * turn * math.sin(2 * math.pi * part))


def _end_name(name: str, race: Race, lane: Lane) -> str:
    """What stands at the end of a line: with its share, until the test of both swarms has said another one."""
    return f"  {name}" if race.exam else f"  {name}  {recent_scores(race)[lane]}"
