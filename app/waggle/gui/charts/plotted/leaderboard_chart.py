"""Chart of one model on the leaderboard: with peers and alone, each point with its 95% interval."""

from collections.abc import Sequence

from PySide6.QtCore import Qt

from waggle.core.confidence_interval import interval_of
from waggle.gui.charts.plotted.chart import EndLabel, LineChart
from waggle.gui.i18n.formatting import percent, tr
from waggle.gui.theme.theme import Theme
from waggle.protocol.events_leaderboard import ScoreCurve


class LeaderboardChart(LineChart):
    """Blue: trained with peers; grey and dashed: the reference, trained alone."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, tr("Right answers with peers and alone, by rounds"), shows_axis=True)
        self._curves: Sequence[ScoreCurve] = ()
        self._drawn_at = 0  # width in pixels
        self.getViewBox().sigResized.connect(self._redraw_for_width)

    def _redraw_for_width(self, *_resized: object) -> None:
        """Draw again: the labels need another share of the new width."""
        if self._curves and self.width() != self._drawn_at:
            self.show_curves(self._curves)

    def show_curves(self, curves: Sequence[ScoreCurve]) -> None:
        self._curves, self._drawn_at = curves, self.width()
        points = [point for curve in curves for point in curve.points]
        spans = {point: interval_of(point.right, point.total) for point in points}
        last = float(max(1, *(point.round for point in points)))
        self.begin(max(0.1, *(high for _, high in spans.values())), shares=True, x=(0.0, last), axis="round")
        for curve in curves:
            role, ink = ("peer", "peer") if curve.together else ("reference", "text_soft")
            x = [float(point.round) for point in curve.points]
            y = [point.right / max(1, point.total) for point in curve.points]
            self.draw_whiskers(x, [spans[point] for point in curve.points], role)
            style = Qt.PenStyle.SolidLine if curve.together else Qt.PenStyle.DashLine
            self.draw_line(x, y, role, style, width=2.4, dots=True)
            name = tr("With peers") if curve.together else tr("Alone")
            self.draw_label(EndLabel(x[-1], y[-1], f"  {name}  {percent(y[-1])}", ink))
        self.spread_labels()

    def draw_whiskers(self, x: Sequence[float], spans: Sequence[tuple[float, float]], role: str) -> None:
        """A vertical line at each place, for its interval."""
        faint = self.theme.colour(role)
        faint.setAlphaF(0.5)
        places = [place for place in x for _ in range(2)]
        ends = [end for span in spans for end in span]
        self.draw_curve(places, ends, self.pen(faint), connect="pairs")
