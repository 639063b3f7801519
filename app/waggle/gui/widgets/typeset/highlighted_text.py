"""Plain text with a highlighted span. Painted with QTextLayout, so nothing in it is parsed as markup."""

import re

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QTextCharFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)
from PySide6.QtWidgets import QSizePolicy

from waggle.gui.i18n.formatting import visible, visible_lines
from waggle.gui.i18n.translator import is_right_to_left
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import PaintedWidget
from waggle.gui.widgets.text import set_tip

TAGS = ("<answer>", "</answer>")
ANY_TAG = re.compile("|".join(TAGS))
HALF = re.compile(r"<[^>]{0,8}$")  # a tag that is cut off
WHOLE = re.compile(r"(?<= )\S|<")  # where a word or a tag begins
CARET = "\u258d"
CUT = "\u2026"
LEADING, CLOSE = 1.5, 1.32  # line height as a multiple of the font size: of models' text, and of our own
WORD = 12  # characters that may be dropped to end at a space instead of inside a word
SHORTEST = 0.45  # least share of a line that breaking at a space may leave filled


def units(text: str) -> int:
    """Length in UTF-16 code units, as Qt counts."""
    return len(text) + sum(character > "\uffff" for character in text)


def line_height(font: QFont, *, mono: bool = True) -> int:
    """Line height in pixels: more for text of models (`mono`) than for our own."""
    return round(font.pixelSize() * (LEADING if mono else CLOSE))


def excerpt_of(text: str, start: int, length: int, capacity: int, *, tail: bool) -> tuple[str, int]:
    """The excerpt of about `capacity` characters, and the start of the span in it.

    Shows the beginning; or the end of the span if that is further behind, or the end of the text if `tail`.
    """
    close = start + length + (len(TAGS[1]) if length else 0)
    if len(text) <= capacity or not (tail or (length and close > capacity)):
        return text, start
    end = len(text) if tail else min(len(text), close)
    first = max(0, min(end - capacity + 3, start if length else end))
    whole = WHOLE.search(text, first, min(first + WORD, start) if length else first + WORD)
    first = whole.start() if whole else first
    return f"{CUT} {text[first:end]}", start - first + 2


def span_layout(theme: Theme, text: str, start: int, length: int, *, role: str, match: str) -> QTextLayout:
    """Layout with dimmed tags and a highlighted span, not broken into lines. Text of models is always left-to-right."""
    layout = QTextLayout(text, theme.font(role))
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAnywhere)  # `broken` chooses the places
    away = role != "mono" and is_right_to_left()
    option.setTextDirection(Qt.LayoutDirection.RightToLeft if away else Qt.LayoutDirection.LeftToRight)
    option.setAlignment(Qt.AlignmentFlag.AlignRight if away else Qt.AlignmentFlag.AlignLeft)
    layout.setTextOption(option)
    formats = [_range(text, tag.start(), len(tag[0]), theme.colour("text_faint")) for tag in ANY_TAG.finditer(text)]
    if length > 0:
        formats.append(_range(text, start, length, theme.colour("text"), theme.colour(match)))
    layout.setFormats(formats)
    return layout


def _range(text: str, start: int, length: int, ink: QColor, ground: QColor | None = None) -> QTextLayout.FormatRange:
    form = QTextCharFormat()
    form.setForeground(ink)
    if ground is not None:
        form.setBackground(ground)
    span = QTextLayout.FormatRange()
    span.start, span.length, span.format = units(text[:start]), units(text[start : start + length]), form
    return span


def draw_highlighted_text(
    painter: QPainter, theme: Theme, place: QRectF, text: str, *,
    start: int = 0, length: int = 0, lines: int = 2, role: str = "mono", tone: str = "text", match: str = "match",
    tail: bool = False,
) -> bool:  # fmt: skip
    """Draw at most `lines` lines from the top of `place`; returns whether that is the whole text.

    Role "mono" is for text of strangers, whose invisible characters are made visible.
    """
    font, mono = theme.font(role), role == "mono"
    leading, displayed = line_height(font, mono=mono), visible(text) if mono else text
    whole = _shorten(theme, displayed, place.width(), lines, role) == displayed
    if not whole:
        per_line = max(1, int(place.width() / max(1.0, QFontMetricsF(font).averageCharWidth())))
        displayed, start = excerpt_of(displayed, start, length, per_line * lines - 3, tail=tail)
        displayed = _shorten(theme, displayed, place.width(), lines, role)
    layout = span_layout(theme, displayed, start, length, role=role, match=match)
    break_lines(layout, displayed, place.width(), lines, leading)
    painter.save()
    painter.setClipRect(place.adjusted(0, 0, 1, 1))
    painter.setPen(theme.colour(tone))
    layout.draw(painter, place.topLeft())
    painter.restore()
    return whole


