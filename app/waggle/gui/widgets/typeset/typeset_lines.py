"""Words whose fractions are stacked, broken into lines and painted. Nothing in them is parsed as markup."""

from PySide6.QtCore import QPointF
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen, QTextCharFormat, QTextLayout, QTextOption

from waggle.gui.state.story.typesetting import Fraction, fractions_in
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.typeset.highlighted_text import CLOSE, CUT, left_of, units

SMALLER = 0.72  # the size of a fraction's digits, as a share of the text's
AXIS, GAP = 0.62, 0.3  # the height of a fraction's bar, of an "x"; and between it and the numbers, of a digit
AROUND, BAR = 3, 1.5  # pixels beside the numbers of a fraction, and the thickness of its bar
BLANK = "\u00a0"  # stands for a fraction, stretched to its width


def scaled(font: QFont, scale: float) -> QFont:
    """The font in another size."""
    other = QFont(font)
    other.setPixelSize(round(scale * font.pixelSize()))
    return other


class TypesetLines:
    """Words in one font. A text that needs too many lines ends with an ellipsis."""

    def __init__(self, theme: Theme, text: str, font: QFont, tone: str = "text") -> None:
        self._theme, self._text, self._font, self._tone = theme, text, font, tone
        self._small = QFont(font)
        self._small.setPixelSize(max(9, round(font.pixelSize() * SMALLER)))
        self._small_metrics = QFontMetricsF(self._small)
        self.leading = font.pixelSize() * CLOSE  # pixels of a line without a fraction
        self._fractions: list[tuple[Fraction, int]] = []  # and where its blank stands, in UTF-16 units
        self._layout = QTextLayout()
        self.width = self.height = 0.0  # pixels, once broken
        self.is_cut = False

    def _with_blanks(self, text: str) -> QTextLayout:
        """The text, with a blank in place of each fraction."""
        parts, spans, end = [], [], 0
        self._fractions.clear()
        for fraction in fractions_in(text):
            parts += [text[end : fraction.start], BLANK]
            end = fraction.end
            place = units("".join(parts)) - 1
            self._fractions.append((fraction, place))
            spans.append(self._blank(fraction, place))
        layout = QTextLayout("".join([*parts, text[end:]]), self._font)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        layout.setTextOption(option)
        layout.setFormats(spans)
        return layout

    def _blank(self, fraction: Fraction, place: int) -> QTextLayout.FormatRange:
        """Stretch the blank at this place to the width of a fraction."""
        font = QFont(self._font)
        own = QFontMetricsF(font).horizontalAdvance(BLANK)
        font.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, self._width_of(fraction) - own)
        form = QTextCharFormat()
        form.setFont(font)
        span = QTextLayout.FormatRange()
        span.start, span.length, span.format = place, 1, form
        return span

    def _width_of(self, fraction: Fraction) -> float:
        return max(map(self._small_metrics.horizontalAdvance, (fraction.above, fraction.below))) + 2 * AROUND + 2

    def lay_out(self, width: float, most: int = 10_000) -> None:
        """Break into at most `most` lines of this width."""
        text, self.is_cut = self._text, False
        while (end := self._break(text, width, most)) < len(text):
            self.is_cut = True
            text = f"{text[: max(0, end - 2)].rstrip(f' {CUT}')} {CUT}"
            if end <= 2:
                break

    def _break(self, text: str, width: float, most: int) -> int:
        """Break this text; returns how many of its characters have room."""
        tall = max(self.leading, 2 * self._small_metrics.height() + BAR)
        layout = self._layout = self._with_blanks(text)
        y, end, self.width = 0.0, 0, 0.0
        layout.beginLayout()
        for _ in range(most):
            line = layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(width)
            end = line.textStart() + line.textLength()
            high = tall if any(line.textStart() <= place < end for _, place in self._fractions) else self.leading
            line.setPosition(QPointF(0, y + (high - line.height()) / 2))
            self.width = max(self.width, line.naturalTextWidth())
            y += high
        layout.endLayout()
        self.height = y
        stacked = sum(fraction.end - fraction.start - 1 for fraction, place in self._fractions if place < end)
        return len(layout.text().encode("utf-16-le")[: 2 * end].decode("utf-16-le", "ignore")) + stacked

    def draw(self, painter: QPainter, corner: QPointF) -> None:
        painter.setPen(self._theme.colour(self._tone))
        self._layout.draw(painter, corner)
        for fraction, place in self._fractions:
            line = self._layout.lineForTextPosition(place)
            if line.isValid():
                axis = line.y() + line.ascent() - QFontMetricsF(self._font).xHeight() * AXIS
                self._draw_fraction(painter, fraction, corner + QPointF(left_of(line, place), axis))

    def _draw_fraction(self, painter: QPainter, fraction: Fraction, at: QPointF) -> None:
        """Draw it around the bar that begins at this point."""
        wide, metrics = self._width_of(fraction) - 2, self._small_metrics
        ink = metrics.capHeight()
        painter.save()
        painter.setFont(self._small)
        gap = max(2.5, ink * GAP)
        for words, base in ((fraction.above, at.y() - gap), (fraction.below, at.y() + gap + ink)):
            painter.drawText(QPointF(at.x() + 1 + (wide - metrics.horizontalAdvance(words)) / 2, base), words)
        painter.setPen(QPen(self._theme.colour(self._tone), BAR))
        painter.drawLine(QPointF(at.x() + 1, at.y()), QPointF(at.x() + 1 + wide, at.y()))
        painter.restore()
