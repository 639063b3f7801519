"""The header of a page: title, actions, and a line of text below."""

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QLabel, QVBoxLayout, QWidget

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import Edges, as_widget, column, row
from waggle.gui.widgets.text import text

BELOW = 6  # pixels between the actions and the line of text, if the actions are below the title


class TitleRow(QWidget):
    """Title and actions on one line; without room, the actions move below the title, on two lines if necessary."""

    def __init__(self, title: QLabel, *actions: QWidget) -> None:
        super().__init__()
        self._title, self._parts = title, actions
        self._line = row(*actions[:1], *([row(*actions[1:])] if actions[1:] else []))
        self._actions = as_widget(self._line)
        self._box = row((title, 1), self._actions)
        self._box.setAlignment(self._actions, Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter)
        for place in range(self._line.count()):
            if item := self._line.itemAt(place):
                item.setAlignment(Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter)
        self.setLayout(self._box)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # an action was shown or hidden
            self._fit()
        return super().event(event)

    def _fit(self) -> None:
        parts = [_width(part) for part in self._parts if not part.isHidden()]
        actions = sum(parts) + self._line.spacing() * (len(parts) - 1)
        fits = _width(self._title) + self._box.spacing() + actions <= self.width()
        ways = QBoxLayout.Direction
        self._line.setDirection(ways.LeftToRight if actions <= self.width() else ways.TopToBottom)
        self._box.setDirection(ways.LeftToRight if fits else ways.TopToBottom)
        self._box.setContentsMargins(0, 0, 0, 0 if fits else BELOW)


def _width(part: QWidget) -> int:
    return part.sizeHint().expandedTo(part.minimumSize()).boundedTo(part.maximumSize()).width()


def page_header(theme: Theme, title: str, line: QWidget, *actions: QWidget) -> QVBoxLayout:
    """The header: title and actions, and `line` below over the whole width."""
    return column(title_row(theme, title, *actions), line, gap=0)


def title_row(theme: Theme, title: str, *actions: QWidget) -> TitleRow:
    """The first line of the header alone, for a page whose title changes."""
    name = text(theme, title, "title")
    name.setFixedHeight(theme.px(40))
    return TitleRow(name, *actions)


def header_margins(edge: int, *, compact: bool, below: int = 0) -> Edges:
    """Margins of a page header."""
    return edge, 12 if compact else 22, edge, below
