"""The page Live: the steps of the round, and a feed with one card for each question, its answers side by side."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QActionGroup, QHideEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from waggle.gui.i18n.formatting import figure, one_line, plural, tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.live.question_card import COLUMNS, NARROW, QuestionCard
from waggle.gui.pages.live.round_stepper import RoundStepper
from waggle.gui.pages.page import Page
from waggle.gui.state.feed_pacing import FeedPacer
from waggle.gui.state.spoken_summary import summary_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button, SegmentedControl, menu_button
from waggle.gui.widgets.layout import WIDE, card, column
from waggle.gui.widgets.page_header import header_margins, page_header
from waggle.gui.widgets.scroll_area import ScrollArea
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.state import SPECIALTIES, Card, State
from waggle.protocol.text.status_text import DOING, sentence

MOST = 12  # cards on screen
OWNER_FILTERS: tuple[Callable[[Card], bool], ...] = (lambda card: True, lambda card: card.mine, lambda card: not card.mine)
MADE_AT_ONCE, FRAME_MS = 2, 20
LOW_CARD = 200  # pixels: cards are hardly ever lower
AGAIN_MS = 250  # between two checks whether waiting cards may be shown


class Feed(ScrollArea):
    """At most MOST cards, newest on top; the widgets are reused."""

    def __init__(self, theme: Theme) -> None:
        empty = text(theme, "", "body", "soft", wrap=True)
        empty_card = card(empty)
        box = column(empty_card, None, gap=theme.space["base"])
        super().__init__(box)
        self._theme, self._box, self._empty, self._empty_card = theme, box, empty, empty_card
        self._cards: list[QuestionCard] = []
        self._opened: set[str] = set()
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._show)
        self._pending: tuple[Sequence[Card], State, float] = ((), State(), 0.0)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # not by a click: the focus would hold the feed
        self.setAccessibleName(tr("Questions and answers"))

    def set_margins(self, edge: int, gap: int) -> None:
        self._box.setSpacing(gap)
        self.set_edges(edge, self._theme.space["page"])

    def show_cards(self, cards: Sequence[Card], state: State, now: float, *, empty: str) -> None:
        self._pending = cards, state, now
        self._empty.setText(empty)
        self._empty_card.setVisible(not cards)
        self._show()

    def open_as(self, other: "Feed") -> None:
        """Open the cards that are open in the other feed."""
        self._opened |= other._opened

    def hold_reason(self) -> str:
        """Why newer cards wait: what the person does here that they would disturb; empty if nothing."""
        if any(card_widget.is_open for card_widget in self._cards if not card_widget.isHidden()):
            return tr("Feed held while a card is open. ")
        if self.verticalScrollBar().value() > 0:
            return tr("Feed held while it is scrolled down. ")
        menu = QApplication.activePopupWidget()
        if self.underMouse() or (menu and self._contains(menu.parentWidget())):
            return tr("Feed held while the pointer is on it. ")
        return tr("Feed held while you are in it. ") if self._contains(QApplication.focusWidget()) else ""

    def _contains(self, part: QWidget | None) -> bool:
        return part is not None and (part is self or self.isAncestorOf(part))

    def _show(self) -> None:
        """Show the pending cards. New widgets take milliseconds: make MADE_AT_ONCE in one turn of the event loop.

        The first turn fills the view, so that nothing unfinished is painted.
        """
        cards, state, now = self._pending
        count = MADE_AT_ONCE if self._cards else 1 + self.viewport().height() // self._theme.px(LOW_CARD)
        for _ in range(min(count, len(cards) - len(self._cards))):
            card_widget = QuestionCard(self._theme, self._opened)
            card_widget.set_columns(self._columns())
            self._cards.append(card_widget)
            self._box.insertWidget(len(self._cards), card_widget)
        for i, card_widget in enumerate(self._cards):
            if i < len(cards):
                card_widget.show_card(cards[i], state, now)
            card_widget.setVisible(i < len(cards))
        if len(self._cards) < len(cards):
            self._later.start(FRAME_MS)

    def _columns(self) -> int:
        width = self.viewport().width()
        return 2 * COLUMNS if width >= self._theme.px(WIDE) else COLUMNS if width > NARROW else COLUMNS // 2

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for card_widget in self._cards:
            card_widget.set_columns(self._columns())


class LivePage(Page):
    """For watching only: it has no primary button. Offers a recorded example while there are no cards."""

    spreads = True

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme = context.theme
        self._state, self._now = State(), 0.0
        self._pace = FeedPacer()
        self._redraw_timer = QTimer(self)
        self._redraw_timer.setSingleShot(True)
        self._redraw_timer.setInterval(AGAIN_MS)
        self._redraw_timer.timeout.connect(self._redraw_if_visible)
        self._specialty = ""
        self._titles: tuple[str, ...] | None = None
        self._line = ElidedLabel(theme, role="small", tone="text_soft")
        self._whose = SegmentedControl(theme, (tr("All"), tr("Mine"), tr("Peers")), tr("Whose questions"))
        self._whose.chosen.connect(lambda _index: self._redraw())
        self._menu_button = menu_button(theme, tr("All specialties"))
        self._menu = QMenu(self._menu_button)
        self._group = QActionGroup(self._menu)
        self._menu_button.setMenu(self._menu)
        self._freeze = Button(theme, tr("Freeze"), icon="freeze")
        self._freeze.setCheckable(True)
        self._freeze.toggled.connect(self._set_frozen)
        self._example = Button(theme, tr("Watch an example"), icon="play")
        self._example.clicked.connect(context.requests.example)
        self._stepper, self._feed = RoundStepper(theme), Feed(theme)
        self._digest = text(theme, "", "small", "soft", wrap=True)
        self._digest.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._digest.hide()
        self._head = column(
            page_header(theme, tr("Live"), self._line, self._example, self._whose, self._menu_button, self._freeze),
            card(self._stepper, self._digest, pad=18, gap=10),
        )
        self._box = column(self._head, (self._feed, 1), gap=0)
        self.setLayout(self._box)
        self._offer(())
        self.set_compact(False)

    def arrange(self, edge: int, gap: int) -> None:
        self._head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        self._head.setSpacing(gap)
        self._feed.set_margins(edge, gap)

    def show_state(self, state: State, now: float) -> None:
        self._state, self._now = state, now
        known = [info.title for info in state.ready.specialties] if state.ready else []
        self._offer(tuple(dict.fromkeys([*known, *(card.specialty for card in state.cards)]))[:SPECIALTIES])
        self._redraw()

    def _redraw(self) -> None:
        state = self._state
        self._pace.take(state.cards, self._feed.hold_reason())
        self._line.say(self._headline())
        self._example.setVisible(not state.cards)
        self._stepper.show_state(
            replace(state, waiting=0) if why_unavailable(state) else state
        )  # no group waits for an engine that is gone
        self._show_digest(summary_text(state, self._now))
        chosen = [item for item in self._pace.cards if OWNER_FILTERS[self._whose.index](item)]
        if self._specialty:
            chosen = [item for item in chosen if item.specialty == self._specialty]
        self._feed.show_cards(chosen[:MOST], state, self._now, empty=self._empty_words())
        if self._pace.waiting and not self._pace.frozen:
            self._redraw_timer.start()

    def take_over(self, before: Page) -> None:
        """Take over the filters and the cards, open or frozen."""
        assert isinstance(before, LivePage)
        self._state, self._now = before._state, before._now
        self._pace, before._pace = before._pace, self._pace  # the old page drops its cards when it is hidden
        self._feed.open_as(before._feed)
        self._whose.mark(before._whose.index)
        self._specialty, self._titles = before._specialty, None
        self._offer(before._titles or ())
        self._say_specialty()
        self._freeze.setChecked(before._freeze.isChecked())

    def forget_run(self) -> None:
        """Drop the frozen cards."""
        self._freeze.setChecked(False)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._pace.leave()

    def _redraw_if_visible(self) -> None:
        """Show waiting cards once the person is done, even if no event comes."""
        if self.isVisible():
            self._redraw()

    def _show_digest(self, words: str) -> None:
        """Show the summary; it changes at most once a minute, so a screen reader can finish it."""
        if words != self._digest.text():
            self._digest.setText(words)
            self._digest.setAccessibleName(tr("Lately: %1").replace("%1", words))
            self._digest.setVisible(bool(words))

    def _headline(self) -> str:
        state = self._state
        if self._pace.holds:
            why = tr("Feed held. ") if self._pace.frozen else self._pace.why
            return why + plural(self._pace.waiting, "%n newer question is waiting", "%n newer questions are waiting")
        if state.phase == "contributing" and state.stage is not None:
            words = tr("Round %1: your model is %2").replace("%1", figure(state.round)).replace("%2", tr(DOING[state.stage]))
            return words
        return tr(sentence(state).says)

    def _empty_words(self) -> str:
        if self._state.cards and (self._specialty or self._whose.index):
            return tr("Nothing here for this choice yet.")
        if self._state.phase == "problem":
            return tr("Questions and answers appear here when the engine runs again.")
        if self._state.phase == "preparing":
            return tr("Questions and answers appear here when the engine is ready.")
        if not self._state.round:
            return tr("Questions and answers appear here as soon as the first round begins.")
        if self._state.phase == "paused":
            return tr("Questions and answers appear here when you resume.")
        return tr("Questions and answers appear here as soon as the next round begins.")

    def _set_frozen(self, frozen: bool) -> None:
        self._pace.freeze(frozen)
        self._freeze.say(tr("Frozen") if frozen else tr("Freeze"), "freeze")
        self._redraw()

    def _offer(self, titles: tuple[str, ...]) -> None:
        """Fill the menu if the specialties changed; drop a choice that is none of them, as in another swarm."""
        if titles == self._titles:
            return
        self._titles = titles
        if self._specialty not in titles:
            self._specialty = ""
            self._say_specialty()
        self._menu.clear()
        for title in ("", *titles):
            action = self._menu.addAction(tr(one_line(title)).replace("&", "&&") or tr("All specialties"), self._chooser(title))
            action.setCheckable(True)
            action.setChecked(title == self._specialty)
            action.setActionGroup(self._group)

    def _chooser(self, title: str) -> Callable[[], None]:
        def choose() -> None:
            self._specialty = title
            self._say_specialty()
            self._redraw()

        return choose

    def _say_specialty(self) -> None:
        self._menu_button.say(tr(one_line(self._specialty)) or tr("All specialties"), "down")
