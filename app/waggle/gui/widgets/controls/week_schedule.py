"""A week as 7 rows of 24 hours, of which each may be used or not: set by dragging, or with arrow keys and Space."""

from PySide6.QtCore import QPoint, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy

from waggle.core.settings import Value
from waggle.gui.i18n.formatting import later, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import PaintedWidget

DAYS = (later("Monday"), later("Tuesday"), later("Wednesday"), later("Thursday"), later("Friday"), later("Saturday"),
        later("Sunday"))  # fmt: skip
ALWAYS = ("#" * 24,) * 7
STEPS = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}


class WeekSchedule(PaintedWidget):
    """The setting `when.week`: an empty value means always. A filled cell may be used."""

    changed = Signal(object)

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__(theme)
        self._name, self._label_width, self._row, self._head = name, theme.px(96), theme.px(22), theme.px(18)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # time runs left to right in every language
        self._week, self._at, self._brush = list(ALWAYS), (9, 0), "#"
        self._marked = False  # while the mouse button is down
        self.setFixedHeight(self._head + 7 * self._row + 4)
        self.setMinimumWidth(self._label_width + 24 * 14)  # cells contain no text, so they need no more room
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._say()

    def show_value(self, value: Value) -> None:
        assert isinstance(value, tuple)
        self._week = list(value or ALWAYS)
        self._say()
        self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        painter.setFont(self.theme.font("caption"))
        painter.setPen(self.theme.colour("text_faint"))
        for hour in range(0, 24, 6):
            painter.drawText(
                QRectF(self._cell(hour, 0).left(), 0, self.theme.px(60), self._head - 2),
                Qt.AlignmentFlag.AlignVCenter,
                f"{hour}:00",
            )
        for day, hours in enumerate(self._week):
            label = QRectF(0, self._head + day * self._row, self._label_width - 8, self._row)
            painter.setPen(self.theme.colour("text_soft"))
            painter.drawText(label, Qt.AlignmentFlag.AlignVCenter, tr(DAYS[day]))
            for hour, mark in enumerate(hours):
                here = self.hasFocus() and (hour, day) == self._at
                on = mark == "#"
                painter.setPen(QPen(self.theme.colour("focus" if here else "accent_line" if on else "edge"), 2 if here else 1))
                painter.setBrush(self.theme.colour("accent_soft" if on else "surface"))
                painter.drawRoundedRect(self._cell(hour, day).adjusted(1.5, 2, -1.5, -2), 3, 3)

    def _cell(self, hour: int, day: int) -> QRectF:
        width = (self.width() - self._label_width) / 24
        return QRectF(self._label_width + hour * width, self._head + day * self._row, width, self._row)

    def _cell_at(self, point: QPoint) -> tuple[int, int] | None:
        hour = int((point.x() - self._label_width) / max(1.0, (self.width() - self._label_width) / 24))
        day = (point.y() - self._head) // self._row
        inside = point.x() >= self._label_width and 0 <= hour < 24 and 0 <= day < 7
        return (hour, day) if inside else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self._cell_at(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and cell:
            hour, day = cell
            self._brush = "." if self._week[day][hour] == "#" else "#"
            self._marked = True
            self._mark(cell)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._marked and (cell := self._cell_at(event.position().toPoint())):
            self._mark(cell)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._marked:
            self._marked = False
            self._tell()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        hour, day = self._at
        if step := STEPS.get(Qt.Key(event.key())):
            self._at = (hour + step[0]) % 24, (day + step[1]) % 7
        elif event.key() == Qt.Key.Key_Space:
            self._brush = "." if self._week[day][hour] == "#" else "#"
            self._mark(self._at)
            self._tell()
        else:
            super().keyPressEvent(event)
        self._say()
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def _mark(self, cell: tuple[int, int]) -> None:
        hour, day = self._at = cell
        hours = self._week[day]
        self._week[day] = hours[:hour] + self._brush + hours[hour + 1 :]
        self.update()

    def _tell(self) -> None:
        chosen = tuple(self._week)
        self._say()
        self.changed.emit(() if chosen == ALWAYS else chosen)

    def _say(self) -> None:
        hour, day = self._at
        on = tr("may be used") if self._week[day][hour] == "#" else tr("is left out")
        self.setAccessibleName(f"{self._name}: {tr(DAYS[day])} {hour}:00 {on}")
