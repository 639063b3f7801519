"""The base class of the pages of the window."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from waggle.gui.pages.context import PageContext
from waggle.gui.widgets.layout import WIDE, WIDEST
from waggle.protocol.state import State


class Page(QWidget):
    """One page of the window: shows a State while it is visible, in a usual, a compact and a `wide` form.

    `commanded` carries a command for the engine whose answer nobody awaits, `notice_posted` the words and icon of a notice (see
    `StatusBar.show_notice`).
    """

    wide_from = WIDE  # pixels of width of the wide form at least
    commanded = Signal(object)
    notice_posted = Signal(str, str)

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.context, self.theme = context, context.theme
        self.compact = self.wide = False
        self._arranged: tuple[int, int, bool, bool, bool] | None = None

    def show_state(self, state: State, now: float) -> None:
        """Redraw what changed; `now` is the time from which "ago" is counted. Called only while the page is visible."""
        raise NotImplementedError

    def arrange(self, edge: int, gap: int) -> None:
        """Lay out in the form that `compact` names, with these pixels at the sides and between cards."""
        raise NotImplementedError

    def show_part(self, part: str) -> None:
        """Show a part of the page that another page leads to, such as the invitation of Swarms."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Do what the first opening would do, before it."""

    def show_replay(self, *, over: bool) -> None:
        """The window shows a recording, so no engine can be asked; `over`: it has ended."""

    def forget_run(self) -> None:
        """The recording starts again: drop what belongs to the run before."""

    def go_to_search(self) -> None:
        """Focus the search field, on a page that has one."""

    def take_over(self, before: "Page") -> None:
        """Take over what no State has from the page of an earlier window: processes, choices, text, awaited answers."""

    def set_compact(self, compact: bool) -> None:
        """The window became narrower than the theme's `compact_below`, or wider."""
        self.compact = compact
        self._arrange()

    def is_tight(self) -> bool:
        """Whether there is little height for what stands one below the other."""
        return self.compact

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Limit the width of the content, which begins at the same place on all pages; the rest goes to the sides."""
        tight, self.wide = self.is_tight(), self.width() >= self.theme.px(self.wide_from)
        gap = 12 if tight else self.theme.space["base"]
        edge = max(20 if self.compact else self.theme.space["page"], (self.width() - WIDEST) // 2)
        if self._arranged != (edge, gap, self.compact, tight, self.wide):
            self._arranged = (edge, gap, self.compact, tight, self.wide)
            self.arrange(edge, gap)
