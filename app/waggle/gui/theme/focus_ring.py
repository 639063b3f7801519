"""Focus ring of a filled button; the style sheet draws the ring of all others."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton

from waggle.gui.theme.theme import Theme


class EnterButton(QPushButton):
    """A button that Enter presses, as Space does: Qt does so in dialogs only. A key held down presses once."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
        elif not event.isAutoRepeat():
            self.click()


class FocusRingButton(EnterButton):
    """The ring is inside the fill: a colour that contrasts with the fill would not do so with a dark page around it."""

    _theme: Theme
    _kind: str

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._kind == "primary" and self.hasFocus():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self._theme.colour("focus_on_accent"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(4, 4, -4, -4), 5, 5)
