"""The ring of a filled button that has the focus; that of any other is its style sheet's."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton

from waggle.gui.theme.theme import Look


class EnterButton(QPushButton):
    """A button that Enter presses as a space does, which Qt leaves to dialogs. Held down it presses once."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
        elif not event.isAutoRepeat():
            self.click()


class FocusRingButton(EnterButton):
    """The ring stands inside the fill: what contrasts with that is as dark as a dark page around it."""

    _look: Look
    _kind: str

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._kind == "primary" and self.hasFocus():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self._look.colour("focus_on_accent"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(4, 4, -4, -4), 5, 5)
