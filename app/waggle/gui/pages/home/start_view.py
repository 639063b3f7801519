"""What stands on Home while the engine starts: why it takes so long, and a question for the person meanwhile."""

from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, QTimer
from PySide6.QtGui import QHideEvent, QPainter, QPen, QShowEvent
from PySide6.QtWidgets import QWidget

from waggle.gui.charts.painted.try_chips import TryChips
from waggle.gui.i18n.formatting import later, plural, tr
from waggle.gui.state.story.slow_start import REASONS, slow_words
from waggle.gui.state.story.tries import Try
from waggle.gui.state.story.warm_up import WarmUp, is_right, warm_up
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import StretchRow
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.inputs import TextField
from waggle.gui.widgets.drawing import hexagon
from waggle.gui.widgets.layout import as_widget, card, column, restyle, row
from waggle.gui.widgets.painted_widgets import PaintedWidget
from waggle.gui.widgets.part_bar import PartBar
from waggle.gui.widgets.text import announce, text
from waggle.protocol.events import Downloading
from waggle.protocol.state import State
from waggle.protocol.text.status_text import duration_text, part_text, sentence

TICK_MS = 1000
TRIES = 0.8  # the size of tries, as a share of that on the stage
PATIENCE = 4.0  # seconds from which the start is worth a question
APART = 22  # pixels between the parts of the start
SIGN, BAR_WIDE = 20, 420  # pixels before text scaling: the sign of a step, and the width of a bar


