"""Labels in the fonts of the theme: paragraphs, and single lines that are elided."""

import math

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QFontMetricsF, QPainter
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from waggle.gui.i18n.formatting import tooltip_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import restyle
from waggle.gui.widgets.painted_widgets import PaintedWidget

LARGE = ("hero", "display", "title")  # font roles in Inter Display


def text(theme: Theme, words: str = "", role: str = "body", tone: str = "text", *, wrap: bool = False) -> QLabel:
    label = QLabel(words)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setFont(theme.font(role))
    label.setProperty("tone", tone)
    label.setWordWrap(wrap)
    label.setContentsMargins(0, above(theme, role), 0, 0)
    return label


def above(theme: Theme, role: str) -> int:
    """Pixels that the dots of a capital umlaut reach above the ascent of a large font; else 0."""
    if role not in LARGE:
        return 0
    metrics = QFontMetricsF(theme.font(role))
    return max(0, math.ceil(-metrics.tightBoundingRect("Ü").top() - metrics.ascent()))


def say_in(label: QLabel, words: str, tone: str) -> None:
    """Show words in a tone; hide the label without words."""
    restyle(label, "tone", tone)
    label.setText(words)
    label.setVisible(bool(words))


def announce(widget: QWidget, words: str) -> None:
    """Announce words to a screen reader, if one is active, after its current sentence."""
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, words))


def spoken(*parts: str) -> str:
    """Words that stand apart on the screen as sentences, between which a screen reader pauses."""
    return " ".join(part if part[-1:] in ".:?!…" else f"{part}." for part in parts if part)


def set_tip(widget: QWidget, words: str) -> None:
    widget.setToolTip(tooltip_text(words))


class ElidedLabel(PaintedWidget):
    """One line of plain text; if it does not fit, it ends with an ellipsis and the tooltip has all of it."""

    def __init__(self, theme: Theme, words: str = "", role: str = "body", tone: str = "text", *, right: bool = False) -> None:
        super().__init__(theme)
        self._words, self._role, self._tone, self._right = "", role, tone, right
        self._metrics = QFontMetricsF(theme.font(role))
        self._height = int(self._metrics.height()) + 2 + 2 * above(theme, role)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.say(words)

    def say(self, words: str, tone: str | None = None) -> None:
        if (words, tone or self._tone) == (self._words, self._tone):
            return
        self._words, self._tone = words, tone or self._tone
        self.setAccessibleName(words)
        set_tip(self, "")
        self.updateGeometry()
        self.update()

    def words(self) -> str:
        return self._words

    def sizeHint(self) -> QSize:
        return QSize(int(self._metrics.horizontalAdvance(self._words)) + 2, self._height)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(40, self.sizeHint().width()), self.sizeHint().height())

    def draw(self, painter: QPainter, place: QRectF) -> None:
        cut = self._metrics.elidedText(self._words, Qt.TextElideMode.ElideRight, place.width())
        if cut != self._words and not self.toolTip():
            set_tip(self, self._words)
        painter.setFont(self.theme.font(self._role))
        painter.setPen(self.theme.colour(self._tone))
        side = Qt.AlignmentFlag.AlignRight if self._right else Qt.AlignmentFlag.AlignLeft
        painter.drawText(place, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, cut)


def _as_it_is(words: str) -> str:
    """Escape each "&", which Qt would read as the mark of a shortcut key."""
    return words.replace("&", "&&")
