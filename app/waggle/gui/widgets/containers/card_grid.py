"""Cards in columns of equal width, as many as fit; cards of one line are equally high."""

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from waggle.gui.widgets.layout import empty

MOST_COLUMNS = 3


class CardGrid(QWidget):
    """`least` is the width in pixels that a card needs. Cards stay the same widgets when the number of columns changes."""

    def __init__(self, least: int, gap: int = 12) -> None:
        super().__init__()
        self._least, self._columns = least, 0
        self._cards: list[QWidget] = []
        self._fillers: list[QWidget] = []  # in the columns without a card: Qt leaves no gap beside an empty one
        self._box = QGridLayout()
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(gap)
        self.setLayout(self._box)

    def show_cards(self, cards: Sequence[QWidget]) -> None:
        """Show these cards, and delete the ones before."""
        empty(self._box)
        self._cards, self._fillers, self._columns = list(cards), [], 0
        self._arrange()

    def minimumSizeHint(self) -> QSize:
        """One column is enough."""
        widest = max((card.minimumSizeHint().width() for card in self._cards), default=0)
        return QSize(min(widest, self._least), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        gap = self._box.horizontalSpacing()
        columns = max(1, min(MOST_COLUMNS, (self.width() + gap) // (self._least + gap)))
        if columns == self._columns:
            return
        self._columns = columns
        for card in self._cards:
            self._box.removeWidget(card)
        for filler in self._fillers:
            self._box.removeWidget(filler)
            filler.deleteLater()
        self._fillers = [QWidget(self) for _ in range(columns - len(self._cards))] if self._cards else []
        for place, card in enumerate(self._cards):
            self._box.addWidget(card, place // columns, place % columns)
        for place, filler in enumerate(self._fillers, len(self._cards)):
            self._box.addWidget(filler, 0, place)
        for column in range(MOST_COLUMNS):
            self._box.setColumnStretch(column, 1 if column < columns else 0)
