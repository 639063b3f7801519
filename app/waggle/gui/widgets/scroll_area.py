"""A scroll area that gives its content the width of the view."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLayout, QScrollArea, QWidget

from waggle.gui.widgets.layout import edges


class ScrollArea(QScrollArea):
    """What is higher than the page, to be moved up and down; it ends where the page's head ends, scroll bar or none.

    `ground` is what lies behind it: the window's, or a card's "surface".
    """

    def __init__(self, box: QLayout, ground: str = "scrolled") -> None:
        super().__init__()
        self._edges: tuple[int, int] | None = None
        self._inner = box
        inner = QWidget()
        inner.setObjectName(ground)
        self.setProperty("ground", ground)
        inner.setLayout(box)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(inner)
        self.verticalScrollBar().rangeChanged.connect(self._keep_edges)

    def set_edges(self, edge: int, below: int) -> None:
        """Room at the sides, in which the scroll bar stands too, and below the last part."""
        self._edges = edge, below
        self._keep_edges()

    def scroll_like(self, other: "ScrollArea") -> None:
        """As far down as the other, whose words may be of another size."""
        mine, there = self.verticalScrollBar(), other.verticalScrollBar()
        mine.setValue(round(there.value() * mine.maximum() / max(1, there.maximum())))

    def _keep_edges(self) -> None:
        if self._edges is None:
            return
        edge, below = self._edges
        bar = self.verticalScrollBar()
        beside = edge - (bar.sizeHint().width() if bar.maximum() > 0 else 0)
        self._inner.setContentsMargins(*edges(edge, 0, beside, below))
