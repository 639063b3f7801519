"""A scroll area that gives its content the width of the view."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLayout, QScrollArea, QWidget

from waggle.gui.widgets.layout import edges


class ScrollArea(QScrollArea):
    """Scrolls vertically. Its right edge stays in line with the page header, with or without a scroll bar.

    `ground` is the background: that of the window ("scrolled"), or of a card ("surface").
    """

    def __init__(self, box: QLayout, ground: str = "scrolled") -> None:
        super().__init__()
        self._edges: tuple[int, int, int] | None = None
        self._inner = box
        box.setSizeConstraint(QLayout.SizeConstraint.SetMinimumSize)  # it grows with its content before it lays it out, not after
        inner = QWidget()
        inner.setObjectName(ground)
        self.setProperty("ground", ground)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(inner)
        inner.setLayout(box)  # last: Qt restyles whatever moves to another parent, with all that is in it
        self.verticalScrollBar().rangeChanged.connect(self._keep_edges)

    def set_edges(self, edge: int, below: int, *, before: int | None = None) -> None:
        """Set the margins at the sides, which include the scroll bar, and below the content; `before`: at the start of lines."""
        self._edges = edge if before is None else before, edge, below
        self._keep_edges()

    def scroll_like(self, other: "ScrollArea") -> None:
        """Scroll to the same relative position as another area, whose text size may differ."""
        mine, there = self.verticalScrollBar(), other.verticalScrollBar()
        mine.setValue(round(there.value() * mine.maximum() / max(1, there.maximum())))

    def _keep_edges(self) -> None:
        if self._edges is None:
            return
        before, edge, below = self._edges
        bar = self.verticalScrollBar()
        beside = edge - (bar.sizeHint().width() if bar.maximum() > 0 else 0)
        self._inner.setContentsMargins(*edges(before, 0, beside, below))
