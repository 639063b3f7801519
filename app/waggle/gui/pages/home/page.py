"""The page Home: whether it works, whether the model gets better, whether sharing helps, what it costs, and what next."""

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout

from waggle.gui.charts.painted.question_shares import QuestionShareBars
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.home.cost_card import CostCard
from waggle.gui.pages.home.first_answers_card import FirstAnswersCard
from waggle.gui.pages.home.good_answer_card import GoodAnswerCard
from waggle.gui.pages.home.next_card import NextCard
from waggle.gui.pages.home.score_card import ScoreCard
from waggle.gui.pages.home.sharing_card import SharingCard
from waggle.gui.pages.home.skill_card import SkillCard
from waggle.gui.pages.home.status_card import StatusCard
from waggle.gui.pages.page import Page
from waggle.gui.state import chart_series
from waggle.gui.state.day_query import QuerySchedule, QueryWhileWaiting
from waggle.gui.state.story.namesakes import namesakes
from waggle.gui.widgets.aha_list import INSET, AhaList
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.layout import UNLIMITED, as_widget, card, column, frame, in_the_middle, row
from waggle.gui.widgets.text import text
from waggle.protocol.commands import QueryDays, QueryHistory, new_id
from waggle.protocol.figures.daily_totals import engine_date
from waggle.protocol.state import ROUNDS, State

# Pixels at a text size of 100%
LOW = 700  # a page lower than this is tight
VAST = (1900, 1080)  # the width and height of a page from which its three columns have the widths of VAST_SHARES
VAST_SHARES = (11, 6, 4)
SHAPE, VAST_SHAPE = 9 / 16, 5 / 8  # the height of the chart at most, as a share of its width
ALONE = 820  # the width of the first card where it is the only one
FOLDED = 640  # in a page narrower than this, all cards stand in one column
START = (1136, 780)  # the width and height of the card of the start at most: those of Welcome, whose picture it continues
UNEVEN = 40  # the last cards of two columns whose heights differ by no more than this begin at one height


