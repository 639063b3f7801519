"""A large sentence in which one part is marked, such as the score on Home. It wraps, and is as high as its lines."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QTextCharFormat, QTextLayout, QTextOption
from PySide6.QtWidgets import QSizePolicy

from waggle.gui.i18n.translator import is_right_to_left
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import PaintedWidget
from waggle.gui.widgets.typeset.highlighted_text import line_height, units

SMALLER = "title"  # the font of a sentence that fits on one line in it, and not in its own


class LeadSentence(PaintedWidget):
    """`role` is a font of the theme. The words are our own, never those of a stranger."""

    def __init__(self, theme: Theme, role: str) -> None:
        super().__init__(theme)
        self._role = role
        self._content = ("", 0, 0)
        self._heights: dict[int, int] = {}  # of these words, by width: a layout asks many times
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
            self._set_anew()

    def set_role(self, role: str) -> None:
        if role != self._role:
            self._role = role
            self._set_anew()

    def _set_anew(self) -> None:
        self._heights.clear()
        self.updateGeometry()
        self.update()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if width not in self._heights:
            self._heights[width] = round(self._layout(width).boundingRect().bottom())
        return self._heights[width]

    def sizeHint(self) -> QSize:
        return QSize(self.theme.px(320), self._leading(self._role))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.theme.px(120), self._leading(self._role))

    def _leading(self, role: str) -> int:
        return line_height(self.theme.font(role), mono=False)

    def _layout(self, width: float) -> QTextLayout:
        """The lines in the own font, or in the smaller one where that makes them one line."""
        own = self._lines(self._role, width)
        if own.lineCount() < 2:
            return own
        smaller = self._lines(SMALLER, width)
        return smaller if smaller.lineCount() < 2 else own

    def _lines(self, role: str, width: float) -> QTextLayout:
        words, start, length = self._content
        layout, option = QTextLayout(words, self.theme.font(role)), QTextOption()
        away = is_right_to_left()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        option.setTextDirection(Qt.LayoutDirection.RightToLeft if away else Qt.LayoutDirection.LeftToRight)
        option.setAlignment(Qt.AlignmentFlag.AlignRight if away else Qt.AlignmentFlag.AlignLeft)
        layout.setTextOption(option)
        if length:
            mark, span = QTextCharFormat(), QTextLayout.FormatRange()
            mark.setBackground(self.theme.colour("match"))
            span.start, span.length, span.format = units(words[:start]), units(words[start : start + length]), mark
            layout.setFormats([span])
        leading = self._leading(role)
        layout.beginLayout()
        count = 0
        while (line := layout.createLine()).isValid():
            line.setLineWidth(max(1.0, width))
            line.setPosition(QPointF(0, count * leading + (leading - line.height()) / 2))
            count += 1
        layout.endLayout()
        return layout

    def draw(self, painter: QPainter, place: QRectF) -> None:
        painter.setPen(self.theme.colour("text"))
        self._layout(place.width()).draw(painter, place.topLeft())