class StepSign(PaintedWidget):
    """A tick for a step that is done, a ringed cell for the present one, and an empty one for those to come."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, QSize(theme.px(SIGN), theme.px(SIGN)))
        self._ahead = 1

    def show_step(self, ahead: int) -> None:
        """How many steps it is ahead of the present one; negative: it is done."""
        if self._ahead != ahead:
            self._ahead = ahead
            self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        if self._ahead < 0:
            self.theme.draw_icon(painter, "check", "good", place)
            return
        here = self._ahead == 0
        painter.setPen(QPen(self.theme.colour("accent_line" if here else "control"), 2 if here else 1.3))
        painter.setBrush(self.theme.colour("accent_soft" if here else "surface"))
        painter.drawPolygon(hexagon(place.center().x(), place.center().y(), place.width() * 0.42))


class StartStep(QWidget):
    """One part of the start: done, under way, or still to come."""

    def __init__(self, theme: Theme, part: str) -> None:
        super().__init__()
        self._theme, self._part = theme, part
        self._sign, self._name = StepSign(theme), text(theme, "", "body")
        self._bar = PartBar(tr("Download of the model"))
        self._part_done = text(theme, "", "small", "soft")
        self._download = as_widget(row((self._bar, 1), self._part_done))
        self._download.setMaximumWidth(theme.px(BAR_WIDE))
        self._download.hide()
        self.setLayout(row(column(self._sign, None), (column(self._name, row((self._download, 1000), None)), 1), gap=10))

    def show_progress(self, place: int, state: State) -> None:
        """Show the step at this place; a part that the engine names in other words stands in its own."""
        preparing = state.preparing
        done = preparing.done if preparing is not None else -1
        name = preparing.part if preparing is not None and place == done else self._part
        if place == done and state.downloading is not None:
            name = later("Downloading the model")
        self._sign.show_step(place - done)
        self._download.setVisible(place == done and state.downloading is not None)
        if state.downloading is not None:
            self._bar.show_part(state.downloading.done, state.downloading.total)
            self._part_done.setText(_download_words(state.downloading))
        self._name.setText(tr(name))
        restyle(self._name, "tone", "text" if place == done else "soft" if place < done else "faint")
        self._name.setFont(self._theme.font("heading" if place == done else "body"))
        so_far = tr("done") if place < done else tr("under way") if place == done else tr("to come")
        self.setAccessibleName(f"{self._name.text()}: {so_far}")


class StartView(QWidget):
    """`clock` gives the present time in unix seconds: it goes on while no event comes."""

    def __init__(self, theme: Theme, clock: Callable[[], float]) -> None:
        super().__init__()
        self._theme, self._clock, self._state = theme, clock, State()
        self._begun: float | None = None
        self._puzzle: WarmUp | None = None
        self.why = text(theme, "", "body", "soft", wrap=True)
        self._question = text(theme, "", "title", wrap=True)
        self.field = TextField(theme, tr("Your answer"), tr("Your answer"))
        self.field.setMaximumWidth(theme.px(220))
        self.field.returnPressed.connect(self._check)
        self._check_button = Button(theme, tr("Check"))
        self._check_button.clicked.connect(self._check)
        self._verdict = text(theme, "", "heading", wrap=True)
        self._tries = TryChips(theme)
        self._tries.set_scale(TRIES)
        wrote = text(theme, tr("An untrained model wrote this, in eight tries:"), "small", "soft", wrap=True)
        self._result = as_widget(column(self._verdict, 4, wrote, self._tries, gap=6))
        self._result.hide()
        self.ask = card(
            text(theme, tr("Meanwhile: you against the model"), "label", "soft"), self._question,
            row(self.field, self._check_button, None), self._result, None, gap=8,
        )  # fmt: skip
        self.ask.setProperty("kind", "well")
        self.ask.hide()
        self._steps = [StartStep(theme, part) for part in REASONS]
        self._list = as_widget(column(*self._steps, None, gap=APART, margins=(0, 12, 0, 8)))
        self.setLayout(column(4, self.why, 4, StretchRow((self._list, 2), (self.ask, 5), gap=24), 4, gap=8))
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._show)

    @property
    def has_person(self) -> bool:
        """Whether a person is at the question: it must not vanish meanwhile."""
        return not self.ask.isHidden() and (not self._result.isHidden() or bool(self.field.text()) or self._has_focus())

    def _has_focus(self) -> bool:
        return self.field.hasFocus() or self._check_button.hasFocus()

    def show_state(self, state: State) -> None:
        self._state = state
        if state.phase == "preparing" and self._begun is None:
            self._begun = self._clock()
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def _show(self) -> None:
        starting = self._state.phase == "preparing"
        self._list.setVisible(starting)
        for place, step in enumerate(self._steps):
            step.show_progress(place, self._state)
        self.why.setText(self._why_words() if starting else tr("Your model is ready, and trains."))
        if starting and self.ask.isHidden() and self._begun is not None and self._clock() - self._begun >= PATIENCE:
            self.pose()

    def _why_words(self) -> str:
        """How long the start takes, if a step is slow."""
        if self._state.downloading is not None:
            return tr("The model is downloaded once, and kept. Training begins when it is here.")
        words = slow_words(self._state.preparing, self._clock()) or tr("This takes a few seconds.")
        status = sentence(self._state)
        return words if status.action != "none" else f"{words} {tr(status.detail)}"

    def pose(self) -> None:
        """Show the question."""
        self._puzzle = warm_up()
        if self._puzzle is not None:
            self._question.setText(self._puzzle.question)
            self.ask.show()

    def _check(self) -> None:
        if self._puzzle is None or not self.field.text().strip():
            self.field.setFocus()
            return
        right = is_right(self._puzzle, self.field.text())
        words = tr("Right!") if right else tr("Not quite: it is %1.").replace("%1", self._puzzle.truth)
        self._verdict.setText(f"{words} {_about_model(self._puzzle.tries)}")
        restyle(self._verdict, "tone", "good" if right else "text")
        self._tries.show_tries(self._puzzle.tries)
        self._result.show()
        announce(self, self._verdict.text())


def _download_words(download: Downloading) -> str:
    """How much of the model is here, and how long the rest takes, if that is known."""
    words = tr(part_text(download.done, download.total))
    if download.seconds_left is None:
        return words
    return tr("%1, %2 left").replace("%2", tr(duration_text(download.seconds_left))).replace("%1", words)


def _about_model(tries: tuple[Try, ...]) -> str:
    """How the model did, in a sentence."""
    untagged = sum(each.count for each in tries if each.kind == "untagged")
    if not untagged:
        return ""
    return plural(
        untagged,
        "The model knew it once, but did not mark it as its answer. Your model learns that first.",
        "The model knew it %n times, but did not mark it as its answer. Your model learns that first.",
    )
