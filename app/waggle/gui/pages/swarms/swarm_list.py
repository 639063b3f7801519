"""The remembered swarms as cards, the active one first."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QLayout, QWidget

from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.pages.swarms.swarm_card import CARD_MARGINS, SwarmCard
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.card_grid import CardGrid
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, card, column, empty, frame, row
from waggle.gui.widgets.skeleton import SkeletonCard
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.events_swarms import EndedSwarm, SwarmDetails
from waggle.protocol.state import State

COMING = 2  # cards that stand for swarms until they are listed
LEAST = 400  # pixels of width of a card, before text scaling


class SwarmList(QWidget):
    """Rebuilds its cards when a swarm changes, except for the count of members. `chosen` and `forgotten` carry a charter.

    `join_wanted`, `form_wanted`: join another one, create one.
    """

    join_wanted = Signal()
    form_wanted = Signal()
    chosen = Signal(str)
    forgotten = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._drawn: object = None
        self._active: list[SwarmCard] = []
        self._cards = column()
        self.setLayout(self._cards)

    def show_state(self, state: State, why_not: str, gap: int) -> None:
        """`why_not`: why the node cannot go to another swarm now."""
        listing = state.swarms
        drawn = (listing and (listing.swarms, listing.ended), state.undecided, why_not, gap, listing or _waiting_text(state))
        if drawn != self._drawn:
            self._drawn = drawn
            empty(self._cards)
            self._cards.setSpacing(gap)
            self._fill(state, why_not, gap)
        for swarm_card in self._active:
            swarm_card.show_members(None if why_unavailable(state) else len(state.members) + 1)

    def _fill(self, state: State, why_not: str, gap: int) -> None:
        known = state.swarms.swarms if state.swarms else ()
        self._active = [self._card(swarm, why_not) for swarm in known if swarm.active]
        must_choose, rest = state.undecided is not None, [swarm for swarm in known if not swarm.active]
        if must_choose:
            rest.sort(key=lambda swarm: swarm.shipped)  # one that was joined is most likely the one that was trained in
        others: list[QWidget] = [
            self._card(swarm, why_not, must_choose=must_choose, first=must_choose and place == 0 and not swarm.shipped)
            for place, swarm in enumerate(rest)
        ]
        for swarm_card in self._active:
            self._cards.addWidget(swarm_card)
        if state.swarms is None:
            self._fill_waiting(state, gap)
        elif offers_own_swarm(state):
            others.append(self._own_card(why_not))
        if others:
            if self._active or state.undecided is None:
                self._cards.addWidget(text(self._theme, tr("Other swarms"), "heading"))
            grid = CardGrid(self._theme.px(LEAST), gap)
            grid.show_cards(others)
            self._cards.addWidget(grid)
        if state.swarms and state.swarms.ended:
            self._cards.addWidget(text(self._theme, tr("Ended"), "heading", "soft"))
            self._cards.addWidget(self._ended_card(state.swarms.ended))
        self._cards.addStretch(1)

    def _fill_waiting(self, state: State, gap: int) -> None:
        """Cards without words, in the shape of those to come, while the swarms are on their way; else a sentence."""
        if state.phase in ("problem", "stopped") or state.waits_for_choice:
            self._cards.addWidget(card(text(self._theme, _waiting_text(state), "body", "soft", wrap=True)))
        else:
            grid = CardGrid(self._theme.px(LEAST), gap)
            self._cards.addWidget(SkeletonCard(self._theme, lines=8))
            grid.show_cards([SkeletonCard(self._theme, lines=4) for _ in range(COMING)])
            self._cards.addWidget(grid)

    def _own_card(self, why_not: str) -> QFrame:
        """That there can be more swarms than those that come with Waggle."""
        theme = self._theme
        join, new = Button(theme, tr("Join with an invite"), small=True), Button(theme, tr("Create a swarm"), small=True)
        join.clicked.connect(lambda: self.join_wanted.emit())
        new.clicked.connect(lambda: self.form_wanted.emit())
        new.setEnabled(not why_not)
        new.setToolTip(why_not)
        words = tr("Train with your friends, your class or your lab: create a swarm and invite them, or join with an invite.")
        head = as_widget(row((text(theme, tr("A swarm of your own"), "heading"), 1)))
        head.setMinimumHeight(theme.size["chip"])  # as in the cards of swarms
        parts = (head, text(theme, words, "small", "soft", wrap=True), None)
        return frame("card", column(*parts, row(new, join, None), gap=7, margins=CARD_MARGINS))

    def _ended_card(self, ended: tuple[EndedSwarm, ...]) -> QFrame:
        """The swarms that ended, with the reason once for all that share it."""
        parts: list[QWidget | QLayout] = []
        for why in dict.fromkeys(swarm.why for swarm in ended):
            parts += [self._ended_row(swarm) for swarm in ended if swarm.why == why]
            words = f"{tr(why)} {tr('Your model, its progress and your name stay.')}"
            parts.append(text(self._theme, words, "small", "soft", wrap=True))
        return card(*parts, gap=6)

    def _ended_row(self, swarm: EndedSwarm) -> QWidget:
        title = one_line(swarm.name)
        forget = Button(self._theme, tr("Forget"), "link", small=True)
        forget.setAccessibleName(tr("Forget %1").replace("%1", title))
        forget.clicked.connect(lambda: self.forgotten.emit(swarm.charter))
        return as_widget(row((ElidedLabel(self._theme, title, "body"), 1), forget, gap=8))

    def _card(self, swarm: SwarmDetails, why_not: str, *, must_choose: bool = False, first: bool = False) -> SwarmCard:
        swarm_card = SwarmCard(self._theme, swarm, why_not, must_choose=must_choose, first=first)
        swarm_card.chosen.connect(self.chosen)
        swarm_card.forgotten.connect(self.forgotten)
        return swarm_card


def offers_own_swarm(state: State) -> bool:
    """Whether a card offers to create a swarm, or to join one: while only those are known that come with Waggle."""
    return state.swarms is not None and all(swarm.shipped for swarm in state.swarms.swarms)


def _waiting_text(state: State) -> str:
    """When the list of swarms will appear."""
    if state.phase in ("problem", "stopped"):
        return tr("Training is not running. The swarms you know appear here when it runs again.")
    return tr("The swarms you know appear here.")
