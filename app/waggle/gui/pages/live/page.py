"""The page Live: the steps of the round, and below them a question on a stage, the feed of all answers, or why there is none."""

from functools import cached_property

from msgspec.structs import replace
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QStackedWidget

from waggle.core.text.round_number import round_number
from waggle.gui.i18n.formatting import figure, tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.live.all_answers import AllAnswers
from waggle.gui.pages.live.nothing_yet import NothingYet
from waggle.gui.pages.live.round_stepper import RoundStepper
from waggle.gui.pages.live.stage_view import StageView
from waggle.gui.pages.page import Page
from waggle.gui.state.starter_offer import TRAIN_STARTER, choose_starter, offers_starter
from waggle.gui.widgets.containers.page_header import header_margins, page_header
from waggle.gui.widgets.controls.buttons import Button, SegmentedControl
from waggle.gui.widgets.layout import as_widget, card, column, edges, in_the_middle, row
from waggle.gui.widgets.text import ElidedLabel
from waggle.protocol.state import State
from waggle.protocol.text.status_text import DOING, sentence

AGAIN_MS = 250  # between two checks whether what waits may be shown
LIVE = "live"
APART = 16  # pixels between what filters the answers and what changes the view
STAGE, ALL_ANSWERS, NOTHING = range(3)  # the views; a person chooses between the first two


