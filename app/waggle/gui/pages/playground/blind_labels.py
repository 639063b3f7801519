"""Labels of answers: the rounds of the model that answered or, for a blind comparison, a letter; and the answer's text."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent, QTextOption, QWheelEvent
from PySide6.QtWidgets import QCheckBox, QFrame, QPlainTextEdit

from waggle.gui.i18n.formatting import plural, tr, visible_lines
from waggle.gui.theme.theme import Theme

LETTERS = "ABCDEFGHIJ"


def snapshot_label(rounds: int, newest: int) -> str:
    """The label of the model after so many rounds; `newest`: the rounds of the present model."""
    if not rounds:
        return tr("Before any training")
    if rounds == newest:
        return plural(rounds, "Now, %n round", "Now, %n rounds")
    return plural(rounds, "After %n round", "After %n rounds")


def not_now_text(reason: str) -> str:
    """Why the newest saved state answers and not the model of now; empty without a reason."""
    return f"{tr('The newest saved state answers.')} {tr(reason)}" if reason else ""


def answer_label(place: int) -> str:
    """The label of an answer in a blind comparison."""
    return tr("Answer %1").replace("%1", LETTERS[place])


def hide_names_box(theme: Theme) -> QCheckBox:
    """The checkbox for a blind comparison."""
    box = QCheckBox(tr("Blind test: guess which is which"))
    box.setFont(theme.font("small"))
    box.setAccessibleName(box.text())
    return box


class TextBlock(QPlainTextEdit):
    """Plain text (never markup) that can be selected and copied, as high as its lines."""

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
        event.ignore()  # the page scrolls, not this

    def _fit(self) -> None:
        lines = max(1, round(self.document().size().height()))
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + 2 * self.frameWidth() + 6)
