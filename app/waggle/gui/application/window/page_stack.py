"""The pages of one window: each is built when it is first needed, and one of them is visible."""

from typing import TypeVar

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget

from waggle.gui.i18n.formatting import tr
from waggle.gui.pages import PAGES, page_class, page_name
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.page import Page

SomePage = TypeVar("SomePage", bound=Page)


class PageStack(QStackedWidget):
    """`commanded` and `notice_posted` carry the same as those of the pages."""

    commanded = Signal(object)
    notice_posted = Signal(str, str)

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.built: dict[str, Page] = {}
        self._context, self._compact = context, False
        self._replay_over: bool | None = None  # None: no replay
        for name, entry in PAGES.items():
            if entry.with_window:
                self.build(name)

    def __getitem__(self, name: str) -> Page:
        """A page by its name; builds it if necessary, because building all at once would delay the first sight of the window."""
        return self.built.get(name) or self.build(name)

    def of(self, page: type[SomePage]) -> SomePage:
        """A page by its class."""
        member = self[page_name(page)]
        assert isinstance(member, page)
        return member

    def build(self, name: str) -> Page:
        """Build a page that was not built yet."""
        self.built[name] = page = page_class(name)(self._context)
        self.addWidget(page)
        page.setAccessibleName(tr(PAGES[name].title))
        page.commanded.connect(self.commanded)
        page.notice_posted.connect(self.notice_posted)
        page.set_compact(self._compact)
        if self._replay_over is not None:
            page.show_replay(over=self._replay_over)
        return page

    def set_compact(self, compact: bool) -> None:
        self._compact = compact
        for page in self.built.values():
            page.set_compact(compact)

    def show_replay(self, *, over: bool) -> None:
        self._replay_over = over
        for page in self.built.values():
            page.show_replay(over=over)

    def forget_run(self) -> None:
        for page in self.built.values():
            page.forget_run()

    def take_over(self, before: "PageStack", visible: str) -> None:
        """Take over from the pages of another window; the visible one comes last, so that it decides the focus."""
        for name, page in before.built.items():
            if name != visible:
                self[name].take_over(page)
        self.window().setFocus()
        self[visible].take_over(before[visible])
