"""Home's largest card: how many new questions the model solves, and the curve; before that, the start and the first round."""

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame

from waggle.gui.charts.painted.score_curve import ScoreCurve
from waggle.gui.charts.painted.waggle_dance import WaggleDance
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.home.first_round import FirstRound
from waggle.gui.pages.home.start_view import BAR_WIDE, StartView
from waggle.gui.state.story.learning_story import exams, has_curve, score_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import UNLIMITED, as_widget, column, row
from waggle.gui.widgets.part_bar import PartBar
from waggle.gui.widgets.text import set_tip, text
from waggle.gui.widgets.typeset.lead_sentence import LeadSentence
from waggle.protocol.state import State

PAD, ABOVE = 20, 18  # pixels around the card's content
PICTURE_WHEN_COMPACT, LEAST_HIGH = 344, 344  # pixels of width, and of the card's height from which it has a picture
PICTURE, LEAST_BESIDE = 380, 240  # pixels of width of the picture, and beside it, before text scaling


class ScoreCard(QFrame):
    """`see_progress`: show the page Progress."""

    see_progress = Signal()

    def __init__(self, theme: Theme, clock: Callable[[], float]) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._theme = theme
        self.says = LeadSentence(theme, "display")
        self.detail = text(theme, "", "small", "soft", wrap=True)
        self.curve, self.first_round = ScoreCurve(theme), FirstRound(theme)
        self._clock, self._state = clock, State()
        self.start: StartView | None = None  # until an engine starts without a score
        self._link = Button(theme, tr("See progress"), "link")
        self._link.clicked.connect(self.see_progress)
        self._test = PartBar(tr("Questions answered"))
        self._test.setMaximumWidth(theme.px(BAR_WIDE))
        self._test.hide()
        below = row((column(self.detail, row((self._test, 1000), None), gap=6), 1), self._link, gap=12)
        self._box = column(self.says, below, (self.curve, 1), (self.first_round, 1), gap=2)
        self._box.insertStretch(0, 0)
        self._box.addStretch(0)
        self._box.setContentsMargins(PAD, ABOVE - 2, PAD, ABOVE - 6)
        self._picture = WaggleDance(theme)  # as long as there is nothing else to look at
        self._beside = as_widget(row(self._picture, margins=(PAD, PAD, PAD, PAD)))
        self._has_picture = self._compact = False
        self.setLayout(row(self._beside, (self._box, 1), gap=0))

    def set_compact(self, compact: bool) -> None:
        """In the compact form the sentence is smaller, and shorter: where the model began stands below it."""
        changed, self._compact = compact != self._compact, compact
        self.says.set_role("title" if compact else "display")
        self._picture.setFixedWidth(self._theme.px(PICTURE_WHEN_COMPACT if compact else PICTURE))
        self._box.setContentsMargins(PAD, ABOVE - (6 if compact else 2), PAD, ABOVE - 8)
        if changed:
            self.show_state(self._state)

    @property
    def shows_start(self) -> bool:
        """Whether the steps of the start stand here."""
        return self.start is not None and self._has_picture

    def limit_height(self, width: int, shape: float) -> int:
        """The greatest height of the card at this width: its chart is no higher than this share of its own width."""
        if self.curve.isHidden() and self.first_round.isHidden():
            return UNLIMITED
        highest = self.first_round.highest() if self.curve.isHidden() else int((width - 2 * PAD) * shape)
        words = self.says.heightForWidth(width - 2 * PAD) + self.detail.heightForWidth(width - 2 * PAD)
        return min(UNLIMITED, highest + words + 2 * ABOVE)

    def show_state(self, state: State) -> None:
        self._state = state
        words = score_text(state, brief=self._compact)
        self.says.say(words.says, words.start, words.length)
        self.detail.setText(words.detail)
        self.detail.setVisible(bool(words.detail))
        groups = exams(state)
        self._test.setVisible(state.test is not None and not groups)
        if state.test is not None:
            self._test.show_part(state.test.done, state.test.total)
        curved = has_curve(state)
        (self.curve if curved else self.first_round).show_state(state)
        starts = state.phase == "preparing" and not groups
        self._prepare_start(state, starts=starts)
        starting = not curved and (starts or (self.start is not None and self.start.has_person))
        self.curve.setVisible(curved)
        self.first_round.setVisible(not curved and not starting)
        if self.start is not None:
            self.start.setVisible(starting)
        self._has_picture = starting
        self._show_picture()
        for end in (0, self._box.count() - 1):  # the start stands in the middle, beside its picture
            self._box.setStretch(end, 1 if starting else 0)
        self._link.setVisible(curved and not self._compact)
        set_tip(self.detail, tr("It never trains on these questions.") if curved and self._compact else "")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_picture()

    def _show_picture(self) -> None:
        least = self._theme.px(PICTURE + LEAST_BESIDE)
        self._beside.setVisible(self._has_picture and self.width() >= least and self.height() >= self._theme.px(LEAST_HIGH))

    def _prepare_start(self, state: State, *, starts: bool) -> None:
        """Build the view of the start when an engine starts for the first time, and show it the State from then on."""
        if self.start is None and starts and state.preparing is not None:
            self.start = StartView(self._theme, self._clock)
            self._box.insertWidget(self._box.count() - 1, self.start)
        if self.start is not None:
            self.start.show_state(state)
