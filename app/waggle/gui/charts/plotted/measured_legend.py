"""The legend of the curves that were measured elsewhere: what each line is, and how much stands behind it."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QWidget

from waggle.gui.i18n.formatting import tr
from waggle.gui.state.measured_curves import MeasuredCurves
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import row
from waggle.gui.widgets.painted_widgets import PaintedWidget
from waggle.gui.widgets.text import ElidedLabel, set_tip, text

ALONE, WITH_PEERS = ("text_faint", Qt.PenStyle.DotLine), ("peer", Qt.PenStyle.DashLine)  # the colour and style of each line
WIDTH, ALPHA = 1.6, 0.7  # fainter than the person's own curve
SAMPLE = 26  # pixels


def measured_pen(theme: Theme, line: tuple[str, Qt.PenStyle]) -> tuple[QColor, float, Qt.PenStyle]:
    """The colour, width and style of one of the lines."""
    role, style = line
    colour = theme.colour(role)
    colour.setAlphaF(ALPHA)
    return colour, WIDTH, style


class LineSample(PaintedWidget):
    """A piece of one of the lines."""

    def __init__(self, theme: Theme, line: tuple[str, Qt.PenStyle]) -> None:
        super().__init__(theme)
        self._line = line
        self.setFixedSize(theme.px(SAMPLE), theme.px(12))

    def draw(self, painter: QPainter, place: QRectF) -> None:
        painter.setPen(QPen(*measured_pen(self.theme, self._line)))
        middle = place.center().y()
        painter.drawLine(QPointF(place.left(), middle), QPointF(place.right(), middle))


class MeasuredLegend(QWidget):
    """Hidden while no such curves are shown."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._alone, self._with_peers = (ElidedLabel(theme, role="caption", tone="text_soft") for _ in range(2))
        self.setLayout(
            row(
                text(theme, tr("Measured elsewhere"), "caption", "faint"), 6, LineSample(theme, ALONE), self._alone, 6,
                LineSample(theme, WITH_PEERS), (self._with_peers, 1), gap=6,
            )
        )  # fmt: skip
        self.hide()

    def show_curves(self, curves: MeasuredCurves | None) -> None:
        self.setVisible(curves is not None)
        if curves is None:
            return
        self._alone.say(tr("%1, alone").replace("%1", tr(curves.source)))
        self._with_peers.say(tr("with %1 peers").replace("%1", str(curves.peers)))
        about = tr("Means of %1 runs alone and of %2 swarms on the same specialties. Your own run may differ.")
        set_tip(self, about.replace("%1", str(curves.runs)).replace("%2", str(curves.swarms)))
