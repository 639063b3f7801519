"""Ahas as numbered hexagons above a curve. Imports pyqtgraph, so load it only when a chart is shown."""

from collections.abc import Sequence

import msgspec
import pyqtgraph
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPolygonF
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from waggle.gui.theme.theme import Theme

PIN, ABOVE = 19, 22  # pixels: height of a hexagon, and of its middle above the curve; before text scaling
APART = 6  # pixels between two hexagons, at least
OVER_DOTS = 2.5  # z value


class Pin(msgspec.Struct, frozen=True):
    """An aha on the curve, in the coordinates of the data."""

    number: int  # counted from the oldest
    x: float
    y: float
    is_taught: bool  # whether an answer of a peer came before it


class PinGroup(msgspec.Struct, frozen=True):
    """Pins that would cover each other, shown as one; `foot` is its place on the curve, all in pixels of the scene."""

    pins: tuple[Pin, ...]
    words: str
    foot: QPointF
    middle: QPointF
    width: float


class AhaPins(pyqtgraph.GraphicsObject):  # type: ignore[misc]
    """All pins of a chart as one item: an item of the scene for each would take most of the time that the chart takes."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._pins: list[Pin] = []
        self.setZValue(OVER_DOTS)

    def add(self, pin: Pin) -> None:
        self._pins.append(pin)
        self.update()

    def groups(self) -> list[PinGroup]:
        """The pins as they are shown, by number: those of one kind that would cover each other are one."""
        groups = [self._group([pin]) for pin in sorted(self._pins, key=lambda pin: pin.number)]
        place = 0
        while place + 1 < len(groups):
            before, after = groups[place : place + 2]
            apart = after.middle - before.middle
            is_clear = abs(apart.x()) >= (before.width + after.width) / 2 + APART or abs(apart.y()) >= self._theme.px(PIN)
            if is_clear or before.pins[0].is_taught != after.pins[0].is_taught:
                place += 1
            else:
                groups[place : place + 2] = [self._group([*before.pins, *after.pins])]
                place = max(0, place - 1)  # it is wider now
        return groups

    def _group(self, pins: Sequence[Pin]) -> PinGroup:
        """Pins as one, in the middle of their places, cut neither on the left nor above."""
        size, words = self._theme.px(PIN), _words(pins)
        width = max(size, QFontMetricsF(self._theme.font("caption")).horizontalAdvance(words) + 0.6 * size)
        to_scene = self.sceneTransform()
        foot = to_scene.map(QPointF(sum(pin.x for pin in pins) / len(pins), sum(pin.y for pin in pins) / len(pins)))
        corner = to_scene.mapRect(self.boundingRect()).topLeft()
        x, y = max(foot.x(), corner.x() + width / 2), max(foot.y() - self._theme.px(ABOVE), corner.y() + size / 2)
        return PinGroup(tuple(pins), words, foot, QPointF(x, y), width)

    def boundingRect(self) -> QRectF:
        """What is shown of the chart."""
        return QRectF(self.viewRect() or QRectF())

    def viewTransformChanged(self) -> None:
        self.prepareGeometryChange()
        super().viewTransformChanged()

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Draw in pixels of the scene; of two at one place, the newer one lies above."""
        back, is_possible = self.sceneTransform().inverted()
        if not is_possible:
            return
        painter.setWorldTransform(back, True)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font("caption"))
        for group in self.groups():
            fill, ink = ("peer", "surface") if group.pins[0].is_taught else ("accent", "on_accent")
            painter.setPen(self._theme.colour(fill))
            painter.drawLine(group.foot, group.middle)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.colour(fill))
            painter.drawPolygon(_cell_shape(group.middle, self._theme.px(PIN) / 2, group.width / 2))
            painter.setPen(self._theme.colour(ink))
            size = self._theme.px(PIN)
            words = QRectF(group.middle - QPointF(group.width, size) / 2, group.middle + QPointF(group.width, size) / 2)
            painter.drawText(words, Qt.AlignmentFlag.AlignCenter, group.words)


def _words(pins: Sequence[Pin]) -> str:
    """The number of a pin, or the first and the last of several."""
    first, last = pins[0].number, pins[-1].number
    return str(first) if len(pins) == 1 else f"{first}\u2013{last}"


def _cell_shape(middle: QPointF, high: float, across: float) -> QPolygonF:
    """A hexagon of half the height `high` and half the width `across`, drawn apart in the middle where it is wider than high."""
    apart = max(0.0, across - 0.866 * high)
    side = apart + 0.866 * high
    right = ((apart, -high), (side, -high / 2), (side, high / 2), (apart, high))
    corners = (*right, *((-x, -y) for x, y in right))
    return QPolygonF([middle + QPointF(x, y) for x, y in corners])
