"""Buttons for what is not to happen by a press that was made for something else."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QFocusEvent, QHideEvent, QMouseEvent

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button


class SingleClickButton(Button):
    """A double click is one press: the second would take back what the first did, or do what nobody has read yet."""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.accept()


class ConfirmLink(SingleClickButton):
    """`meant` follows a press; where there are words for `sure`, only a second one, until the focus or the page leaves.

    Each name is the button's for a screen reader.
    """

    meant = Signal()
    asking = Signal(bool)

    def __init__(self, theme: Theme, words: str, name: str, *, sure: str, sure_name: str) -> None:
        super().__init__(theme, words, "link")
        self._first, self._second, self._confirming = (words, name), (sure, sure_name), False
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
            self.setFocus()  # macOS gives a button none that is clicked
            self._ask(True)
        else:
            self.meant.emit()

    def _ask(self, confirming: bool) -> None:
        self._confirming = confirming
        words, name = self._second if confirming else self._first
        self.say(words)
        self.setAccessibleName(name)
        self.asking.emit(confirming)
