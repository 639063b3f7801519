"""The running round as six steps with counts: a done one has a tick, the present one is filled, or has a rim while it is held.

While the engine starts, the parts of the start stand there in the same way.
"""

from typing import Literal, NamedTuple

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen, QResizeEvent

from waggle.core.text.round_number import round_number
from waggle.gui.i18n.formatting import figure, later, plural, tr
from waggle.gui.state.story.round_steps import TITLES
from waggle.gui.state.story.slow_start import REASONS
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import mirror_box
from waggle.gui.widgets.painted_widgets import PaintedWidget
from waggle.gui.widgets.text import set_tip
from waggle.protocol.state import HALTED_PHASES, STAGES, Stage, State

StepState = Literal["done", "now", "held", "next"]
HERE = ("now", "held")
INK = {"done": "accent_text", "now": "on_accent", "held": "accent_text", "next": "text_faint"}
EDGE = {"done": "accent_line", "now": "accent_line", "held": "accent_line", "next": "edge"}
GROUND = {"done": "accent_soft", "now": "accent", "held": "surface", "next": "surface"}
CIRCLE = 17.0
SHORTEST_LINK = 5.0  # pixels of the line between two steps
BESIDE, BEHIND = 10.0, 8.0  # pixels between a circle and its words, and after the words
LINK = 24.0  # pixels that each step keeps for the line to the next one, where all are equally wide
AFTER_ROUND = 24.0  # pixels between the number of the round and the first step


class Step(NamedTuple):
    """`icon` is empty for a part of the start, which has none."""

    title: str
    icon: str
    when: StepState
    words: str = ""


def steps_of(state: State) -> list[Step]:
    """The steps of the round, or of the start."""
    if state.phase != "preparing":
        return [Step(tr(TITLES[stage]), stage, step_state(stage, state), step_progress(stage, state)) for stage in STAGES]
    done = state.preparing.done if state.preparing is not None else -1
    steps = []
    for place, part in enumerate(REASONS):
        if place == done and state.preparing is not None:  # the engine may name it in other words
            part = later("Downloading the model") if state.downloading is not None else state.preparing.part
        steps.append(Step(tr(part), "", "done" if place < done else "now" if place == done else "next"))
    return steps


def step_state(stage: Stage, state: State) -> StepState:
    if state.stage is None:
        return "next"
    here, now = STAGES.index(stage), STAGES.index(state.stage)
    if here == now:
        return "held" if state.phase in HALTED_PHASES else "now"
    return "done" if here < now else "next"


def step_progress(stage: Stage, state: State) -> str:
    """The count of a stage in this round, in words; empty before its turn."""
    when = step_state(stage, state)
    if when == "next" and stage != "gather":
        return ""

    def going_on(words: str) -> str:
        return tr("stopped here") if when == "held" else words

    match stage:
        case "draw":
            return (
                plural(state.questions_drawn, "%n question", "%n questions") if state.stage != "draw" else going_on(tr("picking"))
            )
        case "answer":
            return tr("%1 of %2").replace("%1", figure(state.answered)).replace("%2", figure(state.answers_expected))
        case "judge":
            return tr("%1 judged").replace("%1", figure(state.judged)) if state.judged else going_on(tr("judging"))
        case "share":
            return plural(state.shared, "%n example", "%n examples") if when == "done" else going_on(tr("sharing"))
        case "gather":
            return tr("%1 waiting").replace("%1", figure(state.waiting)) if state.waiting else ""
        case "learn":
            return tr("%1 yours, %2 theirs").replace("%1", figure(state.local)).replace("%2", figure(state.external))


