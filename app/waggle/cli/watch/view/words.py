"""Words and titles that are drawn again only when they change, which spares a slow connection."""

from typing import Any

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static


def entitle(panel: Widget, title: Content) -> None:
    """Write the title of a panel, unless it stands there."""
    if title.markup != panel.border_title:
        panel.border_title = title


class Words(Static):
    """Shows `Content`, which has no markup."""

    def __init__(self, **names: Any) -> None:
        super().__init__(markup=False, **names)
        self._words = Content()

    def show(self, words: Content) -> None:
        if not words.is_same(self._words):
            self._words = words
            self.update(words)
