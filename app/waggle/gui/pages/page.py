"""A page of the window: what every one of them has."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import WIDEST
from waggle.protocol.state import State


class Page(QWidget):
    """One page of the window: shows a State when it is visible, and knows a wide and a compact form."""

    commanded = Signal(object)  # a command for the engine
    notice_posted = Signal(str, str)  # what came of something that was asked for, and its sign, as `StatusBar.notice` has them

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self.compact = False
        self._arranged: tuple[int, int, bool, bool] | None = None

    def show_state(self, state: State, now: float) -> None:
        """Redraw what changed; `now` is the moment that "ago" is counted from."""
        raise NotImplementedError

    def arrange(self, edge: int, gap: int) -> None:
        """Take the form that `compact` names, with so much room at the sides and between cards."""
        raise NotImplementedError

    def go_to_search(self) -> None:
        """Go to where something can be looked for, on a page that has such a place."""

    def go_on(self, before: "Page") -> None:
        """Take the place of the same page of an earlier window: what runs there goes on, and what a person chose, typed or waits
        for there is found here, as far as no State has it."""

    def set_compact(self, compact: bool) -> None:
        """The window became narrower than the tokens' `compact_below`, or wider."""
        self.compact = compact
        self._arrange()

    def is_tight(self) -> bool:
        """Whether there is little room for what stands one below the other."""
        return self.compact

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Content is never wider than WIDEST: what is more goes to the sides."""
        tight = self.is_tight()
        gap = 12 if tight else self.theme.space["base"]
        edge = max(20 if self.compact else self.theme.space["page"], (self.width() - WIDEST) // 2)
        if self._arranged != (edge, gap, self.compact, tight):
            self._arranged = (edge, gap, self.compact, tight)
            self.arrange(edge, gap)
