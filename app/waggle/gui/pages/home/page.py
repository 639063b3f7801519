"""The page Home: the status card, three figures, the reward's trend, the swarm, the latest good answer, and your identity."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QSizePolicy

from waggle.gui.charts.question_shares import QuestionShareBars
from waggle.gui.charts.sparkline import Sparkline
from waggle.gui.charts.swarm_graph import SwarmGraph
from waggle.gui.i18n.formatting import ago, figure, one_line, peer_name, plural, reward, tr, tr_sentence
from waggle.gui.i18n.placeholders import engine_placeholder, why_unavailable
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.home.status_card import StatusCard
from waggle.gui.pages.page import Page
from waggle.gui.state import chart_series
from waggle.gui.state.daily_totals import QuerySchedule, day_on, engine_date, groups_taken_text, totals
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.energy_footprint import of_today
from waggle.gui.widgets.figure_card import FigureCard
from waggle.gui.widgets.highlighted_text import HighlightedText
from waggle.gui.widgets.layout import FLUSH, as_widget, card, column, frame, row
from waggle.gui.widgets.painted_widgets import Avatar, AvatarRow, Chip, Icon
from waggle.gui.widgets.question_text import say_question
from waggle.gui.widgets.responsive_row import EvenRow
from waggle.gui.widgets.scroll_area import ScrollArea
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.activity_text import weather
from waggle.protocol.commands import QueryDays, QueryHistory, new_id
from waggle.protocol.events import RIGHT, RoundSummary, ShownCompletion
from waggle.protocol.state import ROUNDS, Card, State

# Pixels at a text size of 100%
LOWEST = 168  # the height of the last row's cards
LOW = 752  # in a page lower than this the last row would be cut off
FOLDED = 640  # in a page narrower than this, cards stack
CHART = 420  # the chart is higher only where it is wider than 16:9
LEARNED = 0.1  # a mean reward, and a share of right answers, that an untrained model does not reach
REACH: dict[str, tuple[str, str, str]] = {
    "connecting": ("Looking", "plain", "live"), "alone": ("Alone", "plain", "you"), "connected": ("Connected", "good", "check"),
    "solo": ("This computer only", "plain", "you"),
}  # fmt: skip


def recent_rounds(state: State) -> list[RoundSummary]:
    """The last ROUNDS rounds, including those before the engine started."""
    known = chart_series.rounds(state)
    return [summary for summary in known if summary.round > known[-1].round - ROUNDS]


class RewardTrend(QFrame):
    """The reward over the last rounds, compared with the mean reward of peers' answers."""

    see_progress = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._span = ElidedLabel(theme, role="small", tone="text_faint")
        self._line = Sparkline(theme)
        self._empty = text(theme, "", "small", "faint")
        link = Button(theme, tr("See progress"), "link")
        link.clicked.connect(self.see_progress)
        head = row(text(theme, tr("Reward"), "heading"), (self._span, 1), link)
        self._rest = as_widget(column(self._empty, None))
        self.setLayout(column(head, (self._line, 1), (self._rest, 1), gap=4, margins=(20, 14, 16, 12)))

    def show_state(self, state: State) -> None:
        rounds = recent_rounds(state)
        count = rounds[-1].round - rounds[0].round + 1 if rounds else 0
        self._span.say(plural(count, "last round", "last %n rounds") if count > 1 else "")
        self._line.show_rounds(rounds)
        self._line.setVisible(count > 1)
        coming = tr("The rounds so far are being asked for.") if state.round > 1 else tr("The line begins after two rounds.")
        self._empty.setText(engine_placeholder(state) or why_unavailable(state) or coming)
        self._rest.setVisible(count < 2)


