"""The tries at one question as chips, equal ones merged: what was answered, how often, and what it is worth."""

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy

from waggle.gui.charts.painted.painted_chart import PaintedChart
from waggle.gui.i18n.formatting import figure, tr
from waggle.gui.state.story.tries import KIND_SIGNS, KIND_WORDS, Try
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import chip_width, draw_chip
from waggle.gui.widgets.typeset.number_grid import cell_size, draw_grid
from waggle.gui.widgets.typeset.typeset_lines import TypesetLines, scaled

BESIDE, ABOVE, BETWEEN = 14, 9, 10  # pixels between a chip's edge and its answer, at the side and above, and between chips
ARROW = 14  # pixels: the side of an arrow
CELL, GRID_ROOM = 18, (260, 130)  # pixels: a cell of a grid at most, and a grid at most
SHORT, WIDEST, LINES = 14, 300, 2  # characters of an answer in large type, pixels that a longer one may take, and its lines
GROUNDS = {"right": "good_soft", "untagged": "accent_soft", "truth": "surface"}  # of other kinds: sunken


class Chip(msgspec.Struct):
    """A try and how it is set; the rectangle comes last."""

    each: Try
    lines: TypesetLines | None
    size: QSizeF  # of the answer alone
    words: str  # what it is worth
    place: QRectF = QRectF()


def try_words(each: Try, kind_words: str) -> str:
    """A try in words: "8 × 1/1: right, more likely next time"."""
    if each.kind == "truth":
        return f"{kind_words}: {each.text}"
    effect = tr("more likely next time") if each.effect > 0 else tr("less likely") if each.effect else ""
    return f"{figure(each.count)} × {each.text}: " + ", ".join(filter(None, (kind_words, effect)))


