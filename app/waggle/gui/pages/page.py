"""The base class of the window's pages."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import WIDEST
from waggle.protocol.state import State


class Page(QWidget):
    """Shows a State while it is visible; has a wide and a compact layout."""

    commanded = Signal(object)  # a command for the engine
    notice_posted = Signal(str, str)  # the outcome of what a person asked for, and its sign, as for `StatusBar.notice`

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self.compact = False
        self._arranged: tuple[int, int, bool, bool] | None = None

    def show_state(self, state: State, now: float) -> None:
        """Redraw what changed; "ago" is counted from unix time `now`."""
        raise NotImplementedError

    def arrange(self, edge: int, gap: int) -> None:
        """Lay out for `compact`, with `edge` pixels at the sides and `gap` pixels between cards."""
        raise NotImplementedError

    def go_to_search(self) -> None:
        """Focus the search field, on a page that has one."""

    def take_over(self, before: "Page") -> None:
        """Take over what no State has from the page of an earlier window: processes, choices, text, awaited answers."""

    def set_compact(self, compact: bool) -> None:
        """The window became narrower than the theme's `compact_below`, or wider."""
        self.compact = compact
        self._arrange()

    def is_tight(self) -> bool:
        """Whether there is little height, too."""
        return self.compact

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Lay out again if it changes anything. Content is never wider than WIDEST; more width becomes margin."""
        tight = self.is_tight()
        gap = 12 if tight else self.theme.space["base"]
        edge = max(20 if self.compact else self.theme.space["page"], (self.width() - WIDEST) // 2)
        if self._arranged != (edge, gap, self.compact, tight):
            self._arranged = (edge, gap, self.compact, tight)
            self.arrange(edge, gap)
