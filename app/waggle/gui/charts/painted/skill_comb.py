"""The skills as cells of a honeycomb: each is filled as high as its held-out score, and has a ring where a peer taught it."""

import math
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPainterPath, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy

from waggle.gui.charts.painted.painted_chart import PaintedChart
from waggle.gui.i18n.formatting import figure, one_line, percent, tr
from waggle.gui.state.story.learning_story import Skill
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import hexagon, words_in_lines
from waggle.gui.widgets.typeset.typeset_lines import scaled

CellSize = Literal["low", "usual", "wide", "vast"]
RADIUS: dict[CellSize, int] = {
    "low": 46,
    "usual": 54,
    "wide": 64,
    "vast": 84,
}  # pixels before text scaling, of a cell with a name
NAMELESS, RING = 27, 3.0  # pixels before text scaling: radius of a cell without a name, and width of a ring
NAMED = 14  # from more skills on, cells have no names
ROWS = 2  # where there is room
LINES, SMALLEST = 2, 0.8  # of a name, and of its size
AIR = 8  # pixels before text scaling, beside the longest name of a cell


def skill_words(skill: Skill) -> str:
    """A skill in one line, for tooltips and screen readers."""
    words = tr(one_line(skill.title))
    words += f": {tr('not tested yet')}" if not skill.total else (
        tr(": %1 of %2 right").replace("%1", figure(skill.right)).replace("%2", figure(skill.total)))  # fmt: skip
    if skill.teacher is None:
        return words
    taught = tr("%1 was right first").replace("%1", skill.teacher) if skill.teacher else tr("found by itself")
    return f"{words}, {taught}"


class SkillComb(PaintedChart):
    """As many rows as the width needs; from more than NAMED skills on, the cells are small and have no names."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, name=tr("Specialties"))
        self._skills: tuple[Skill, ...] = ()
        self._size: CellSize = "usual"
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(1)

    def show_skills(self, skills: tuple[Skill, ...]) -> None:
        if skills == self._skills:
            return
        self._skills = skills
        self.updateGeometry()
        self.setAccessibleDescription("; ".join(map(skill_words, skills)))
        self._fit()
        self.update()

    def set_size(self, size: CellSize) -> None:
        self._size = size
        self.updateGeometry()
        self._fit()
        self.update()

    def radius(self) -> float:
        return self.theme.px(NAMELESS if len(self._skills) > NAMED else RADIUS[self._size])

    def _step(self) -> float:
        return math.sqrt(3) * (self.radius() + 1.5)

    def columns(self) -> int:
        """Cells in a whole row; rows are as equal as possible."""
        fitting = max(1, int((self.width() - 2 * RING - self._step() / 2) // self._step()))
        rows = math.ceil(max(1, len(self._skills)) / fitting)
        return math.ceil(max(1, len(self._skills)) / rows)

    def _fit(self) -> None:
        rows = math.ceil(len(self._skills) / self.columns())
        radius = self.radius()
        self.setFixedHeight(math.ceil(2 * radius + (rows - 1) * 1.5 * (radius + 1.5) + 2 * RING) if self._skills else 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def sizeHint(self) -> QSize:
        """As wide as ROWS rows need."""
        across = math.ceil(len(self._skills) / ROWS) + (0.5 if len(self._skills) > 1 else 0.0)
        return QSize(math.ceil(across * self._step() + 2 * RING) + 1, self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(round(1.6 * self._step()), self.height())

    def centre(self, number: int) -> QPointF:
        """The middle of a cell, read from left to right."""
        columns, radius = self.columns(), self.radius()
        down, across = divmod(number, columns)
        x = RING + self._step() * (across + (0.5 if down % 2 == 0 else 1.0))
        x = self.width() - x if self.layoutDirection() == Qt.LayoutDirection.RightToLeft else x
        return QPointF(x, RING + radius + down * 1.5 * (radius + 1.5))

    def draw(self, painter: QPainter, place: QRectF) -> None:
        for number, skill in enumerate(self._skills):
            self._draw_skill(painter, skill, self.centre(number))

    def _draw_skill(self, painter: QPainter, skill: Skill, middle: QPointF) -> None:
        radius, taught = self.radius() - 2, bool(skill.teacher)
        shape = QPainterPath()
        shape.addPolygon(hexagon(middle.x(), middle.y(), radius))
        shape.closeSubpath()
        painter.fillPath(shape, self.theme.colour("sunken"))
        if skill.total and skill.right:
            painter.save()
            painter.setClipPath(shape)
            height = 2 * radius * skill.share
            painter.fillRect(
                QRectF(middle.x() - radius, middle.y() + radius - height, 2 * radius, height), self.theme.colour("match")
            )
            painter.restore()
        edge = self.theme.colour("peer" if taught else "accent_line" if skill.right else "edge")
        painter.setPen(QPen(edge, RING if taught else 1.3))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(shape)
        self._write(painter, skill, middle, radius)

    def _write(self, painter: QPainter, skill: Skill, middle: QPointF, radius: float) -> None:
        centred = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter
        named = len(self._skills) <= NAMED
        figure_words = percent(skill.share) if skill.total else "" if named else "–"
        painter.setFont(self.theme.font("heading" if named else "tag"))
        painter.setPen(self.theme.colour("text" if skill.total else "text_faint"))
        metrics = QFontMetricsF(painter.font())
        if not named:
            painter.drawText(QRectF(middle.x() - radius, middle.y() - radius, 2 * radius, 2 * radius), centred, figure_words)
            return
        room = math.sqrt(3) * radius - self.theme.px(3)
        airy = room - self.theme.px(AIR)  # a name in the smallest letters may take the rest
        font = fitting(self.theme.font("caption"), tr(one_line(skill.title)), airy)
        small = QFontMetricsF(font)
        lines = name_lines(small, tr(one_line(skill.title)), airy, room)
        above = metrics.height() if figure_words else 0
        height = above + len(lines) * small.height() * 0.92
        y = middle.y() - height / 2
        painter.drawText(QRectF(middle.x() - room / 2, y, room, metrics.height()), centred, figure_words)
        painter.setFont(font)
        painter.setPen(self.theme.colour("text_soft"))
        y += above
        for line in lines:
            painter.drawText(QRectF(middle.x() - room / 2 - 2, y, room + 4, small.height()), centred, line)
            y += small.height() * 0.92

    def words_at(self, point: QPointF) -> str:
        """The words about the skill at this point; empty where there is none."""
        for number, skill in enumerate(self._skills):
            away = self.centre(number) - point
            if math.hypot(away.x(), away.y()) < self.radius() * 0.9:
                return skill_words(skill)
        return ""


def fitting(font: QFont, name: str, room: float) -> QFont:
    """The font, smaller where a word of the name would not fit, down to SMALLEST."""
    widest = max(QFontMetricsF(font).horizontalAdvance(word) for word in name.split() or [""])
    return scaled(font, max(SMALLEST, int(font.pixelSize() * room / widest) / font.pixelSize())) if widest > room else font


def name_lines(metrics: QFontMetricsF, name: str, room: float, most: float) -> list[str]:
    """A name in at most LINES lines, broken at spaces so that each has room, and elided at the width `most`."""
    lines = words_in_lines(metrics, name, room, LINES)
    return [metrics.elidedText(line, Qt.TextElideMode.ElideRight, most) for line in lines]
