"""The feed of Live: one card for each question, newest on top, below the heading of its round."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from waggle.core.text.round_number import round_number
from waggle.gui.i18n.formatting import ago, figure, tr
from waggle.gui.pages.live.question_card import COLUMNS, NARROW, QuestionCard
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.layout import WIDE, card, column
from waggle.gui.widgets.text import text
from waggle.protocol.state import Card, State

MOST = 12  # cards on screen
MADE_AT_ONCE, FRAME_MS = 2, 20
LOW_CARD = 46  # pixels: cards are hardly ever lower


def round_of(card: Card) -> int | None:
    """The round of this node that a card belongs to; None: peers sent it. Consecutive cards of one stand below one heading."""
    return card.round if card.mine else None


def heading_of(card: Card, now: float) -> str:
    """Whose questions follow, of which round, and how long ago that was."""
    if not card.mine:
        return tr("From peers")
    words, when = tr("Your model, round %1").replace("%1", figure(round_number(card.round))), ago(card.at, now)
    return words if when == tr("now") else f"{words}, {when}"


class Feed(ScrollArea):
    """At most MOST cards, newest on top, with headings; the widgets are reused."""

    def __init__(self, theme: Theme) -> None:
        empty_card = card(text(theme, tr("Nothing here for this choice yet."), "body", "soft", wrap=True))
        box = column(empty_card, None, gap=theme.space["base"])
        super().__init__(box)
        self._theme, self._box, self._empty_card, self._gap = theme, box, empty_card, theme.space["base"]
        self._cards: list[QuestionCard] = []
        self._headings: list[QLabel] = []  # one before each card, shown where a round begins
        self._opened: set[str] = set()
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._show)
        self._pending: tuple[Sequence[Card], State, float] = ((), State(), 0.0)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # not by a click: the focus would hold the feed
        self.setAccessibleName(tr("Questions and answers"))

    def set_margins(self, edge: int, gap: int) -> None:
        self._box.setSpacing(gap // 2)
        for number, heading in enumerate(self._headings):
            heading.setContentsMargins(0, gap // 2 if number else 0, 0, 0)
        self._gap = gap
        self.set_edges(edge, self._theme.space["page"])

    def show_cards(self, cards: Sequence[Card], state: State, now: float) -> None:
        self._pending = cards, state, now
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
            heading = text(self._theme, "", "label", "soft")
            heading.setContentsMargins(0, self._gap // 2 if self._cards else 0, 0, 0)
            for part in (heading, card_widget):
                self._box.insertWidget(self._box.count() - 1, part)
            self._cards.append(card_widget)
            self._headings.append(heading)
        for i, (heading, card_widget) in enumerate(zip(self._headings, self._cards, strict=True)):
            begins = i < len(cards) and (not i or round_of(cards[i]) != round_of(cards[i - 1]))
            if i < len(cards):
                card_widget.show_card(cards[i], state, now)
                heading.setText(heading_of(cards[i], now))
            card_widget.setVisible(i < len(cards))
            heading.setVisible(begins)
        if len(self._cards) < len(cards):
            self._later.start(FRAME_MS)

    def _columns(self) -> int:
        width = self.viewport().width()
        return 2 * COLUMNS if width >= self._theme.px(WIDE) else COLUMNS if width > NARROW else COLUMNS // 2

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for card_widget in self._cards:
            card_widget.set_columns(self._columns())
