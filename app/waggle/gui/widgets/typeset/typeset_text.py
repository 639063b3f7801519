"""A question as it is set: the task large, fractions stacked, grids as squares. Painted, so nothing in it is parsed as markup."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QResizeEvent
from PySide6.QtWidgets import QSizePolicy

from waggle.gui.i18n.formatting import visible_lines
from waggle.gui.state.story.typesetting import Block, LabelledGrid, Words, set_question
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import PaintedWidget
from waggle.gui.widgets.typeset.number_grid import cell_size, draw_grid
from waggle.gui.widgets.typeset.typeset_lines import TypesetLines, scaled

SIZES = ((70, "hero"), (140, "display"), (320, "title"), (10_000, "body"))  # fonts of a task, by its length in characters
TASK_CELL, CELL, GRID_HIGH = 30, 20, 190  # pixels: a cell of the task's grid and of another one, and a grid, at most
APART, BETWEEN, BESIDE = 12, 5, 26  # pixels between paragraphs, between lines of one, and between grids side by side
OWN_SIZE = "body", "strong"  # fonts that are never smaller than usual
HEADING = 24  # characters that words such as "Example 1:" have at most


class PlacedBlock:
    """A block and its rectangle; the label of a grid stands left of that, `label` pixels wide."""

    def __init__(self, block: Block, place: QRectF, lines: TypesetLines | None = None, label: float = 0.0) -> None:
        self.block, self.place, self.lines, self.label = block, place, lines, label


class TypesetText(PaintedWidget):
    """Takes the height that its width asks for, but no more than `set_limit` says: then `is_cut`, and what matters most stays."""

    def __init__(self, theme: Theme, sizes: Sequence[tuple[int, str]] = SIZES) -> None:
        super().__init__(theme)
        self._sizes = sizes
        self._question = ""
        self._blocks: tuple[Block, ...] = ()
        self._limit = 10_000.0
        self._scale = 1.0
        self._placed: list[PlacedBlock] = []
        self._fitted: tuple[str, int, float, float] | None = None  # what the blocks were placed for
        self.is_cut = False
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # as the texts of models
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def say(self, question: str) -> None:
        if question != self._question:
            self._question, self._blocks = question, set_question(question)
            self.setAccessibleName(visible_lines(question))
            self.fit()

    @property
    def has_grid(self) -> bool:
        """Whether its task has a grid."""
        return any(block.task and not isinstance(block, Words) for block in self._blocks)

    def set_limit(self, height: float) -> None:
        """The most pixels of height."""
        if height != self._limit:
            self._limit = height
            self.fit()

    def set_scale(self, scale: float) -> None:
        """How many times the usual size everything has: larger where there is room."""
        if scale != self._scale:
            self._scale = scale
            self.fit()

    def fit(self) -> None:
        """Place the blocks, and take the height that they need."""
        fitted = self._question, self.width(), self._limit, self._scale
        if fitted == self._fitted:
            return
        self._fitted = fitted
        self._placed = self._place(self._blocks)
        self.is_cut = _height(self._placed) > self._limit
        if self.is_cut:  # without the instructions, else the task alone
            shorter = (self._place([block for block in self._blocks if matters(block)]) for matters in (_is_example, _is_task))
            self._placed = next((placed for placed in shorter if 0 < _height(placed) <= self._limit), []) or self._beginning()
        self.setFixedHeight(round(_height(self._placed) + 0.5))
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()

    def sizeHint(self) -> QSize:
        return QSize(self.theme.px(400), self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(self.theme.px(160), self.height())

    def _place(self, blocks: Sequence[Block]) -> list[PlacedBlock]:
        """Place blocks below each other, and the grids of a paragraph side by side."""
        placed: list[PlacedBlock] = []
        x = bottom = 0.0  # the end of the last grid, and of everything
        top = 0.0  # of the last line
        for block in blocks:
            next_top = bottom + (APART if block.apart else BETWEEN) if placed else 0.0
            if isinstance(block, Words):
                lines = TypesetLines(self.theme, block.text, self._font(block), "text" if block.task else "text_soft")
                lines.lay_out(self.width())
                place = QRectF(0, next_top, self.width(), lines.height)
                placed.append(PlacedBlock(block, place, lines))
                x = 0.0
            else:
                label, size = self._label_width(block.label), self._grid_size(block)
                if x and not block.apart and x + BESIDE + label + size.width() <= self.width():
                    x, next_top = x + BESIDE, top
                else:
                    x = 0.0
                place = QRectF(QPointF(x + label, next_top), size)
                placed.append(PlacedBlock(block, place, label=label))
                x = place.right()
            top, bottom = next_top, max(bottom, place.bottom())
        return placed

    def _beginning(self) -> list[PlacedBlock]:
        """As much of the task as there is room for."""
        placed = self._place([block for block in self._blocks if block.task])
        fitting = [each for each in placed if each.place.bottom() <= self._limit]
        if not fitting and placed and placed[0].lines is not None:
            first, lines = placed[0], placed[0].lines
            lines.lay_out(self.width(), max(1, int(self._limit / lines.leading)))
            return [PlacedBlock(first.block, QRectF(0, 0, self.width(), lines.height), lines)]
        return fitting

    def _font(self, block: Words) -> QFont:
        if block.code or not block.task:  # never smaller than usual
            return scaled(self.theme.font("mono" if block.code else "small"), max(1.0, self._scale))
        length = sum(len(each.text) for each in self._blocks if isinstance(each, Words) and each.task)
        role = next(role for most, role in self._sizes if length <= most)
        return scaled(self.theme.font(role), max(1.0, self._scale) if role in OWN_SIZE else self._scale)

    def _label_width(self, label: str) -> float:
        return QFontMetricsF(self._label_font()).horizontalAdvance(label) + 10 if label else 0.0

    def _label_font(self) -> QFont:
        return scaled(self.theme.font("small"), max(1.0, self._scale))

    def _grid_size(self, block: LabelledGrid) -> QSizeF:
        scale = self._scale
        room = QRectF(0, 0, self.width() - self._label_width(block.label), self.theme.px(scale * GRID_HIGH))
        side = cell_size(block.grid, room, self.theme.px(scale * (TASK_CELL if block.task else CELL)))
        return QSizeF(side * len(block.grid[0]), side * len(block.grid))

    def draw(self, painter: QPainter, place: QRectF) -> None:
        for each in self._placed:
            if each.lines is not None:
                each.lines.draw(painter, each.place.topLeft())
            elif isinstance(each.block, LabelledGrid):
                side = each.place.height() / len(each.block.grid)
                painter.setFont(self._label_font())
                painter.setPen(self.theme.colour("text_soft"))
                before = QRectF(each.place.left() - each.label, each.place.top(), each.label, side)
                one_line_high = Qt.TextFlag.TextSingleLine | Qt.TextFlag.TextDontClip  # a small grid is lower than its label
                painter.drawText(before, Qt.AlignmentFlag.AlignVCenter | one_line_high, each.block.label)
                draw_grid(painter, self.theme, each.block.grid, each.place, side)


def _height(placed: Sequence[PlacedBlock]) -> float:
    return max((each.place.bottom() for each in placed), default=0.0)


def _is_task(block: Block) -> bool:
    return block.task


def _is_example(block: Block) -> bool:
    """Whether it is the task or an example of one."""
    return block.task or isinstance(block, LabelledGrid) or len(block.text) <= HEADING
