"""A strip of rounds to go back to: a cell for each, the stronger the better its answers were, marked where peers taught it."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractSlider, QSizePolicy, QToolTip

from waggle.core.text.round_number import round_number
from waggle.gui.i18n.formatting import decimal, figure, plural, tr
from waggle.gui.state.story.stage import Scene
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.text import announce

HIGH, WIDEST, APART, RING = 30, 34, 2, 3  # pixels: the strip, a cell at most, between two cells, around the cells
MARK = 3.0  # pixels: height of the mark of peers
PALEST = 0.16  # alpha of a round without reward


def scene_words(scene: Scene) -> str:
    """A round in a few words."""
    words = tr("Round %1: reward %2").replace("%1", figure(round_number(scene.round))).replace("%2", decimal(scene.reward, 2))
    taught = plural(scene.taught, "%n example learned from peers", "%n examples learned from peers")
    return f"{words}, {taught}" if scene.taught else words


class RoundStrip(QAbstractSlider):
    """Its value is the place of the chosen round; keys, wheel and mouse change it. `chosen` carries the number of the round."""

    chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._scenes: tuple[Scene, ...] = ()
        self.setAccessibleName(tr("Rounds; arrow keys go back and forth"))
        self.setOrientation(Qt.Orientation.Horizontal)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # time runs left to right in every language
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # not by a click: the focus would hold the stage
        self.setPageStep(5)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(theme.px(HIGH))
        self.valueChanged.connect(self._choose)
        theme.changed.connect(self.update)

    def show_scenes(self, scenes: Sequence[Scene], number: int | None) -> None:
        """The rounds, oldest first, and the one that is on the stage."""
        place = next((i for i, scene in enumerate(scenes) if scene.round == number), 0)
        if (tuple(scenes), place) == (self._scenes, self.value()):
            return
        self._scenes = tuple(scenes)
        self.setMaximumWidth(2 * RING + max(1, len(scenes)) * self._theme.px(WIDEST))
        with QSignalBlocker(self):
            self.setRange(0, max(0, len(scenes) - 1))
            self.setValue(place)
        self._describe()
        self.update()

    def _describe(self) -> None:
        scene = self._scene()
        words = scene_words(scene) if scene else tr("No round yet")
        self.setAccessibleDescription(words)

    def _scene(self) -> Scene | None:
        return self._scenes[self.value()] if self.value() < len(self._scenes) else None

    def _choose(self) -> None:
        if (scene := self._scene()) is not None:
            self._describe()
            announce(self, self.accessibleDescription())
            self.chosen.emit(scene.round)
        self.update()

    def _step(self) -> float:
        count = max(1, len(self._scenes))
        return min(self._theme.px(WIDEST), (self.width() - 2 * RING) / count)

    def cell(self, place: int) -> QRectF:
        """The rectangle of a round."""
        step = self._step()
        high = self.height() - 2 * RING
        return QRectF(RING + place * step, RING, max(1.0, step - APART), high)

    def _place_at(self, point: QPointF) -> int | None:
        place = int((point.x() - RING) // self._step())
        return place if 0 <= place < len(self._scenes) else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._point(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point(event)

    def _point(self, event: QMouseEvent) -> None:
        place = self._place_at(event.position())
        if event.buttons() & Qt.MouseButton.LeftButton and place is not None:
            self.setValue(place)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            place = self._place_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), scene_words(self._scenes[place]) if place is not None else "", self)
            return True
        return super().event(event)

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(200), self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self._theme.px(120), self.maximumWidth()), self.height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for place, scene in enumerate(self._scenes):
            self._draw(painter, self.cell(place), scene, chosen=place == self.value())
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self._theme.colour("focus"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)
        painter.end()

    def _draw(self, painter: QPainter, cell: QRectF, scene: Scene, *, chosen: bool) -> None:
        heat = QColor(self._theme.colour("accent_line"))
        heat.setAlphaF(PALEST + (1 - PALEST) * min(1.0, max(0.0, scene.reward)))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(heat)
        corner = min(4.0, cell.width() / 3)
        painter.drawRoundedRect(cell, corner, corner)
        if scene.taught:
            painter.setBrush(self._theme.colour("peer"))
            painter.drawRect(QRectF(cell.left(), cell.bottom() - MARK, cell.width(), MARK))
        if chosen:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self._theme.colour("text"), 2))
            painter.drawRoundedRect(cell.adjusted(-1, -1, 1, 1), corner + 1, corner + 1)
