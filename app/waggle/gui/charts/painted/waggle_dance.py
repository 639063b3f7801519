"""The picture of set-up and start: a bee's waggle dance on the comb."""

import math

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen

from waggle.gui.i18n.formatting import tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import draw_avatar, hexagon
from waggle.gui.widgets.painted_widgets import PaintedWidget

CELL, LOOP = 44.0, 112.0
ABOVE = 190  # pixels from the middle of the dance to the upper edge at least: the watchers need them
HONEY = {
    (0, 0): 0.85, (-1, 0): 0.40, (1, -1): 0.40, (0, -1): 0.26, (-1, 1): 0.26, (2, -2): 0.20, (-2, 2): 0.14, (1, 0): 0.16,
    (0, 2): 0.12,
}  # fmt: skip
WATCHERS = (("Brisk Otter", -142, -12, 22), ("Clever Wren", 142, 8, 22), ("Mossy Badger", 106, -148, 18),
            ("Tall Juniper", -112, -160, 18))  # fmt: skip


class WaggleDance(PaintedWidget):
    """The dancing bee, its path, and four bees that watch."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, name=tr("A bee's dance on the comb, watched by four others"))

    def draw(self, painter: QPainter, place: QRectF) -> None:
        shape = QPainterPath()
        shape.addRoundedRect(place, 8, 8)
        painter.fillPath(shape, self.theme.colour("accent_soft"))
        painter.setClipPath(shape)
        self._comb(painter, place.center())
        top = QPointF(place.center().x(), max(place.center().y() - 40, place.top() + ABOVE))
        self._run(painter, top)
        self._bee(painter, "Amber Finch", top.x(), top.y() - LOOP, 30, mine=True)
        for name, x, y, radius in WATCHERS:
            self._bee(painter, name, top.x() + x, top.y() + y, radius)

    def _comb(self, painter: QPainter, middle: QPointF) -> None:
        edge, fill = self.theme.colour("accent_line"), self.theme.colour("accent")
        edge.setAlphaF(0.20)
        painter.setPen(QPen(edge, 1.2))
        for across in range(-9, 10):
            for down in range(-7, 8):
                x = middle.x() + CELL * math.sqrt(3) * (across + down / 2)
                fill.setAlphaF(HONEY.get((across, down), 0.0))
                painter.setBrush(fill)
                painter.drawPolygon(hexagon(x, middle.y() + 168 + CELL * 1.5 * down, CELL - 3))

    def _run(self, painter: QPainter, top: QPointF) -> None:
        """Two loops of dots, and between them the waggle run itself."""
        edge, x, y = self.theme.colour("accent_text"), top.x(), top.y()
        dots = QPen(edge, 2.4, Qt.PenStyle.CustomDashLine, Qt.PenCapStyle.RoundCap)
        dots.setDashPattern([0.1, 3.4])
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(dots)
        for side in (-1, 1):
            loop = QPainterPath(QPointF(x, y - LOOP))
            far = x + side * LOOP * 1.9
            loop.cubicTo(far, y - LOOP * 1.75, far, y + LOOP * 1.75, x, y + LOOP)
            painter.drawPath(loop)
        painter.setPen(QPen(edge, 5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        step = (2 * LOOP - 30) / 8
        path = QPainterPath(QPointF(x, y - LOOP + 30))
        for i in range(8):
            begin = y - LOOP + 30 + i * step
            path.quadTo(x + (17 if i % 2 else -17), begin + step / 2, x, begin + step)
        painter.drawPath(path)

    def _bee(self, painter: QPainter, name: str, x: float, y: float, radius: float, *, mine: bool = False) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.colour("accent_soft"))
        painter.drawPolygon(hexagon(x, y, radius + 6))
        draw_avatar(painter, self.theme, name, QPointF(x, y), radius, mine=mine)
