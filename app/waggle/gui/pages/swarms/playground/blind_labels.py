"""Whose answer it is: that of the model after so many rounds, or, without names, a letter's; and how either is shown."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent, QTextOption, QWheelEvent
from PySide6.QtWidgets import QCheckBox, QFrame, QPlainTextEdit

from waggle.gui.i18n.formatting import plural, tr, visible_lines
from waggle.gui.theme.theme import Theme

LETTERS = "ABCDEFGHIJ"


def moment(rounds: int, newest: int) -> str:
    """Which model it is that answers."""
    if not rounds:
        return tr("Before any training")
    if rounds == newest:
        return plural(rounds, "Now, %n round", "Now, %n rounds")
    return plural(rounds, "After %n round", "After %n rounds")


def letter(place: int) -> str:
    """The same where it is to be guessed."""
    return tr("Answer %1").replace("%1", LETTERS[place])


def blind_box(theme: Theme) -> QCheckBox:
    """Whether names are left out."""
    box = QCheckBox(tr("Without names: guess which is which"))
    box.setFont(theme.font("small"))
    box.setAccessibleName(box.text())
    return box


class Prose(QPlainTextEdit):
    """Plain text, as high as it is long: never markup, broken where it must be, to be selected and copied."""

    def __init__(self, theme: Theme, role: str) -> None:
        super().__init__()
        self.setProperty("kind", "prose")
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFont(theme.font(role))
        self.document().setDocumentMargin(0)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setTabChangesFocus(True)
        self._fit()

    def say(self, words: str) -> None:
        visible_text = visible_lines(words.strip())
        if visible_text != self.toPlainText():
            self.setPlainText(visible_text)
            self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the page is turned, not this

    def _fit(self) -> None:
        lines = max(1, round(self.document().size().height()))
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + 2 * self.frameWidth() + 6)
