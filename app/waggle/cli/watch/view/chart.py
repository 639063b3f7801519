"""A chart of values by round, with its title in the frame."""

from collections.abc import Callable, Sequence
from typing import Any

from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

from waggle.cli.watch.plot import Point, plot, spread
from waggle.cli.watch.view.words import entitle

LABEL = 5  # cells: "100% "
CEILINGS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)


class Chart(Widget):
    """Draws values from 0 to 1 in a colour of the theme, as high as the highest needs. `label` writes a value."""

    DEFAULT_CSS = "Chart { width: 1fr; height: 1fr; }"

    def __init__(self, colour: str, label: Callable[[float], str], **names: Any) -> None:
        super().__init__(**names)
        self._colour, self._label = colour, label
        self._points: Sequence[Point] = ()
        self._first = self._last = 0

    def show(self, title: Content, points: Sequence[Point], first: int, last: int) -> None:
        """Show points of the rounds `first` to `last`."""
        entitle(self, title)
        if (points, first, last) != (self._points, self._first, self._last):
            self._points, self._first, self._last = points, first, last
            self.refresh()

    def render(self) -> RenderResult:
        width, height = self.size.width - LABEL, self.size.height - 1
        if not self._points or width < 1 or height < 1:
            return Content("")
        columns = spread(self._points, self._first, self._last, width)
        highest = max(value for value in columns if value is not None)
        top = next((ceiling for ceiling in CEILINGS if highest <= ceiling), 1.0)
        labels = [self._label(top), *[""] * (height - 2), self._label(0.0)]
        lines = [
            Content.assemble((f"{label:>{LABEL - 1}} ", "dim"), (line, self._colour))
            for label, line in zip(labels, plot(columns, height, top), strict=False)
        ]
        return Content("\n").join([*lines, Content.styled(self._rounds(width), "dim")])

    def _rounds(self, width: int) -> str:
        begin, end = f"{self._first:,} round{'' if self._first == 1 else 's'}", f"{self._last:,}"
        return " " * LABEL + begin + end.rjust(width - len(begin)) if width > len(begin) + len(end) else ""