class LivePage(Page):
    """For watching: its only command starts an engine that failed."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme = context.theme
        self._state, self._now = State(), 0.0
        self._redraw_timer = QTimer(self)
        self._redraw_timer.setSingleShot(True)
        self._redraw_timer.setInterval(AGAIN_MS)
        self._redraw_timer.timeout.connect(self._redraw_if_visible)
        self._line = ElidedLabel(theme, role="small", tone="text_soft")
        self._view = SegmentedControl(theme, (tr("One by one"), tr("All answers")), tr("What is shown"))
        self._view.chosen.connect(self._choose_view)
        views = as_widget(row(self._view, margins=edges(APART, 0, 0, 0)))
        self._retry = Button(theme, tr("Try again"), icon="play")
        self._retry.clicked.connect(context.requests.engine_start)
        self.stage, self.answers = StageView(theme), AllAnswers(theme)
        self.stage.choice_changed.connect(self._redraw)
        self.stage.all_wanted.connect(lambda: self._choose_view(ALL_ANSWERS))
        self.answers.choice_changed.connect(self._redraw)
        context.store.changed.connect(lambda: self.stage.remember(context.store.state))  # also while another page is shown
        self._stepper = RoundStepper(theme)
        self._head = column(
            page_header(theme, tr("Live"), self._line, *self.answers.controls, self._retry, views),
            card(self._stepper, pad=18, gap=10),
        )
        self._views = QStackedWidget()
        self._views.setMinimumHeight(1)  # so that the header keeps its height
        self._around = column(None, None)  # of what stands there while there is no question
        for view in (self.stage, self.answers, as_widget(self._around)):
            self._views.addWidget(view)
        self._box = column(self._head, (self._views, 1), gap=0)
        self.setLayout(self._box)
        self.show_view(ALL_ANSWERS if context.views.get(LIVE) == ALL_ANSWERS else STAGE)
        self.set_compact(False)

    @cached_property
    def nothing(self) -> NothingYet:
        """Built when it is first shown: mostly there are questions."""
        nothing = NothingYet(self.context.theme)
        nothing.example_wanted.connect(self.context.requests.example)
        nothing.remedy_wanted.connect(self._remedy)
        nothing.again_wanted.connect(self.context.requests.engine_start)
        self._around.insertLayout(1, in_the_middle(nothing))
        return nothing

    def arrange(self, edge: int, gap: int) -> None:
        self._head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        self._head.setSpacing(gap)
        self.answers.feed.set_margins(edge, gap)
        self.stage.arrange(edge, gap)
        self._around.setContentsMargins(edge, 0, edge, gap)

    def _choose_view(self, view: int) -> None:
        self.context.views[LIVE] = view
        self.show_view(view)

    def show_view(self, view: int) -> None:
        """Show the stage or all answers."""
        self._view.mark(view)
        self._redraw()

    def show_state(self, state: State, now: float) -> None:
        self._state, self._now = state, now
        self._redraw()

    def _redraw(self) -> None:
        state = self._state
        on_stage = self._view.index == STAGE
        view: StageView | AllAnswers = self.stage if on_stage else self.answers
        view.show_state(state, self._now)
        self._views.setCurrentIndex(NOTHING if view.is_empty else self._view.index)
        for control in self.answers.controls:
            control.setVisible(not on_stage and not view.is_empty)
        can_start = state.phase == "problem" and self._can_start
        if view.is_empty:
            starts = state.phase == "preparing" and not state.waits_for_choice  # its steps stand above
            says = tr("Your model is getting ready.") if starts else self._headline()
            remedy = self._remedy_words() if can_start else ""
            self.nothing.show_state(state, says, self._empty_words(), remedy, offers_again=can_start and self._offers_starter())
        self._view.setVisible(not view.is_empty or bool(state.cards))  # else both show the same
        self._line.say("" if view.is_empty else view.hold_words() or self._headline())
        self._retry.setVisible(can_start and not view.is_empty)
        self._stepper.show_state(
            replace(state, waiting=0) if why_unavailable(state) else state
        )  # no group waits for an engine that is gone
        if view.has_more:
            self._redraw_timer.start()

    def take_over(self, before: Page) -> None:
        """Take over the view, and what is open, held or filtered in it."""
        assert isinstance(before, LivePage)
        self._state, self._now = before._state, before._now
        self.stage.take_over(before.stage)
        self.answers.take_over(before.answers)
        self.show_view(before._view.index)

    def forget_run(self) -> None:
        """Drop the frozen cards and the rounds that passed."""
        self.answers.freeze.setChecked(False)
        self.stage.forget()

    def _redraw_if_visible(self) -> None:
        """Show what waits once the person is done, even if no event comes."""
        if self.isVisible():
            self._redraw()

    def _headline(self) -> str:
        """What the model does; and what stands below, where that is an earlier round."""
        state = self._state
        scene = self.stage.stage.scene if self._view.index == STAGE else None
        on_stage = figure(round_number(scene.round)) if scene is not None else ""
        if state.takes_first_test:
            return tr("Your model is taking its first test.")
        if state.phase == "contributing" and state.stage is not None:
            number = figure(round_number(state.round))
            if scene is None and self.answers.is_behind(state.round):
                return tr("Round %1 is running. Below: earlier rounds").replace("%1", number)
            return tr("Round %1: your model is %2").replace("%1", number).replace("%2", tr(DOING[state.stage]))
        words = tr(sentence(state).says)
        if scene is not None and state.phase in ("problem", "preparing"):
            words = f"{words} {tr('Below: round %1, the last one before that.').replace('%1', on_stage)}"
        return words

    @property
    def _can_start(self) -> bool:
        return self.context.engine.can_start() and not self.context.settings.is_unreadable

    def _offers_starter(self) -> bool:
        return offers_starter(self._state, self.context.settings, can_start=self._can_start)

    def _remedy_words(self) -> str:
        """What the main button of Home says after the same failure."""
        return tr(TRAIN_STARTER) if self._offers_starter() else tr("Try again")

    def _remedy(self) -> None:
        if not self._offers_starter() or choose_starter(self.context.settings):
            self.context.requests.engine_start.emit()

    def _empty_words(self) -> str:
        if self._state.phase == "problem":
            words = tr("Questions and answers appear here when training runs again.")
            return " ".join(filter(None, (tr(sentence(self._state).detail), words)))
        if self._state.phase == "preparing" or not self._state.round:
            return tr("Questions and answers appear here as soon as the first round begins.")
        if self._state.phase == "paused":
            return tr("Questions and answers appear here when you resume.")
        return tr("Questions and answers appear here as soon as the next round begins.")