class HomePage(Page):
    """The status strip, and cards in two columns; in the wide form in three, and in the vast one with a larger first column."""

    wide_from = 1400

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme, requests = context.theme, context.requests
        self._history, self._due = context.history, QuerySchedule()
        self._waiting, self._has_side = QueryWhileWaiting(), False
        self.hero = StatusCard(context)
        self.hero.commanded.connect(self.commanded)
        self.hero.start_wanted.connect(requests.engine_start)
        self.hero.aside_wanted.connect(requests.defaults)
        self.hero.swarms_wanted.connect(lambda: requests.page.emit("swarms", "list"))
        self.hero.page_wanted.connect(requests.page)
        self.hero.setting_wanted.connect(lambda key: requests.page.emit("settings", key))
        context.store.changed.connect(self._watch)
        self.score, self.skills, self.sharing = ScoreCard(theme, context.store.now), SkillCard(theme), SharingCard(theme)
        self.cost, self.next, self.good = CostCard(theme), NextCard(theme), GoodAnswerCard(theme)
        self.score.see_progress.connect(lambda: requests.page.emit("progress", ""))
        self.skills.progress_wanted.connect(lambda: requests.page.emit("progress", ""))
        self.sharing.page_wanted.connect(requests.page)
        self.next.page_wanted.connect(requests.page)
        self._shares = QuestionShareBars(theme)
        self._shares_card = card(text(theme, tr("What your model is asked now"), "heading"), self._shares, gap=10)
        self._ahas = AhaList(theme)
        self._ahas.chosen.connect(lambda _aha: requests.page.emit("progress", ""))
        heading = row(text(theme, tr("First right answers"), "heading"), margins=(INSET, 0, INSET, 0))
        self._ahas_card = frame("card", column(heading, self._ahas, gap=8, margins=(20 - INSET, 16, 20 - INSET, 16)))
        self._main = column((self.score, 1000), self.skills)
        self._main.addStretch(1)  # below the card of the start, which is as high as its content
        self._side = column((self.sharing, 1000), self.cost, self.next)
        self._side.addStretch(1)  # below the cards while nothing is shared
        self._far = column(self.good, self._shares_card, (self._ahas_card, 1000), None)
        self._resting_ahas: FirstAnswersCard | None = None  # until no engine runs any more
        self._vast, self._picture_share = False, 1000
        self._columns = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._columns.setContentsMargins(0, 0, 0, 0)
        self._far_column, self._cards = as_widget(self._far), as_widget(self._columns)
        for box, share in ((self._main, 2), (self._side, 1)):
            self._columns.addLayout(box, share)
        self._columns.addWidget(self._far_column, 1)
        self._far_column.hide()
        self._box = column(in_the_middle(self.hero), (self._cards, 1000))
        self._box.insertStretch(0, 0)
        self._box.addStretch(1)  # what remains where the chart is as high as it gets
        self.area = ScrollArea(self._box)
        self.setLayout(column(self.area))
        self.set_compact(False)

    def is_tight(self) -> bool:
        return self.compact or self.height() < self.theme.px(LOW)

    def arrange(self, edge: int, gap: int) -> None:
        tight = self.is_tight()
        above = 16 if tight else 24
        for box in (self._box, self._columns, self._main, self._side, self._far):
            box.setSpacing(gap)
        self._box.setContentsMargins(edge, above, edge, above)
        for part in (self.hero, self.score, self.sharing, self.cost, self.next):
            part.set_compact(tight)
        self._spread()
        self._share_height()
        self._limit_heights()

    def _spread(self) -> None:
        """In the wide form there is a third column, and the cost stands in it, unless it is higher than the second."""
        wide, high = VAST
        self._vast = self.wide and self.width() >= self.theme.px(wide) and self.height() >= self.theme.px(high)
        self.skills.set_size("low" if self.is_tight() else "vast" if self._vast else "wide" if self.wide else "usual")
        self._share_width()
        moves = self.wide and not self._vast
        if moves == (self._far.indexOf(self.cost) < 0):
            (self._side if moves else self._far).removeWidget(self.cost)
            (self._far if moves else self._side).insertWidget(0 if moves else 1, self.cost)
        self._far_column.setVisible(self.wide and not self.score.shows_start)
        self._show_far(self.context.store.state, self.context.store.now())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stand all cards in one column where text is too large for the window."""
        super().resizeEvent(event)
        self._spread()
        ways = QBoxLayout.Direction
        self._columns.setDirection(ways.LeftToRight if self.width() >= self.theme.px(FOLDED) else ways.TopToBottom)
        self._limit_heights()

    def _share_width(self) -> None:
        """The second column has none while its cards are hidden."""
        first, second, third = VAST_SHARES if self._vast else (2, 1, 1)
        for place, share in enumerate((first, second if self._has_side else 0, third)):
            self._columns.setStretch(place, share)

    def _share_height(self) -> None:
        """What the second column has to spare is the picture's."""
        share = 0 if self.sharing.is_resting else 1000
        if share != self._picture_share:  # else Qt lays the page out again
            self._picture_share = share
            self._side.setStretchFactor(self.sharing, share)

    def _limit_heights(self) -> None:
        """The chart is no higher than its shape allows, and outlines are no higher than those of three questions."""
        edges, gap = self._box.contentsMargins(), self._columns.spacing()
        room = self.width() - edges.left() - edges.right()
        columns = room - (2 if self.wide else 1) * gap
        width = columns * VAST_SHARES[0] // sum(VAST_SHARES) if self._vast else columns // 2 if self.wide else columns * 2 // 3
        if self.width() < self.theme.px(FOLDED):
            width = room
        highest = self.score.limit_height(width, VAST_SHAPE if self._vast else SHAPE)
        self.score.setMaximumHeight(highest)
        below = self.skills.sizeHint().height() + gap if not self.skills.isHidden() else 0
        self._cards.setMaximumHeight(min(UNLIMITED, highest + below) if self.width() >= self.theme.px(FOLDED) else UNLIMITED)
        side = max(0, (room - self.theme.px(START[0])) // 2) if self.score.shows_start else 0
        self._columns.setContentsMargins(side, 0, side, 0)
        if self.score.shows_start:
            self._cards.setMaximumHeight(self.theme.px(START[1]))
        self._align_rows()

    def _align_rows(self) -> None:
        """Begin the last cards of the first two columns at one height where they nearly do."""
        both = not (self.skills.isHidden() or self.next.isHidden() or self.is_tight() or self.width() < self.theme.px(FOLDED))
        has_cost = self._side.indexOf(self.cost) >= 0 and not self.cost.isHidden()
        above = self.cost.sizeHint().height() + self._side.spacing() if has_cost else 0
        first, second = self.skills.sizeHint().height(), above + self.next.heightForWidth(self._side.geometry().width())
        near = both and abs(first - second) <= self.theme.px(UNEVEN)
        self.skills.setMinimumHeight(max(first, second) if near else 0)
        self.next.setMinimumHeight(max(first, second) - above if near else 0)

    def act(self) -> None:
        """Do what the main button says now."""
        self.hero.show_state(self.context.store.state, self.context.store.now())
        self.hero.act()

    def _watch(self) -> None:
        """While another page is shown, too: an action that was done and undone can be done again."""
        self.hero.watch(self.context.store.state)

    def show_replay(self, *, over: bool) -> None:
        if over:
            self.hero.show_over()

    def show_state(self, state: State, now: float) -> None:
        self.hero.show_state(state, now)
        if self._due.now(state):
            self.commanded.emit(QueryDays(id=new_id()))
        if (_lacks_history(state) and self._history.now(state)) or self._waiting.now(state):
            self.commanded.emit(QueryHistory(id=new_id()))
        before = self._content()
        self.score.show_state(state)
        self.skills.show_state(state)
        self.sharing.show_state(state, now)
        self._share_height()
        self.cost.show_state(state, engine_date(state, now).isoformat())
        self.next.show_state(state, now)
        self._show_or_hide_cards(state)
        self._show_far(state, now)
        if self._content() != before:
            self._spread()
            self._limit_heights()
        self._align_rows()

    def _content(self) -> tuple[bool, ...]:
        """On which content the heights and columns depend."""
        score = self.score
        parts = not score.curve.isHidden(), not self.skills.isHidden()
        return *parts, score.first_round.has_answers, score.shows_start, self.cost.has_figures

    def _show_or_hide_cards(self, state: State) -> None:
        """Before the first start has succeeded there is nothing to show but its progress, or what went wrong."""
        begun = state.ready is not None or bool(chart_series.scores(state))
        self.score.setVisible(begun or (state.phase == "preparing" and not state.waits_for_choice))
        for part in (self.sharing, self.good):
            part.setVisible(state.ready is not None)
        self.cost.setVisible(state.ready is not None and self.cost.has_figures)
        self._has_side = state.ready is not None or (bool(state.ahas) and not self.score.curve.isHidden() and not self._vast)
        self._share_width()
        self._show_resting_ahas(state)
        alone = self.score.isHidden()  # the first card, in the middle of the page
        self._cards.setVisible(not alone)
        starts = self.score.shows_start
        self._box.setStretch(0, 1 if alone or starts else 0)
        self.hero.setMaximumWidth(self.theme.px(ALONE) if alone else self.theme.px(START[0]) if starts else UNLIMITED)
        self.hero.set_alone(alone)
        self.hero.set_above_steps(starts)
        self.hero.setHidden(self.hero.repeats_steps)

    def _show_resting_ahas(self, state: State) -> None:
        """While no engine runs, the first right answers take the room of the picture of the swarm."""
        rests = self._has_side and self.sharing.is_resting and bool(state.ahas) and not self._vast
        if rests and self._resting_ahas is None:
            self._resting_ahas = FirstAnswersCard(self.theme)
            self._resting_ahas.progress_wanted.connect(lambda: self.context.requests.page.emit("progress", ""))
            self._side.insertWidget(self._side.count() - 1, self._resting_ahas, 1000)
        if self._resting_ahas is not None:
            self._resting_ahas.setVisible(rests)
            if rests:
                self._resting_ahas.show_state(state)

    def _show_far(self, state: State, now: float) -> None:
        """The third column."""
        self.good.show_state(state, now)
        self._shares_card.setVisible(bool(state.shares))
        self._ahas_card.setVisible(self._vast and bool(state.ahas))
        if self._vast:
            self._ahas.show_ahas(state.ahas, namesakes(state.peers.values(), state.ahas))
        if self.wide:
            self._shares.show_shares(state.shares)


def _lacks_history(state: State) -> bool:
    """Whether the engine has more rounds than this window was sent."""
    return len(state.rounds) < min(state.round, ROUNDS) and not state.history
