"""Small painted widgets: icon, logo, avatar, chip, progress in cells."""

import math

from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from waggle.gui.i18n.formatting import tooltip_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import chip_width, draw_avatar, draw_chip, draw_logo, hexagon, mirror_box
from waggle.gui.widgets.layout import as_widget, column, row


class PaintedWidget(QWidget):
    """A widget that paints itself in the colours of a theme; subclasses implement `draw`."""

    def __init__(self, theme: Theme, size: QSize | None = None, name: str = "") -> None:
        super().__init__()
        self.theme = theme
        self.setAccessibleName(name)
        if size is not None:
            self.setFixedSize(size)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setLayoutDirection(self.layoutDirection())
        self.draw(painter, QRectF(self.rect()))
        painter.end()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        raise NotImplementedError


class Icon(PaintedWidget):
    """An icon of resources/look/icons, in a colour role of the theme."""

    def __init__(self, theme: Theme, name: str, role: str, size: int = 16) -> None:
        super().__init__(theme, QSize(theme.px(size), theme.px(size)))
        self._icon = (name, role)

    def show_icon(self, name: str, role: str) -> None:
        if self._icon != (name, role):
            self._icon = (name, role)
            self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        self.theme.draw_icon(painter, *self._icon, place)


def sign_column(theme: Theme, name: str, role: str, wide: int) -> QWidget:
    """A small icon in the middle of a column of so many pixels, before text scaling, beside the first line of a text."""
    sign = as_widget(column(1, row(None, Icon(theme, name, role), None, gap=0), None, gap=0))
    sign.setFixedWidth(theme.px(wide))
    return sign


class Logo(PaintedWidget):
    """Waggle's logo."""

    def __init__(self, theme: Theme, size: int) -> None:
        super().__init__(theme, QSize(size, size), "Waggle")

    def draw(self, painter: QPainter, place: QRectF) -> None:
        draw_logo(painter, self.theme, place.center(), place.width() / 2)


class Avatar(PaintedWidget):
    """The picture of one identity; blank without one."""

    def __init__(self, theme: Theme, size: int) -> None:
        super().__init__(theme, QSize(size, size))
        self._identity = ("", False, False)

    def set_size(self, size: int) -> None:
        self.setFixedSize(size, size)

    def show_identity(self, identity: str, *, mine: bool, gone: bool = False) -> None:
        """`gone`: in grey."""
        if self._identity != (identity, mine, gone):
            self._identity = (identity, mine, gone)
            self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        identity, mine, gone = self._identity
        if identity:
            draw_avatar(painter, self.theme, identity, place.center(), place.width() / 2, mine=mine, gone=gone)


class Chip(PaintedWidget):
    """A few words on a tinted background. Cut words are in the tooltip, unless a page has set another tooltip."""

    def __init__(self, theme: Theme, words: str = "", tone: str = "plain", icon: str = "") -> None:
        super().__init__(theme)
        self.setFixedHeight(theme.size["chip"])
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._content, self._whole = ("", "", ""), ""
        self.say(words, tone, icon)

    def say(self, words: str, tone: str, icon: str = "") -> None:
        if (words, tone, icon) == self._content:
            return
        self._content = (words, tone, icon)
        self.setAccessibleName(words)
        self.setMaximumWidth(self.sizeHint().width())
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        words, tone, icon = self._content
        return QSize(math.ceil(chip_width(self.theme, words, icon=bool(icon), bare=tone == "bare")), self.theme.size["chip"])

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self.theme.px(60), self.sizeHint().width()), self.theme.size["chip"])

    def draw(self, painter: QPainter, place: QRectF) -> None:
        words, tone, icon = self._content
        draw_chip(painter, self.theme, QPointF(0, 0), words, tone, icon, room=place.width())
        whole = tooltip_text(words) if place.width() < self.sizeHint().width() else ""
        if self.toolTip() in ("", self._whole) and self.toolTip() != whole:
            self.setToolTip(whole)
            self._whole = whole


class StageProgress(PaintedWidget):
    """Progress in cells: the six stages of a round, or the parts of the start."""

    CELL = 13

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._progress = (-1, -1, False)
        self.setFixedHeight(self.CELL + 6)

    def show_stage(self, done: int, total: int, *, paused: bool = False) -> None:
        """Fill `done` of `total` cells and ring the next; a negative `done` fills none. `paused` uses grey."""
        if self._progress != (done, total, paused):
            self._progress = (done, total, paused)
            self.setFixedWidth(total * (self.CELL + 4))
            self.setAccessibleName(f"{max(0, done)} / {total}")
            self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        done, total, paused = self._progress
        edge, full = ("text_faint", "text_faint") if paused else ("accent_line", "accent")
        for i in range(total):
            begun = i <= done
            painter.setPen(QPen(self.theme.colour(edge if begun else "control"), 2 if i == done else 1.3))
            painter.setBrush(self.theme.colour(full if i < done else "surface"))
            cell = mirror_box(painter, QRectF(i * (self.CELL + 4), place.top(), self.CELL * 1.2, place.height()), place)
            painter.drawPolygon(hexagon(cell.center().x(), cell.center().y() + 0.5, self.CELL * 0.52))