class RoundStepper(PaintedWidget):
    """Paints the steps of a State; its accessible name says the same."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._steps, self._round = steps_of(State()), ""
        self.setFixedHeight(max(40, theme.px(40)))  # the circles do not grow with the text

    def show_state(self, state: State) -> None:
        steps = steps_of(state)
        running = state.stage is not None and state.phase != "preparing"
        words = tr("Round %1").replace("%1", figure(round_number(state.round))) if running else ""
        if (steps, words) != (self._steps, self._round):
            self._steps, self._round = steps, words
            spoken = [_spoken(step) for step in steps if step.when != "next"]
            done = ", ".join(spoken) or tr("No round is being played")
            self.setAccessibleName(f"{words}: {done}" if words else done)
            self._show_tip()
            self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_tip()

    def widths(self) -> tuple[list[float], bool]:
        """The width of each step, and whether only the present one has room for words. Titles are never cut."""
        width, count = self.width() - self._room_of_round(), len(self._steps)
        needed = [self._needed_width(step.title, step.words if step.when in HERE else "") for step in self._steps]
        if (max(needed) + LINK) * count <= width:
            return [width / count] * count, False
        whole = [self._needed_width(step.title, step.words) for step in self._steps]
        if sum(whole) <= width:
            needed = whole
        bare = sum(needed) > width
        if bare:
            needed = [wide if step.when in HERE else 2 * CIRCLE + 2 for wide, step in zip(needed, self._steps, strict=True)]
        spare = (width - sum(needed)) / (count - 1)
        return [*(least + spare for least in needed[:-1]), needed[-1]], bare

    def _room_of_round(self) -> float:
        """Pixels of the number of the round and the gap behind it; 0 if it would take the room of other words."""
        if not self._round:
            return 0
        room = QFontMetricsF(self.theme.font("heading")).horizontalAdvance(self._round) + AFTER_ROUND
        whole = sum(self._needed_width(step.title, step.words) for step in self._steps)
        return room if whole + (len(self._steps) - 1) * LINK + room <= self.width() else 0

    def is_cut(self) -> bool:
        """Whether some words have no room."""
        widths, bare = self.widths()
        steps = zip(widths, self._steps, strict=True)
        return bare or any(self._needed_width(step.title, step.words) > wide + 1 for wide, step in steps)

    def _needed_width(self, title: str, words: str = "") -> float:
        texts = (("label", title), ("caption", words))
        return (
            2 * CIRCLE
            + BESIDE
            + BEHIND
            + max(QFontMetricsF(self.theme.font(role)).horizontalAdvance(line) for role, line in texts)
        )

    def _show_tip(self) -> None:
        """Show all words as a tooltip if some have no room."""
        set_tip(self, ", ".join(map(_spoken, self._steps)) if self.is_cut() else "")

    def draw(self, painter: QPainter, place: QRectF) -> None:
        widths, bare = self.widths()
        start = self._room_of_round()
        if start:
            painter.setFont(self.theme.font("heading"))
            painter.setPen(self.theme.colour("text"))
            painter.drawText(
                mirror_box(painter, QRectF(0, 0, start, place.height()), place), Qt.AlignmentFlag.AlignVCenter, self._round
            )
        for i, step in enumerate(self._steps):
            box = mirror_box(painter, QRectF(start + sum(widths[:i]), 0, widths[i], place.height()), place)
            used = 2 * CIRCLE if bare and step.when not in HERE else self._words(painter, box, step)
            if i < len(self._steps) - 1:
                self._link(painter, box, used, step.when)
            self._circle(painter, box, i, step)

    def _circle(self, painter: QPainter, box: QRectF, place: int, step: Step) -> None:
        round_ = mirror_box(painter, QRectF(box.left() + 1, box.center().y() - CIRCLE, 2 * CIRCLE, 2 * CIRCLE), box)
        painter.setPen(QPen(self.theme.colour(EDGE[step.when]), 1.5))
        painter.setBrush(self.theme.colour(GROUND[step.when]))
        painter.drawEllipse(round_)
        if icon := "check" if step.when == "done" else step.icon:
            inner = round_.adjusted(CIRCLE - 9, CIRCLE - 9, 9 - CIRCLE, 9 - CIRCLE)
            self.theme.draw_icon(painter, icon, INK[step.when], inner)
            return
        painter.setFont(self.theme.font("label"))
        painter.setPen(self.theme.colour(INK[step.when]))
        painter.drawText(round_, Qt.AlignmentFlag.AlignCenter, figure(place + 1))

    def _words(self, painter: QPainter, box: QRectF, step: Step) -> float:
        """Draw title and count; return how far into the box they reach, in pixels."""
        x, y = box.left() + 2 * CIRCLE + BESIDE, box.center().y()
        room = box.right() - x - BEHIND
        painter.setFont(self.theme.font("label"))
        painter.setPen(self.theme.colour("text_soft" if step.when == "next" else "text"))
        line = self.theme.px(18)
        title = QRectF(x, y - (line if step.words else line / 2), room, line)
        painter.drawText(mirror_box(painter, title, box), Qt.AlignmentFlag.AlignVCenter, step.title)
        used = painter.fontMetrics().horizontalAdvance(step.title)
        if step.words:
            metrics = QFontMetricsF(self.theme.font("caption"))
            cut = metrics.elidedText(step.words, Qt.TextElideMode.ElideRight, room)
            painter.setFont(self.theme.font("caption"))
            painter.setPen(self.theme.colour("accent_text" if step.when in HERE else "text_faint"))
            painter.drawText(mirror_box(painter, QRectF(x, y + 1, room + 4, line), box), Qt.AlignmentFlag.AlignVCenter, cut)
            used = max(used, int(metrics.horizontalAdvance(cut)))
        return x - box.left() + used

    def _link(self, painter: QPainter, box: QRectF, used: float, when: StepState) -> None:
        room = QRectF(box.left() + used + 8, box.center().y(), box.width() - used - 14, 0)
        if room.width() > SHORTEST_LINK:
            painter.setPen(QPen(self.theme.colour("accent_line" if when == "done" else "border"), 1.5))
            line = mirror_box(painter, room, box)
            painter.drawLine(line.topLeft(), line.topRight())


def _spoken(step: Step) -> str:
    return f"{step.title} {step.words}".strip()