class TryChips(PaintedChart):
    """As many chips in a line as fit; its height follows from its width."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, name=tr("Its tries"))
        self._chips: list[Chip] = []
        self._drawn: tuple[tuple[Try, ...], bool] = ((), True)
        self._scale = 1.0
        self._fitted: object = None  # the tries, scale and width for which the chips were placed
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # as the texts of models
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_scale(self, scale: float) -> None:
        """How many times the usual size everything has: larger where there is room."""
        if scale != self._scale:
            self._scale = scale
            self._set_all()

    def show_tries(self, tries: Sequence[Try], *, going: bool = True) -> None:
        """`going`: what is not finished yet is still being written."""
        if (tuple(tries), going) != self._drawn:
            self._drawn = tuple(tries), going
            self._set_all()

    def _set_all(self) -> None:
        tries, going = self._drawn
        self._chips = [self._set(each, going=going) for each in tries]
        self.setAccessibleDescription(". ".join(try_words(chip.each, chip.words) for chip in self._chips))
        self.fit()

    def _set(self, each: Try, *, going: bool) -> Chip:
        words = tr(KIND_WORDS[each.kind]) if going or each.kind != "writing" else tr("not finished")
        lines, size = self._typeset(each)
        return Chip(each, lines, size, words)

    def _typeset(self, each: Try) -> tuple[TypesetLines | None, QSizeF]:
        """The words of an answer, none if it is a grid, and the size of either."""
        if each.grid is not None:
            room = QRectF(0, 0, *(self.theme.px(self._scale * side) for side in GRID_ROOM))
            side = cell_size(each.grid, room, self.theme.px(self._scale * CELL))
            return None, QSizeF(side * len(each.grid[0]), side * len(each.grid))
        short = len(each.text) <= SHORT
        font = scaled(self.theme.font("display" if short else "body"), self._scale if short else max(1.0, self._scale))
        lines = TypesetLines(self.theme, each.text, font, "text" if each.kind in GROUNDS else "text_soft")
        lines.lay_out(self.theme.px(self._scale * WIDEST), LINES)
        return lines, QSizeF(lines.width + 1, lines.height)

    def fit(self) -> None:
        """Place the chips, and take the height that they need."""
        fitted = self._drawn, self._scale, self.width()
        if fitted != self._fitted:
            self._fitted = fitted
            self._place_chips()

    def _place_chips(self) -> None:
        x = y = high = 0.0
        for chip in self._chips:
            size = self._size_of(chip)
            if x and x + size.width() > self.width():
                x, y, high = 0.0, y + high + BETWEEN, 0.0
            chip.place = QRectF(QPointF(x, y), size)
            x, high = x + size.width() + BETWEEN, max(high, size.height())
        for chip in self._chips:  # chips of a line are equally high
            line = [other.place.height() for other in self._chips if other.place.top() == chip.place.top()]
            chip.place.setHeight(max(line))
        self.setFixedHeight(round(y + high + 0.5))
        self.update()

    def _size_of(self, chip: Chip) -> QSizeF:
        below = chip_width(self.theme, chip.words, icon=True, bare=True) + (self.theme.px(ARROW) + 4 if chip.each.effect else 0)
        across = max(chip.size.width() + self._count_width(chip.each), below)
        return QSizeF(across + 2 * BESIDE, chip.size.height() + self.theme.size["chip"] + 2 * ABOVE)

    def _count_width(self, each: Try) -> float:
        words = count_words(each)
        return QFontMetricsF(self._count_font()).horizontalAdvance(words) + 8 if words else 0.0

    def _count_font(self) -> QFont:
        return scaled(self.theme.font("heading"), max(1.0, self._scale))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def sizeHint(self) -> QSize:
        return QSize(self.theme.px(WIDEST), self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(self.theme.px(WIDEST), self.height())

    @property
    def is_going(self) -> bool:
        """Whether what is not finished yet is still being written."""
        return self._drawn[1]

    @property
    def is_cut(self) -> bool:
        """Whether an answer has less room than it needs."""
        return any(chip.lines is not None and chip.lines.is_cut for chip in self._chips)

    def right_places(self) -> list[QPointF]:
        """The middles of the chips of right answers."""
        return [chip.place.center() for chip in self._chips if chip.each.kind == "right"]

    def words_at(self, point: QPointF) -> str:
        return next((try_words(chip.each, chip.words) for chip in self._chips if chip.place.contains(point)), "")

    def draw(self, painter: QPainter, place: QRectF) -> None:
        for chip in self._chips:
            self.draw_chip(painter, chip)

    def draw_chip(self, painter: QPainter, chip: Chip) -> None:
        each, inner = chip.each, chip.place.adjusted(BESIDE, ABOVE, -BESIDE, -ABOVE)
        tone, sign = KIND_SIGNS[each.kind]
        edge = tone if tone == "good" else "accent_line" if tone == "accent" else "border"
        painter.setPen(QPen(self.theme.colour(edge), 1))
        painter.setBrush(self.theme.colour(GROUNDS.get(each.kind, "sunken")))
        painter.drawRoundedRect(chip.place.adjusted(0.5, 0.5, -0.5, -0.5), 10, 10)
        if chip.lines is not None:
            chip.lines.draw(painter, inner.topLeft())
        elif each.grid is not None:
            draw_grid(painter, self.theme, each.grid, QRectF(inner.topLeft(), chip.size), chip.size.height() / len(each.grid))
        if words := count_words(each):
            painter.setFont(self._count_font())
            painter.setPen(self.theme.colour("text_soft"))
            beside = QRectF(inner.left() + chip.size.width() + 8, inner.top(), chip.place.width(), chip.size.height())
            painter.drawText(beside, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, words)
        below = QPointF(inner.left(), inner.bottom() - self.theme.size["chip"] + 2)
        used = self._draw_worth(painter, below, chip.words, tone, sign)
        if each.effect:
            side = self.theme.px(ARROW)
            place = QRectF(below.x() + used + 4, below.y() + (self.theme.size["chip"] - side) / 2, side, side)
            self.theme.draw_icon(painter, *arrow_of(each), place)

    def _draw_worth(self, painter: QPainter, corner: QPointF, words: str, tone: str, sign: str) -> float:
        """An icon and words in the ink of the kind, without a ground of their own; returns their width."""
        ink = {"good": "good", "accent": "accent_text"}.get(tone, "text_soft")
        return draw_chip(painter, self.theme, corner, words, "bare", sign, ink=ink)


def arrow_of(each: Try) -> tuple[str, str]:
    """The icon and its colour for what learning did to a try."""
    return ("up", "accent_text") if each.effect > 0 else ("dip", "text_faint")


def count_words(each: Try) -> str:
    return f"×{figure(each.count)}" if each.count > 1 else ""