class SwarmSummary(QFrame):
    """The swarm, its members, the model and the specialties; while nobody else is here, a button to invite someone."""

    invite_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._name, self._chip = ElidedLabel(theme, role="heading"), Chip(theme)
        self._weather = text(theme, "", "small", "soft", wrap=True)
        self._facts = [ElidedLabel(theme, role="label", right=True) for _ in range(3)]
        titles = (tr("Members now"), tr("Model"), tr("Specialties"))
        lines = [
            as_widget(row(text(theme, title, "small", "soft"), 8, (fact, 1)))
            for title, fact in zip(titles, self._facts, strict=True)
        ]
        self._first, self._third = lines[0], lines[2]
        self._faces, self._more = AvatarRow(theme), ElidedLabel(theme, role="small", tone="text_faint")
        head = row(Icon(theme, "swarms", "accent_text", 20), (self._name, 1), self._chip)
        self._invite = Button(theme, tr("Invite someone"), "link")
        self._invite.clicked.connect(self.invite_wanted)
        self._crowd, lonely = as_widget(row(self._faces, (self._more, 1))), row(FLUSH, self._invite, None)
        self._most_faces = 6
        self._picture = SwarmGraph(theme)
        self._picture.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._picture.hide()
        self._box = column(
            head, self._weather, 4, *lines, (self._picture, 1000), None, self._crowd, lonely, gap=8, margins=(20, 14, 20, 14)
        )
        self.setLayout(self._box)

    def set_compact(self, compact: bool) -> None:
        self._first.setVisible(not compact)  # the sentence above says how many are here
        self._third.setVisible(not compact)
        self._box.setSpacing(4 if compact else 8)
        self._most_faces = 4 if compact else 6

    def show_picture(self, *, wide: bool) -> None:
        """Show the peers as a picture, instead of a few faces."""
        self._picture.setVisible(wide)
        self._crowd.setVisible(not wide and self._invite.isHidden())

    def show_state(self, state: State, now: float) -> None:
        ready = state.ready
        if not self._picture.isHidden():
            self._picture.show_state(State() if why_unavailable(state) else state, now)
        self._name.say(ready.swarm if ready else tr("Swarm"))
        self._weather.setText(tr_sentence(weather(state, now)))
        self._chip.setVisible(ready is not None and state.phase not in ("problem", "stopped", "preparing"))
        word, tone, icon = REACH[state.reach]
        self._chip.say(tr(word), tone, icon)
        resting = bool(why_unavailable(state))
        here = [] if resting else list(state.members)
        members = len(here) + 1
        self._facts[0].say("–" if resting else plural(members, "only you", "%n, you included"))
        self._facts[1].say(one_line(ready.model) if ready else "–")
        self._facts[2].say(_specialties_text([tr_sentence(info.title) for info in ready.specialties]) if ready else "–")
        lonely = not resting and not here and state.reach in ("alone", "connected")
        self._invite.setVisible(lonely)
        self._crowd.setVisible(not lonely and self._picture.isHidden())
        here.sort(key=lambda peer: (-peer.received - peer.groups_pulled, peer.id))
        faces = here[: self._most_faces]
        self._faces.show_identities([peer.id for peer in faces], ", ".join(peer_name(peer.name, peer.id) for peer in faces))
        others = members - 1 - len(faces)
        only = peer_name(faces[0].name, faces[0].id) if len(faces) == 1 else ""
        words = plural(others, "and %n more", "and %n more") if others > 0 else only
        self._more.say(words)


def _specialties_text(titles: list[str]) -> str:
    if len(titles) < 2:
        return titles[0] if titles else ""
    if len(titles) == 2:
        return f"{titles[0]}, {titles[1]}"
    return tr("%1, from %2").replace("%1", str(len(titles))).replace("%2", f"{titles[0]} {tr('to')} {titles[-1]}")


class GoodAnswerCard(QFrame):
    """The newest right answer and whose it is, even when its card has left the feed. Before the first it offers the race."""

    race_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._when = ElidedLabel(theme, role="small", tone="text_faint", right=True)
        self._question = ElidedLabel(theme, role="body", tone="text_soft")
        self._answer = HighlightedText(theme, 1)
        self._reward, self._who = Chip(theme), Chip(theme)
        self._race = Button(theme, tr("Meanwhile, see what sharing is good for: a race"), "link")
        self._race.clicked.connect(self.race_wanted)
        self._well = frame("well", column(self._answer, margins=(12, 7, 12, 7)))
        self._box = column(
            row((text(theme, tr("Latest good answer"), "heading"), 1), self._when), self._question, self._well, None,
            row(FLUSH, self._race, None), row(self._reward, self._who, None), gap=6, margins=(20, 14, 20, 14),
        )  # fmt: skip
        self.setLayout(self._box)
        self._latest: tuple[Card, ShownCompletion] | None = None
        self._model = ("", "")  # the base and name of the model that was trained when the answer came

    def set_compact(self, compact: bool) -> None:
        layout = self._well.layout()
        assert layout is not None
        layout.setContentsMargins(12, 2 if compact else 7, 12, 2 if compact else 7)
        self._box.setSpacing(3 if compact else 6)
        self._box.setContentsMargins(20, 10 if compact else 14, 20, 10 if compact else 14)

    def show_state(self, state: State, now: float) -> None:
        model = (state.ready.base, state.ready.model) if state.ready is not None else self._model
        if model != self._model:  # the answer is not of this model
            self._model, self._latest = model, None
        latest = latest_good_answer(state)
        self._latest = latest or self._latest
        for widget in (self._well, self._reward, self._who):
            widget.setVisible(self._latest is not None)
        self._race.setVisible(self._latest is None)
        if self._latest is None:
            begins = state.ready is not None and not state.ready.completions
            words = tr("None yet: the first right answer, yours or a peer's, appears here.")
            self._when.say("")
            self._question.say(words if begins else tr("The next right answer, yours or a peer's, appears here."))
            return
        card, answer = self._latest
        self._when.say(ago(card.at, now))
        if latest is None or not self._is_shown(card):
            self._show(card, answer)

    def _is_shown(self, card: Card) -> bool:
        return bool(self._answer.property("key") == card.key)

    def _show(self, card: Card, answer: ShownCompletion) -> None:
        self._answer.setProperty("key", card.key)
        say_question(self._question, card.question)
        self._answer.say(answer.text, answer.start, answer.length, match="match" if card.mine else "match_peer")
        self._reward.say(reward(answer), "good", "check")
        if card.mine:
            self._who.say(tr("by your model"), "accent", "on")
        else:
            self._who.say(tr("by %1").replace("%1", peer_name(card.name, card.origin)), "peer", "peers")


