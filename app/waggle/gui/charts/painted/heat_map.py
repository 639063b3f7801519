"""A heat map of the last year, or quarter: the more answers on a day, the stronger its cell. Arrow keys move day by day."""

import datetime
import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy

from waggle.gui.i18n.formatting import duration, figure, month, plural, tr, whole_day
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import UNLIMITED
from waggle.gui.widgets.painted_widgets import PaintedWidget
from waggle.gui.widgets.text import announce
from waggle.protocol.events_identity import Day

WEEKS, WEEKDAYS = 53, 7
FEW_WEEKS, STEP = 13, 21  # of a quarter, whose cells have a size of their own: pixels before text scaling
HEAD = 20  # pixels for the months, before text scaling
SIDE = 38  # pixels for the weekdays, before text scaling
LEVELS = (0.22, 0.45, 0.7, 1.0)
STEPS = {Qt.Key.Key_Left: -7, Qt.Key.Key_Right: 7, Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
NAMED = {0: "Mon", 2: "Wed", 4: "Fri"}


def level(answers: int, most: int) -> int:
    """0 for none, else 1 to 4 on a logarithmic scale: one busy day must not make all others pale."""
    if answers <= 0:
        return 0
    return min(4, 1 + int(4 * math.log1p(answers) / math.log1p(max(most, 2)) - 1e-9))


def first_day(today: datetime.date, weeks: int = WEEKS) -> datetime.date:
    """The Monday that begins so many weeks, the present one included."""
    return today - datetime.timedelta(days=today.weekday() + 7 * (weeks - 1))


def is_recent(days: Sequence[Day], today: datetime.date) -> bool:
    """Whether all of these days, which are in order, lie within the last quarter."""
    return not days or datetime.date.fromisoformat(days[0].date) >= first_day(today, FEW_WEEKS)


def day_words(date: datetime.date, day: Day | None) -> str:
    """One day in a sentence."""
    when = whole_day(date)
    if day is None:
        return tr("%1: nothing").replace("%1", when)
    answers = plural(day.answers, "%n answer", "%n answers")
    rest = tr("%1 of them right, in %2").replace("%1", figure(day.right)).replace("%2", duration(day.seconds))
    return f"{when}: {answers}, {rest}"


class HeatMap(PaintedWidget):
    """Shows the quarter while all days lie in it, so that a beginner sees no empty year.

    `read` carries the sentence about the day under the mouse or the keyboard cursor.
    """

    read = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, name=tr("Calendar of your days; arrow keys read it day by day"))
        self._days: dict[datetime.date, Day] = {}
        self._today = datetime.date(2026, 1, 1)  # until `show_days`
        self._weeks = WEEKS
        self._at: datetime.date | None = None
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # time runs left to right in every language
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._head, self._side = theme.px(HEAD), theme.px(SIDE)
        theme.changed.connect(self.update)

    def show_days(self, days: Sequence[Day], today: datetime.date) -> None:
        days_by_date = {datetime.date.fromisoformat(day.date): day for day in days}
        if (days_by_date, today) != (self._days, self._today):
            self._days, self._today = days_by_date, today
            recent = is_recent(days, today)
            self._weeks = FEW_WEEKS if recent else WEEKS
            self.setMaximumWidth(self._side + FEW_WEEKS * self.theme.px(STEP) if recent else UNLIMITED)
            self.updateGeometry()
            self.update()

    def _first(self) -> datetime.date:
        return first_day(self._today, self._weeks)

    def sizeHint(self) -> QSize:
        width = self._side + (WEEKS * 16 if self._weeks == WEEKS else FEW_WEEKS * self.theme.px(STEP))
        return QSize(width, self.heightForWidth(width))

    def heightForWidth(self, width: int) -> int:
        """The height in pixels of seven days that are as high as the weeks are wide."""
        return self._head + round((width - self._side) / self._weeks * WEEKDAYS)

    def _step(self) -> float:
        """The pixels from one day to the next, and from one week to the next."""
        return (self.width() - self._side) / self._weeks

    def place_of(self, date: datetime.date) -> QRectF:
        """The rectangle of a day's cell."""
        gone = (date - self._first()).days
        step = self._step()
        return QRectF(self._side + gone // 7 * step, self._head + gone % 7 * step, step - 3, step - 3)

    def draw(self, painter: QPainter, place: QRectF) -> None:
        self._draw_names(painter)
        most = max((day.answers for day in self._days.values()), default=0)
        first = self._first()
        dates = [first + datetime.timedelta(days=gone) for gone in range((self._today - first).days + 1)]
        painter.setPen(QPen(self.theme.colour("grid"), 1))
        painter.setBrush(self.theme.colour("grid"))
        shades = {date: level(day.answers, most) for date, day in self._days.items()}
        for date in dates:
            if not shades.get(date):
                painter.drawRoundedRect(self.place_of(date), 3, 3)
        painter.setPen(QPen(self.theme.colour("edge"), 1))
        for date in dates:
            if shade := shades.get(date):
                colour = QColor(self.theme.colour("accent_line"))
                colour.setAlphaF(LEVELS[shade - 1])
                painter.setBrush(colour)
                painter.drawRoundedRect(self.place_of(date), 3, 3)
        if self._at is not None:
            painter.setPen(QPen(self.theme.colour("focus"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(self.place_of(self._at).adjusted(-1.5, -1.5, 1.5, 1.5), 4, 4)
        if self.hasFocus():
            painter.setPen(QPen(self.theme.colour("focus"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            step = self._step()
            whole = QRectF(self._side - 3, self._head - 3, self._weeks * step + 2, WEEKDAYS * step + 3)
            painter.drawRoundedRect(whole, 5, 5)

    def _draw_names(self, painter: QPainter) -> None:
        painter.setFont(self.theme.font("caption"))
        painter.setPen(self.theme.colour("text_faint"))
        for row, name in NAMED.items():
            cell = self.place_of(self._first() + datetime.timedelta(days=row))
            painter.drawText(QRectF(0, cell.top(), self._side, cell.height()), Qt.AlignmentFlag.AlignVCenter, tr(name))
        metrics, room = QFontMetricsF(self.theme.font("caption")), -1.0
        for week in range(self._weeks):
            date = self._first() + datetime.timedelta(days=7 * week)
            x = self.place_of(date).left()
            words = month(date)
            wide = metrics.horizontalAdvance(words)
            if date.day <= 7 and room < x <= self.width() - wide:
                painter.drawText(QPointF(x, self._head - 7), words)
                room = x + wide + 8

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = STEPS.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
            return
        self._select_day((self._at or self._today) + datetime.timedelta(days=step if self._at else 0))
        announce(self, self.accessibleDescription())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        step = self._step()
        week, row = (event.position().x() - self._side) // step, (event.position().y() - self._head) // step
        if 0 <= week < self._weeks and 0 <= row < WEEKDAYS:
            self._select_day(self._first() + datetime.timedelta(days=int(week * 7 + row)))

    def _select_day(self, date: datetime.date) -> None:
        self._at = max(self._first(), min(date, self._today))
        words = day_words(self._at, self._days.get(self._at))
        self.setAccessibleDescription(words)
        self.read.emit(words)
        self.update()
