"""The pages of the window: one table, of which navigation, shortcuts, titles, `--page` and the window itself are made.

A page is a line here and a folder `NAME/` whose module `page.py` defines one subclass of `Page`. The module is imported when the
page is first needed. Nothing here needs Qt: the command line reads the names.
"""

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waggle.gui.i18n.marker import later

if TYPE_CHECKING:
    from waggle.gui.pages.page import Page


@dataclass(frozen=True, kw_only=True)
class PageEntry:
    """`icon` is a file in resources/look/icons; without it, the icon has the name of the page.

    A page that is built `with_window` opens faster when it is first shown, because it is built without a style sheet.
    """

    title: str
    icon: str = ""
    at_foot: bool = False  # of the navigation
    with_window: bool = False


PAGES: dict[str, PageEntry] = {
    "home": PageEntry(title=later("Home"), with_window=True),
    "live": PageEntry(title=later("Live")),
    "progress": PageEntry(title=later("Progress")),
    "peers": PageEntry(title=later("Peers"), with_window=True),
    "models": PageEntry(title=later("Models")),
    "playground": PageEntry(title=later("Try it"), icon="answer"),
    "swarms": PageEntry(title=later("Swarms"), with_window=True),
    "you": PageEntry(title=later("You"), with_window=True),
    "settings": PageEntry(title=later("Settings"), at_foot=True),
    "help": PageEntry(title=later("Help"), at_foot=True),
}


def page_class(name: str) -> "type[Page]":
    """The subclass of `Page` in `NAME/page.py`; imports it."""
    from waggle.gui.pages.page import Page

    module = importlib.import_module(f"{__name__}.{name}.page")
    own = [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]
    (page,) = (value for value in own if issubclass(value, Page))
    return page


def page_name(page: "type[Page]") -> str:
    """The name of a page in the table, which is the name of its folder."""
    return page.__module__.split(".")[-2]
