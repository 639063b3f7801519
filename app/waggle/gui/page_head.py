"""The head of a page: its title, what can be done with all of it, and the sentence that it says."""

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QVBoxLayout, QWidget

from waggle.gui.look import Look
from waggle.gui.parts import Edges, column, held, row, text


class Top(QWidget):
    """Title and actions on one line; where words are large and the window is not, the actions stand below."""

    def __init__(self, title: QWidget, *actions: QWidget) -> None:
        super().__init__()
        self._title, self._actions = title, held(row(*actions))
        self._box = row((title, 1), self._actions)
        self._box.setAlignment(self._actions, Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter)
        self.setLayout(self._box)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # an action came or went
            self._fit()
        return super().event(event)

    def _fit(self) -> None:
        wanted = self._title.sizeHint().width() + self._box.spacing() + self._actions.sizeHint().width()
        ways = QBoxLayout.Direction
        self._box.setDirection(ways.LeftToRight if wanted <= self.width() else ways.TopToBottom)


def page_head(look: Look, title: str, line: QWidget, *actions: QWidget) -> QVBoxLayout:
    """Title and actions on one line; what the page says in a sentence has all of the next one."""
    name = text(look, title, "title")
    name.setFixedHeight(look.px(40))
    return column(Top(name, *actions), line, gap=0)


def head_edges(edge: int, *, compact: bool, below: int = 0) -> Edges:
    """Room around a page's head."""
    return edge, 12 if compact else 22, edge, below