def latest_good_answer(state: State) -> tuple[Card, ShownCompletion] | None:
    """The newest card with a right answer by a model (not by a person), and the shortest of its right answers.

    Only this computer's model and trusted peers stand here: a stranger's text may stand anywhere in a right answer.
    """
    trusted = {peer.id for peer in state.peers.values() if peer.trusted and not peer.choice}
    for question in state.cards:
        if not question.mine and question.origin not in trusted:
            continue
        right = [answer for answer in question.completions if answer.judged and answer.reward >= RIGHT and not answer.human]
        if right:
            return question, min(right, key=lambda answer: len(answer.text))
    return None


def has_learned(state: State) -> bool:
    """Whether the model gives some right answers, so that the note on an untrained model no longer applies."""
    scores, rounds = chart_series.scores(state), [summary.reward for summary in recent_rounds(state)]
    right = scores[-1].right / scores[-1].total if scores and scores[-1].total else 0.0
    earned = chart_series.trend(rounds, chart_series.trend_width(len(rounds)))[-1] if rounds else 0.0
    return state.ready is not None and max(right, earned) > LEARNED


class IdentityCard(QFrame):
    """Name and picture as peers see them, and a note on the model; a button to try the model once it has learned something."""

    trying_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._face = Avatar(theme, 44)
        self._name = ElidedLabel(theme, role="heading")
        self._line = ElidedLabel(theme, "", "small", "text_soft")
        self._note = HighlightedText(theme, 4, role="caption", tone="text_soft")
        words = column(None, self._name, self._line, None, gap=1)
        self._try = Button(theme, tr("Try your model"), "link")
        self._try.clicked.connect(self.trying_wanted)
        below = row(FLUSH, self._try, None)
        self._box = column(row(self._face, (words, 1), gap=14), self._note, below, None, gap=8, margins=(20, 14, 20, 12))
        self.setLayout(self._box)

    def set_compact(self, compact: bool) -> None:
        self._box.setSpacing(3 if compact else 8)
        self._box.setContentsMargins(20, 9 if compact else 14, 20, 6 if compact else 12)
        self._note.set_lines(3 if compact else 4)
        self._face.set_size(36 if compact else 44)

    def show_state(self, state: State) -> None:
        ready = state.ready
        self._face.show_identity(ready.node if ready else "", mine=True)
        self._face.setVisible(ready is not None)
        self._name.say(one_line(ready.name) if ready else tr("You"))
        self._line.say(engine_placeholder(state) or tr("You, as the swarm sees you"))
        learned = has_learned(state)
        note = tr_sentence(ready.model_note) if ready and not learned else ""
        self._note.say(note)
        self._note.setVisible(bool(note))
        self._try.setVisible(learned)


