"""The remembered swarms as cards, the active one first."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QWidget

from waggle.gui.i18n.formatting import tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.pages.swarms.swarm_card import SwarmCard
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import card, column, empty
from waggle.gui.widgets.text import text
from waggle.protocol.events_swarms import SwarmDetails
from waggle.protocol.state import State


class SwarmList(QWidget):
    """Rebuilds its cards when a swarm changes, except for the count of members. `chosen` and `forgotten` carry a charter."""

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
        drawn = (listing and listing.swarms, why_not, gap)
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
        others = [self._card(swarm, why_not) for swarm in known if not swarm.active]
        for swarm_card in self._active:
            self._cards.addWidget(swarm_card)
        if others:
            self._cards.addWidget(text(self._theme, tr("Others you know"), "heading"))
            self._cards.addLayout(_grid(others, gap))
        else:
            words = tr("Know another one? Join it by its link. Or create one for your friends, your class or your lab.")
            awaited = _waiting_text(state) if state.swarms is None else words
            self._cards.addWidget(card(text(self._theme, awaited, "body", "soft", wrap=True)))
        self._cards.addStretch(1)

    def _card(self, swarm: SwarmDetails, why_not: str) -> SwarmCard:
        swarm_card = SwarmCard(self._theme, swarm, why_not)
        swarm_card.chosen.connect(self.chosen)
        swarm_card.forgotten.connect(self.forgotten)
        return swarm_card


def _waiting_text(state: State) -> str:
    """When the list of swarms will appear."""
    if state.phase in ("problem", "stopped"):
        return tr("The engine is not running. The swarms you know appear here when it runs again.")
    if why_unavailable(state):
        return tr("The swarms you know appear here when the engine is ready.")
    return tr("The swarms you know appear here.")


def _grid(cards: list[SwarmCard], gap: int) -> QGridLayout:
    grid = QGridLayout()
    grid.setSpacing(gap)
    for i, swarm_card in enumerate(cards):
        grid.addWidget(swarm_card, i // 2, i % 2)
    for i in range(2):
        grid.setColumnStretch(i, 1)
    return grid
