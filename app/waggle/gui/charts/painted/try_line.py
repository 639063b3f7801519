"""The tries at one question as low chips: a sign, what was answered, how often, and an arrow for what learning did to it."""

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QMouseEvent, QPainter, QPen

from waggle.gui.charts.painted.try_chips import BETWEEN, GROUNDS, WIDEST, Chip, TryChips, arrow_of, count_words
from waggle.gui.i18n.formatting import tr
from waggle.gui.state.story.tries import KIND_SIGNS, Try
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.typeset.highlighted_text import CARET
from waggle.gui.widgets.typeset.number_grid import cell_size, draw_grid
from waggle.gui.widgets.typeset.typeset_lines import TypesetLines, scaled

BESIDE, ABOVE, APART = 10, 5, 6  # pixels at the sides of a chip, above and below its answer, and between its parts
SIGN, CELL, GRID_ROOM = 14, 14, (230, 84)  # pixels: a sign or arrow, a cell of a grid at most, and a grid at most
OBVIOUS = "right", "wrong", "written", "writing"  # kinds whose sign needs no words beside it
UNJUDGED = "written", "writing"
LEAST_UNJUDGED = 84  # pixels


class TryLine(TryChips):
    """Unjudged tries are equally wide and show the end of what is written, so that nothing moves as they grow."""

    pressed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.pressed.emit()

    def _typeset(self, each: Try) -> tuple[TypesetLines | None, QSizeF]:
        if each.kind in UNJUDGED:
            return None, QSizeF(0, self._high())
        if each.grid is not None:
            side = cell_size(
                each.grid,
                QRectF(0, 0, *(self.theme.px(self._scale * side) for side in GRID_ROOM)),
                self.theme.px(self._scale * CELL),
            )
            return None, QSizeF(side * len(each.grid[0]), max(self._high(), side * len(each.grid)))
        lines = TypesetLines(self.theme, each.text, self._font(), "text" if each.kind in GROUNDS else "text_soft")
        lines.lay_out(self._widest(), 1)
        return lines, QSizeF(lines.width + 1, max(self._high(), lines.height))

    def _place_chips(self) -> None:
        for chip in self._chips:  # the room for long answers follows from the width
            chip.lines, chip.size = self._typeset(chip.each)
        super()._place_chips()

    def _widest(self) -> float:
        """The most pixels of an answer: half of the line."""
        return max(self.theme.px(WIDEST), self.width() / 2)

    def _font(self) -> QFont:
        return scaled(self.theme.font("body"), self._scale)

    def _high(self) -> float:
        return QFontMetricsF(self._font()).height()

    def _size_of(self, chip: Chip) -> QSizeF:
        high = chip.size.height() + 2 * ABOVE
        if chip.each.kind in UNJUDGED:
            count = len(self._chips)
            while count > 1 and (self.width() - (count - 1) * BETWEEN) / count < self.theme.px(LEAST_UNJUDGED):
                count = (count + 1) // 2
            return QSizeF(max(1.0, (self.width() - (count - 1) * BETWEEN) / count - 1), high)
        beside = sum(APART + self._tag_width(words) for words in self._beside(chip))
        arrow = APART + self.theme.px(SIGN) if chip.each.effect else 0
        return QSizeF(2 * BESIDE + self.theme.px(SIGN) + APART + chip.size.width() + beside + arrow, high)

    def _beside(self, chip: Chip) -> list[str]:
        """The words behind the answer."""
        kind = "" if chip.each.kind in OBVIOUS else chip.words
        return [words for words in (count_words(chip.each), kind, tr("human") if chip.each.human else "") if words]

    def _tag_width(self, words: str) -> float:
        return QFontMetricsF(self.theme.font("tag")).horizontalAdvance(words)

    def draw_chip(self, painter: QPainter, chip: Chip) -> None:
        each, inner = chip.each, chip.place.adjusted(BESIDE, ABOVE, -BESIDE, -ABOVE)
        tone, sign = KIND_SIGNS[each.kind]
        ink = {"good": "good", "accent": "accent_text"}.get(tone, "text_soft")
        painter.setPen(QPen(self.theme.colour({"good": "good", "accent": "accent_line"}.get(tone, "well_edge")), 1))
        painter.setBrush(self.theme.colour(GROUNDS.get(each.kind, "sunken")))
        painter.drawRoundedRect(chip.place.adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        side = self.theme.px(SIGN)
        x = inner.left()
        self.theme.draw_icon(painter, sign, ink, QRectF(x, inner.center().y() - side / 2, side, side))
        x += side + APART
        top = inner.center().y() - chip.size.height() / 2
        if each.kind in UNJUDGED:
            self._draw_unjudged(painter, each, QRectF(x, top, inner.right() - x, chip.size.height()))
            return
        if chip.lines is not None:
            chip.lines.draw(painter, QPointF(x, inner.center().y() - chip.lines.height / 2))
        elif each.grid is not None:
            cell = chip.size.width() / len(each.grid[0])
            draw_grid(
                painter,
                self.theme,
                each.grid,
                QRectF(QPointF(x, inner.center().y() - cell * len(each.grid) / 2), chip.size),
                cell,
            )
        x += chip.size.width()
        painter.setFont(self.theme.font("tag"))
        painter.setPen(self.theme.colour(ink))
        for words in self._beside(chip):
            place = QRectF(x + APART, inner.top(), self._tag_width(words) + 2, inner.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, words)
            x += APART + self._tag_width(words)
        if each.effect:
            self.theme.draw_icon(painter, *arrow_of(each), QRectF(x + APART, inner.center().y() - side / 2, side, side))

    def _draw_unjudged(self, painter: QPainter, each: Try, place: QRectF) -> None:
        """The end of what is written so far."""
        words = each.text + (CARET if self.is_going and each.kind == "writing" else "")
        cut = QFontMetricsF(self._font()).elidedText(words, Qt.TextElideMode.ElideLeft, place.width())
        painter.setFont(self._font())
        painter.setPen(self.theme.colour("text"))
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, cut)
