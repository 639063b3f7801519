"""The focus ring of buttons, for people who use the keyboard. The style sheet draws it, except on filled buttons."""

from typing import Any, ClassVar

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QStyle, QStyleOptionButton

from waggle.gui.theme.theme import Theme

BY_KEYBOARD = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)


class EnterButton(QPushButton):
    """A button that Enter presses, as Space does: Qt does so in dialogs only. A key held down presses once.

    It shows its focus only to those who use the keyboard: once a button got the focus by Tab or a key, until one is clicked.
    """

    _is_by_keyboard: ClassVar[bool] = False  # whether the last button that was reached or pressed was so by a key

    def initStyleOption(self, option: QStyleOptionButton) -> None:
        super().initStyleOption(option)
        if not self.shows_focus:
            untyped_option: Any = option  # PySide's type lacks the field
            untyped_option.state &= ~QStyle.StateFlag.State_HasFocus

    @property
    def shows_focus(self) -> bool:
        """Whether it has the focus, and the person uses the keyboard."""
        return self.hasFocus() and EnterButton._is_by_keyboard

    def focusInEvent(self, event: QFocusEvent) -> None:
        if event.reason() in BY_KEYBOARD:
            EnterButton._is_by_keyboard = True
        super().focusInEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        EnterButton._is_by_keyboard = False
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        EnterButton._is_by_keyboard = True
        self.update()
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
        if self._kind == "primary" and self.shows_focus:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self._theme.colour("focus_on_accent"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(4, 4, -4, -4), 5, 5)
