"""A button that copies text to the clipboard and confirms it for a moment."""

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication

from waggle.gui.i18n.formatting import tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button

SAID_MS = 4000  # how long the confirmation is shown


class CopyButton(Button):
    """Copies the text of the last `offer`. The confirmation ends with the next offer, or after a few seconds."""

    def __init__(self, theme: Theme, words: str, kind: str = "plain", *, small: bool = False) -> None:
        super().__init__(theme, words, kind, "copy", small=small)
        self._does, self._offered = words, ""
        self._end = QTimer(self)
        self._end.setSingleShot(True)
        self._end.timeout.connect(self._rest)
        self.clicked.connect(self._copy)

    def offer(self, words: str) -> None:
        """Set the text to copy."""
        if words != self._offered:
            self._offered = words
            self._rest()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._offered)
        self.say(tr("Copied"), "check")
        self._end.start(SAID_MS)

    def _rest(self) -> None:
        self._end.stop()
        self.say(self._does, "copy")
