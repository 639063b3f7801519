"""Cards in one column, or in two beside each other where the page is wide; their order for the Tab key is the same in both."""

from collections.abc import Sequence

from PySide6.QtWidgets import QBoxLayout, QWidget

from waggle.gui.widgets.layout import row


class TwoColumns(QWidget):
    """The first cards stand above or left of the others; each column begins at the top."""

    def __init__(self) -> None:
        super().__init__()
        self._columns = QWidget(), QWidget()
        self._boxes = tuple(QBoxLayout(QBoxLayout.Direction.TopToBottom) for _ in self._columns)
        self._line = row(*((part, 1) for part in self._columns))
        self.setLayout(self._line)
        for part, box in zip(self._columns, self._boxes, strict=True):
            box.setContentsMargins(0, 0, 0, 0)
            part.setLayout(box)

    def fill(self, first: Sequence[QWidget], second: Sequence[QWidget]) -> None:
        """Put the cards in, once; each goes into its last place at once, because Qt restyles what moves to another parent."""
        for box, cards in zip(self._boxes, (first, second), strict=True):
            for card in cards:
                box.addWidget(card)
            box.addStretch(1)

    def arrange(self, gap: int, *, wide: bool) -> None:
        ways = QBoxLayout.Direction
        self._line.setDirection(ways.LeftToRight if wide else ways.TopToBottom)
        for box in (self._line, *self._boxes):
            box.setSpacing(gap)
