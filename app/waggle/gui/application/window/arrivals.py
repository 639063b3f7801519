"""Shows what comes from outside the window: invites, files of questions and models. Choosing any of it is left to the person."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QUrl, Signal

from waggle.core.text import pasted_link
from waggle.gui.application.window.notices import Notices
from waggle.gui.application.window.page_stack import PageStack
from waggle.gui.i18n.formatting import tr, visible
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.swarms.page import SwarmsPage


class Arrivals(QObject):
    """Shows each on its page, or says in a notice why it cannot. `attention_wanted`: the window should come to the front."""

    attention_wanted = Signal()

    def __init__(self, context: PageContext, show_page: Callable[..., None], pages: PageStack, notices: Notices) -> None:
        super().__init__(pages)
        self._context, self._show_page, self._pages, self._notices = context, show_page, pages, notices
        self._host = context.engine.name

    def show_invite(self, link: str) -> None:
        """Preview an invite link, or a file with one (path or URL), from outside Waggle; joining is left to the person."""
        self._show_page("swarms")
        swarms = self._pages.of(SwarmsPage)
        if pasted_link.has_link(link) and not link.startswith("file:"):
            swarms.show_join(link)
        else:
            swarms.join_view.open_file(Path(QUrl(link).toLocalFile() if link.startswith("file:") else link))

    def show_files(self, paths: Sequence[str], words: str) -> None:
        """Show the form for a swarm with these files of questions; `words`: what to say about what else was dropped."""
        state = self._context.store.state
        if self._host:
            words = tr("Your engine runs on %1. There, `waggle swarm create --questions FILE` makes a swarm from a file.")
            self._notices.show(words.replace("%1", visible(self._host)))
        elif paths and state.swarms is not None and state.swarms.fixed:
            self._notices.show(tr(state.swarms.fixed))
        elif paths:
            self._show_page("swarms")
            self._pages.of(SwarmsPage).show_form(paths, words)
            self.attention_wanted.emit()
        else:
            self._notices.show(words)

    def show_model(self, reference: str) -> None:
        """Show the page Models with this folder, file or address of a model filled in; choosing it is left to the person."""
        if self._host and "://" not in reference:
            words = tr("Your engine runs on %1, which cannot see folders of this computer.")
            self._notices.show(words.replace("%1", visible(self._host)))
            return
        self._show_page("models", reference)
        self.attention_wanted.emit()
