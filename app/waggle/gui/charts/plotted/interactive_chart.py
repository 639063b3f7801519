"""A chart that is read and zoomed by pointer and keyboard. Imports pyqtgraph, so load it only when a chart is shown."""

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QResizeEvent, QWheelEvent

from waggle.gui.charts.plotted.annotated_chart import AnnotatedChart
from waggle.gui.charts.plotted.chart_reading import Reading, ReadingOverlay
from waggle.gui.charts.plotted.visible_part import VisiblePart
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.text import announce

CLOSER = 0.8  # of the part stays visible after one step of the wheel, or one key
SHORTEST_DRAG = 6  # pixels: below this it was a click
SHORTEST_STEP = 1 / 60  # of the part: an arrow key goes on by at least this much


class InteractiveChart(AnnotatedChart):
    """Point to read a place; drag over a part to see it alone; Ctrl with the wheel zooms, a sideways wheel or Shift moves.

    With the keyboard: arrows read, + and - zoom, Shift with arrows moves, 0 shows the whole. A double click does, too.
    """

    _is_built = False  # the base class fits before there is an overlay

    def __init__(self, theme: Theme, name: str, part: VisiblePart, *, shows_axis: bool) -> None:
        super().__init__(theme, name, shows_axis=shows_axis)
        self._part = part
        self._drag: QPointF | None = None  # where a button went down
        self._overlay = ReadingOverlay(theme, self)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMouseTracking(True)
        self._is_built = True
        part.place_changed.connect(self._show_place)

    def reading(self, place: float) -> Reading | None:
        """What is known around a place; None where nothing is."""
        raise NotImplementedError

    def places(self) -> list[float]:
        """The places that arrow keys go through, in order."""
        raise NotImplementedError

    def _fit(self, *resized: object) -> None:
        super()._fit(*resized)
        self._show_place()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        if self._is_built:
            self._overlay.resize(self.size())

    def _show_place(self) -> None:
        if not self._is_built:
            return
        place = self._part.place
        first, last = self._part.ends
        reading = self.reading(place) if place is not None and first <= place <= last and not self.is_empty else None
        if place is None or reading is None:
            self._overlay.clear_reading()
            return
        plot = self._plot()
        dots = [(self._pixel(value.x, value.y), value.role) for value in reading.values if value.y is not None]
        within = [(dot, role) for dot, role in dots if plot.left() - 1 <= dot.x() <= plot.right() + 1]
        self._overlay.show_reading(plot, self._pixel(place, 0.0).x(), reading, within)

    def _plot(self) -> QRectF:
        """The area of the curves, in pixels."""
        return QRectF(self.mapFromScene(self.getViewBox().sceneBoundingRect()).boundingRect())

    def _pixel(self, x: float, y: float) -> QPointF:
        return QPointF(self.mapFromScene(self.getViewBox().mapViewToScene(QPointF(x, y))))

    def _place_at(self, pixel: QPointF) -> float:
        """The place on the axis, within the part that is shown."""
        x = float(self.getViewBox().mapSceneToView(self.mapToScene(pixel.toPoint())).x())
        first, last = self._part.ends
        return min(max(x, first), last)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._drag = event.position()
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._part.read(self._place_at(event.position()))
        if self._drag is not None and abs(event.position().x() - self._drag.x()) >= SHORTEST_DRAG:
            plot = self._plot()
            band = QRectF(QPointF(self._drag.x(), plot.top()), QPointF(event.position().x(), plot.bottom())).normalized()
            self._overlay.show_band(band.intersected(plot))
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        start, self._drag = self._drag, None
        self._overlay.show_band(None)
        if start is not None and abs(event.position().x() - start.x()) >= SHORTEST_DRAG:
            self._part.choose(self._place_at(start), self._place_at(event.position()))
        event.accept()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self._part.show_whole()
        event.accept()

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps, modifiers = event.angleDelta(), event.modifiers()
        aside = steps.x() or (steps.y() if modifiers & Qt.KeyboardModifier.ShiftModifier else 0)
        if modifiers & Qt.KeyboardModifier.ControlModifier and steps.y():
            self._part.zoom(self._place_at(event.position()), CLOSER if steps.y() > 0 else 1 / CLOSER)
        elif aside and not self._part.is_whole:
            self._part.move(-0.1 if aside > 0 else 0.1)
        else:
            event.ignore()  # the page scrolls
            return
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        if not self.hasFocus():
            self._part.read(None)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._overlay.show_focus(focused=True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._overlay.show_focus(focused=False)
        self._part.read(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        around = self._part.ends[1] if self._part.place is None else self._part.place
        key, shifted = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        match key:
            case Qt.Key.Key_Left | Qt.Key.Key_Right:
                ahead = key == Qt.Key.Key_Right
                if shifted:
                    self._part.move(0.1 if ahead else -0.1)
                else:
                    self._read_next(around, ahead=ahead)
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self._part.zoom(around, CLOSER)
            case Qt.Key.Key_Minus:
                self._part.zoom(around, 1 / CLOSER)
            case Qt.Key.Key_0 | Qt.Key.Key_Escape if not self._part.is_whole:
                self._part.show_whole()
            case _:
                event.ignore()  # not QGraphicsView's: it would scroll
                return
        event.accept()

    def _read_next(self, around: float, *, ahead: bool) -> None:
        """Read the next place with a value, some pixels on where there are many; at first the newest."""
        first, last = self._part.ends
        least = (last - first) * SHORTEST_STEP
        places = [place for place in self.places() if first <= place <= last]
        if self._part.place is None:
            beyond = places[-1:]
        elif ahead:
            beyond = [place for place in places if place >= around + least] or places[-1:]
        else:
            beyond = [place for place in places if place <= around - least][::-1] or places[:1]
        if beyond:
            self._part.read(beyond[0])
            reading = self.reading(beyond[0])
            self.setAccessibleDescription(reading.words if reading else "")
            announce(self, self.accessibleDescription())
