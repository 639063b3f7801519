"""Buttons that guard against accidental presses."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QFocusEvent, QHideEvent, QMouseEvent

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button


class SingleClickButton(Button):
    """Counts a double click as one press: the second press would undo the first, or confirm what nobody has read yet."""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.accept()


class ConfirmLink(SingleClickButton):
    """A link that asks for a second press before it emits `confirmed`; losing the focus or being hidden cancels.

    `question` is shown after the first press; if it is empty, the first press confirms. The names are for screen readers.
    """

    confirmed = Signal()
    asking_changed = Signal(bool)

    def __init__(self, theme: Theme, words: str, name: str, *, question: str, question_name: str) -> None:
        super().__init__(theme, words, "link")
        self._first, self._second, self._confirming = (words, name), (question, question_name), False
        self.clicked.connect(self._forward)
        self._ask(False)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._ask(False)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._ask(False)

    def _forward(self) -> None:
        if self._second[0] and not self._confirming:
            self.setFocus()  # macOS does not focus a button that is clicked
            self._ask(True)
        else:
            self.confirmed.emit()

    def _ask(self, confirming: bool) -> None:
        self._confirming = confirming
        words, name = self._second if confirming else self._first
        self.say(words)
        self.setAccessibleName(name)
        self.asking_changed.emit(confirming)