def break_lines(layout: QTextLayout, text: str, width: float, lines: int, leading: int) -> int:
    """Break a layout into at most `lines` lines, after a space or before a tag; returns the end of the last (UTF-16 units)."""
    flat = "".join(sign if sign <= "\uffff" else sign + "\0" for sign in text)  # one character for each UTF-16 unit
    end = 0
    layout.beginLayout()
    for i in range(lines):
        line = layout.createLine()
        if not line.isValid():
            break
        line.setLineWidth(width)
        start, end = line.textStart(), line.textStart() + line.textLength()
        better = _break_before(flat, start, end)
        if better < end:
            line.setLineWidth(left_of(line, better) + 0.5)
            end = start + line.textLength()
        line.setPosition(QPointF(0, i * leading + (leading - line.height()) / 2))
    layout.endLayout()
    return end


def lines_of(theme: Theme, text: str, width: float, most: int) -> int:
    """How many lines a model's text takes at this width, counted up to `most`.

    Only a text near that limit is laid out; of most texts the length is enough.
    """
    per_line = max(1, int(width / max(1.0, QFontMetricsF(theme.font("mono")).averageCharWidth())))
    if len(text) > per_line * (most - 1):
        return most
    if len(text) <= per_line and text.isascii():
        return 1
    displayed = visible(text)
    layout = span_layout(theme, displayed, 0, 0, role="mono", match="match")
    break_lines(layout, displayed, width, most, 1)
    return layout.lineCount()


def _break_before(flat: str, start: int, end: int) -> int:
    """The best position to break a line that starts at `start` and has room until `end`."""
    if end >= len(flat) or flat[end] == " ":
        return end
    cut = next((tag.start() for tag in ANY_TAG.finditer(flat, start) if start < tag.start() < end < tag.end()), end)
    space = flat.rfind(" ", start, cut) + 1
    return space if cut == end and space > start + (end - start) * SHORTEST else cut


def left_of(line: QTextLine, position: int) -> float:
    """The x position of a character. PySide returns a tuple (x, position), although its type says float."""
    position_in_line: object = line.cursorToX(position)
    return float(position_in_line[0]) if isinstance(position_in_line, tuple) else float(position_in_line)  # type: ignore[arg-type]


def _shorten(theme: Theme, text: str, width: float, lines: int, role: str) -> str:
    """The text, ended with an ellipsis if it needs more than `lines` lines."""
    layout = span_layout(theme, text, 0, 0, role=role, match="match")
    used = break_lines(layout, text, width, lines, 1)
    encoded = text.encode("utf-16-le", "replace")
    if used * 2 >= len(encoded):
        return text
    shortened = encoded[: max(0, used - 2) * 2].decode("utf-16-le", "ignore").rstrip()
    shortened = HALF.sub("", shortened)
    word = shortened.rfind(" ")
    return f"{shortened[:word] if word > max(2, len(shortened) - WORD) else shortened} {CUT}"


class HighlightedText(PaintedWidget):
    """A text wrapped and cut to whole lines; if it is cut, the tooltip has all of it."""

    def __init__(self, theme: Theme, lines: int, *, role: str = "mono", tone: str = "text") -> None:
        super().__init__(theme)
        self._role, self._tone, self._match = role, tone, "match"
        self._text, self._start, self._length = "", 0, 0
        self.set_lines(lines)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def say(self, text: str, start: int = 0, length: int = 0, *, match: str = "match") -> None:
        if (text, start, length, match) == (self._text, self._start, self._length, self._match):
            return
        self._text, self._start, self._length, self._match = text, start, length, match
        self.setAccessibleName(visible(text))
        set_tip(self, "")
        self.update()

    def set_lines(self, lines: int) -> None:
        self._lines = lines
        self.setFixedHeight(line_height(self.theme.font(self._role), mono=self._role == "mono") * lines)

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())

    def draw(self, painter: QPainter, place: QRectF) -> None:
        whole = draw_highlighted_text(
            painter,
            self.theme,
            place,
            self._text,
            start=self._start,
            length=self._length,
            lines=self._lines,
            role=self._role,
            tone=self._tone,
            match=self._match,
        )
        if not whole and not self.toolTip():
            set_tip(self, visible_lines(self._text))
