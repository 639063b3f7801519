"""Home's largest card: how many new questions the model solves, and the curve; before that, the start and the first round."""

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QSizePolicy

from waggle.gui.charts.score_curve import ScoreCurve
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.home.first_round import FirstRound
from waggle.gui.pages.home.start_view import StartView
from waggle.gui.state.learning_story import exams, has_curve, score_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.lead_sentence import LeadSentence
from waggle.gui.widgets.text import text
from waggle.protocol.state import State

PAD, ABOVE = 20, 18  # pixels around the card's content
UNLIMITED = (1 << 24) - 1  # Qt's greatest height of a widget


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
        self._clock = clock
        self.start: StartView | None = None  # until an engine starts without a score
        self._link = Button(theme, tr("See progress"), "link")
        self._link.clicked.connect(self.see_progress)
        below = row((self.detail, 1), self._link, gap=12)
        self._box = column(self.says, below, (self.curve, 1), (self.first_round, 1), gap=2)
        self._box.setContentsMargins(PAD, ABOVE - 2, PAD, ABOVE - 6)
        self.setLayout(self._box)

    def set_compact(self, compact: bool) -> None:
        """In the compact form the sentence is smaller, and the curve may be low."""
        self.first_round.set_compact(compact)
        self.says.set_role("title" if compact else "display")
        self._box.setContentsMargins(PAD, ABOVE - (6 if compact else 2), PAD, ABOVE - 8)

    def limit_height(self, width: int) -> int:
        """The greatest height of the card at this width: its chart is no higher than 16:9. Words have no limit."""
        if self.curve.isHidden():
            return UNLIMITED
        words = self.says.heightForWidth(width - 2 * PAD) + self.detail.heightForWidth(width - 2 * PAD)
        return (width - 2 * PAD) * 9 // 16 + words + 2 * ABOVE

    def show_state(self, state: State) -> None:
        words = score_text(state)
        self.says.say(words.says, words.start, words.length)
        self.detail.setText(words.detail)
        self.detail.setVisible(bool(words.detail))
        groups = exams(state)
        curved = has_curve(state)
        self.curve.show_state(state)
        self.first_round.show_state(state)
        starts = state.phase == "preparing" and not groups
        self._prepare_start(state, starts=starts)
        starting = not curved and (starts or (self.start is not None and self.start.has_person))
        self.curve.setVisible(curved)
        self.first_round.setVisible(not curved and not starting)
        if self.start is not None:
            self.start.setVisible(starting)
        policies = QSizePolicy.Policy
        self.setSizePolicy(policies.Preferred, policies.Maximum if starting else policies.Preferred)
        self._link.setVisible(curved)

    def _prepare_start(self, state: State, *, starts: bool) -> None:
        """Build the view of the start when an engine starts for the first time, and show it the State from then on."""
        if self.start is None and starts and state.preparing is not None:
            self.start = StartView(self._theme, self._clock)
            self._box.addWidget(self.start, 1)
        if self.start is not None:
            self.start.show_state(state)
