"""All answers: the feed of Live, with the choices of whose questions and which specialty, and a button that freezes it."""

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtGui import QActionGroup, QHideEvent
from PySide6.QtWidgets import QMenu, QWidget

from waggle.gui.i18n.formatting import one_line, plural, tr
from waggle.gui.pages.live.feed import MOST, Feed
from waggle.gui.state.story.feed_pacing import FeedPacer
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button, SegmentedControl, menu_button
from waggle.gui.widgets.layout import column
from waggle.protocol.state import SPECIALTIES, Card, State

OWNER_FILTERS: tuple[Callable[[Card], bool], ...] = (lambda card: True, lambda card: card.mine, lambda card: not card.mine)


class AllAnswers(QWidget):
    """`choice_changed`: the person chose other cards, or to freeze them. Its `controls` stand in the header of the page."""

    choice_changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.pace = FeedPacer()
        self._specialty = ""
        self._titles: tuple[str, ...] | None = None
        self.whose = SegmentedControl(theme, (tr("All"), tr("My model"), tr("Peers")), tr("Whose questions"))
        self.whose.chosen.connect(lambda _index: self.choice_changed.emit())
        self._menu_button = menu_button(theme, tr("All specialties"))
        self._menu = QMenu(self._menu_button)
        self._group = QActionGroup(self._menu)
        self._menu_button.setMenu(self._menu)
        self.freeze = Button(theme, tr("Pause list"), icon="pause")
        self.freeze.setCheckable(True)
        self.freeze.toggled.connect(self._set_frozen)
        self.controls: tuple[QWidget, ...] = (self.whose, self._menu_button, self.freeze)
        self.feed = Feed(theme)
        self.setLayout(column((self.feed, 1), gap=0))
        self._offer(())

    def show_state(self, state: State, now: float) -> None:
        known = [info.title for info in state.ready.specialties] if state.ready else []
        self._offer(tuple(dict.fromkeys([*known, *(card.specialty for card in state.cards)]))[:SPECIALTIES])
        self.pace.take(state.cards, self.feed.hold_reason())
        chosen = [item for item in self.pace.cards if OWNER_FILTERS[self.whose.index](item)]
        if self._specialty:
            chosen = [item for item in chosen if item.specialty == self._specialty]
        self.feed.show_cards(chosen[:MOST], state, now)

    @property
    def is_empty(self) -> bool:
        """Whether there is no card at all, whatever is chosen, and one may come."""
        return not (self.pace.cards or self.pace.frozen)

    def is_behind(self, number: int) -> bool:
        """Whether no own card is of this round."""
        return not any(item.mine and item.round >= number for item in self.pace.cards)

    @property
    def has_more(self) -> bool:
        """Whether newer cards come by themselves in a moment."""
        return bool(self.pace.waiting) and not self.pace.frozen

    def hold_words(self) -> str:
        """Why newer cards wait; empty if nothing holds them."""
        if not self.pace.holds:
            return ""
        why = tr("Feed held. ") if self.pace.frozen else self.pace.why
        return why + plural(self.pace.waiting, "%n newer question is waiting", "%n newer questions are waiting")

    def take_over(self, before: "AllAnswers") -> None:
        """Take over the filters and the cards, open or frozen."""
        self.pace, before.pace = before.pace, self.pace  # the old page drops its cards when it is hidden
        self.feed.open_as(before.feed)
        self.whose.mark(before.whose.index)
        self._specialty, self._titles = before._specialty, None
        self._offer(before._titles or ())
        self._say_specialty()
        self.freeze.setChecked(before.freeze.isChecked())

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.pace.leave()

    def _set_frozen(self, frozen: bool) -> None:
        self.pace.freeze(frozen)
        self.freeze.say(tr("Resume list") if frozen else tr("Pause list"), "play" if frozen else "pause")
        self.choice_changed.emit()

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
            self.choice_changed.emit()

        return choose

    def _say_specialty(self) -> None:
        self._menu_button.say(tr(one_line(self._specialty)) or tr("All specialties"), "down")