class HomePage(Page):
    """The status card with the main action, and cards that lead to the other pages."""

    spreads = True

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme, requests = context.theme, context.requests
        self._history = context.history
        self.hero = StatusCard(context)
        self.hero.commanded.connect(self.commanded)
        self.hero.start_wanted.connect(requests.engine_start)
        self.hero.aside_wanted.connect(requests.defaults)
        self.hero.swarms_wanted.connect(lambda: requests.page.emit("swarms", "list"))
        self.hero.page_wanted.connect(requests.page)
        self.hero.setting_wanted.connect(lambda key: requests.page.emit("settings", key))
        context.store.changed.connect(self._watch)
        self._answers = FigureCard(theme, "answer", tr("Answers today"))
        self._used = FigureCard(theme, "peers", tr("Taken by"))
        self._energy = FigureCard(theme, "bolt", tr("Energy today"))
        self._due = QuerySchedule()
        self._trend, self._swarm, self._good, self._me = (
            RewardTrend(theme),
            SwarmSummary(theme),
            GoodAnswerCard(theme),
            IdentityCard(theme),
        )
        self._trend.see_progress.connect(lambda: requests.page.emit("progress", ""))
        self._good.race_wanted.connect(lambda: requests.page.emit("swarms", "race"))
        self._swarm.invite_wanted.connect(lambda: requests.page.emit("swarms", "invite"))
        self._me.trying_wanted.connect(lambda: requests.page.emit("swarms", "playground"))
        self._figures = EvenRow(self._answers, self._used, self._energy)
        self._rows: list[QBoxLayout] = [
            row((self._trend, 2), (self._swarm, 1)),
            row((self._good, 2), (self._me, 1)),
        ]
        self._side, self._is_spread = column(), False
        self._shares = QuestionShareBars(theme)
        self._shares_card = card(text(theme, tr("What your model is asked now"), "heading"), self._shares, gap=10)
        self._shares_card.hide()
        self._rows[0].addLayout(self._side, 0)
        self._box = column(
            self.hero,
            self._figures,
            *((line, share) for line, share in zip(self._rows, (3000, 2000), strict=True)),
            self._shares_card,
        )
        self._box.addStretch(1)  # what remains where the chart is as high as it gets
        self.area = ScrollArea(self._box)
        self.setLayout(column(self.area))
        self.set_compact(False)

    def is_tight(self) -> bool:
        return self.compact or self.height() < self.theme.px(LOW)

    def arrange(self, edge: int, gap: int) -> None:
        tight = self.is_tight()
        above = 20 if tight else self.theme.space["page"]
        for box in (self._box, *self._rows, self._side):
            box.setSpacing(gap)
        if self.wide != self._is_spread:
            self._spread(wide=self.wide)
        self._figures.set_gap(gap)
        self._box.setContentsMargins(edge, above, edge, above)
        for part in (self.hero, self._swarm, self._good, self._me):
            part.set_compact(tight)

    def _spread(self, *, wide: bool) -> None:
        """In the wide form: three columns, the swarm with its picture, and what the model is asked now."""
        self._is_spread = wide
        low = (self._good, self._me)
        for part, share in zip(low, (2, 1), strict=True):
            (self._rows[1] if wide else self._side).removeWidget(part)
            if wide:
                self._side.addWidget(part, 1)
            else:
                self._rows[1].addWidget(part, share)
        self._rows[0].setStretch(2, 1 if wide else 0)
        self._box.setStretch(3, 0 if wide else 2000)
        self._swarm.show_picture(wide=wide)
        self._show_shares(self.context.store.state)
        self._limit_heights()

    def _limit_heights(self) -> None:
        """A chart is no higher than 16:9, and the cards beside it end where it does."""
        edges, gap = self._box.contentsMargins(), self._rows[0].spacing()
        room = self.width() - edges.left() - edges.right()
        width = (room - 2 * gap) // 2 if self.wide else (room - gap) * 2 // 3
        highest = max(self.theme.px(CHART), width * 9 // 16)
        for part in (self._trend, self._swarm):
            part.setMaximumHeight(highest)
        for low in (self._good, self._me):
            low.setMaximumHeight((highest - gap) // 2 if self.wide else self.theme.px(LOWEST))

    def _show_shares(self, state: State) -> None:
        self._shares_card.setVisible(self.wide and bool(state.shares))
        if self.wide:
            self._shares.show_shares(state.shares)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stack the cards of a row where text is too large for the window."""
        super().resizeEvent(event)
        ways = QBoxLayout.Direction
        for box in self._rows:
            box.setDirection(ways.LeftToRight if self.width() >= self.theme.px(FOLDED) else ways.TopToBottom)
        self._limit_heights()

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

    def handle_refusal(self, words: str, command: str) -> bool:
        self.hero.handle_refusal(words, command)
        return False

    def show_state(self, state: State, now: float) -> None:
        self.hero.show_state(state, now)
        if self._due.now(state):
            self.commanded.emit(QueryDays(id=new_id()))
        if len(recent_rounds(state)) < min(state.round, ROUNDS) and self._history.now(state):
            self.commanded.emit(QueryHistory(id=new_id()))
        self._show_figures(state, engine_date(state, now).isoformat())
        self._trend.show_state(state)
        self._swarm.show_state(state, now)
        self._show_shares(state)
        self._good.show_state(state, now)
        self._me.show_state(state)

    def _show_figures(self, state: State, today: str) -> None:
        days, unread = totals(state), state.ready is None or (state.days is None and not state.rounds)
        if unread:
            for part in (self._answers, self._used, self._energy):
                part.say("", "", tr("Not read yet"))
            return
        day = day_on(days, today)
        right = tr("%1 of them right").replace("%1", figure(day.right)) if day.answers else ""
        ever = tr("%1 in all").replace("%1", figure(days.all.answers)) if days.all.answers > day.answers else ""
        self._answers.say(day.answers, "", "; ".join(filter(None, (right, ever))) or tr("Counted round by round"))
        self._used.say(
            days.used_by, plural(days.met, "of %n peer", "of %n peers") if days.met else "", groups_taken_text(days, state)
        )
        self._energy.say(*of_today(state, today))
