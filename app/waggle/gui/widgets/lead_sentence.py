"""A large sentence in which one part is marked, such as the score on Home. It wraps, and is as high as its lines."""

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QSizePolicy

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.highlighted_text import break_lines, draw_highlighted_text, line_height, span_layout
from waggle.gui.widgets.painted_widgets import PaintedWidget

MOST_LINES = 6


class LeadSentence(PaintedWidget):
    """`role` is a font of the theme. The words are our own, never those of a stranger."""

    def __init__(self, theme: Theme, role: str) -> None:
        super().__init__(theme)
        self._role = role
        self._content = ("", 0, 0)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def words(self) -> str:
        return self._content[0]

    def say(self, words: str, start: int = 0, length: int = 0) -> None:
        """Show words; `length` characters from `start` are marked."""
        if (words, start, length) != self._content:
            self._content = (words, start, length)
            self.setAccessibleName(words)
            self.updateGeometry()
            self.update()

    def set_role(self, role: str) -> None:
        if role != self._role:
            self._role = role
            self.updateGeometry()
            self.update()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._lines(width) * self._leading()

    def sizeHint(self) -> QSize:
        return QSize(self.theme.px(320), self._leading())

    def minimumSizeHint(self) -> QSize:
        return QSize(self.theme.px(120), self._leading())

    def _leading(self) -> int:
        return line_height(self.theme.font(self._role), mono=False)

    def _lines(self, width: int) -> int:
        words = self._content[0]
        layout = span_layout(self.theme, words, 0, 0, role=self._role, match="match")
        break_lines(layout, words, max(1, width), MOST_LINES, 1)
        return max(1, layout.lineCount())

    def draw(self, painter: QPainter, place: QRectF) -> None:
        words, start, length = self._content
        draw_highlighted_text(
            painter, self.theme, place, words, start=start, length=length, lines=MOST_LINES, role=self._role
        )  # fmt: skip
