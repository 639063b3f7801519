"""The window without its notices: navigation rail, pages and status bar, drawn from one State."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QStackedWidget, QWidget

from waggle.core import paths
from waggle.gui.application.navigation import NavigationRail, StatusBar
from waggle.gui.i18n.formatting import tr, tr_sentence
from waggle.gui.pages.help.page import HelpPage
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.live.page import LivePage
from waggle.gui.pages.page import Page
from waggle.gui.pages.peers.page import PeersPage
from waggle.gui.pages.progress.page import ASK_AGAIN, ProgressPage
from waggle.gui.pages.settings.page import SettingsPage
from waggle.gui.pages.swarms.page import SwarmsPage
from waggle.gui.pages.you.page import YouPage
from waggle.gui.state import shortcuts
from waggle.gui.state.daily_totals import QuerySchedule
from waggle.gui.state.event_log import EventLog
from waggle.gui.state.pages import PAGES
from waggle.gui.state.problem_report import report
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.spoken_summary import MINUTE, summary_text
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme, style_sheet_suspended
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.text import announce
from waggle.protocol.status_text import sentence

SMALLEST = (900, 600)  # pixels


class PageWindow(QWidget):
    """Builds the pages when they are first needed, and draws only the visible one.

    Signals: `commanded` carries a command for the engine; `start_wanted`: start the engine; `leave_wanted`: quit;
    `goodbye_wanted` carries the kinds of data to remove; `example_wanted`: open a second window with a recorded swarm;
    `aside_wanted`: rename an unusable settings file and start; `noticed` carries the words and sign of a notice.
    """

    commanded = Signal(object)
    start_wanted = Signal()
    leave_wanted = Signal()
    goodbye_wanted = Signal(object)
    example_wanted = Signal()
    aside_wanted = Signal()
    noticed = Signal(str, str)

    def __init__(
        self, theme: Theme, current: StateStore, *, choices: SettingsStore | None = None, event_log: EventLog | None = None,
        home: paths.Home | None = None, can_start: Callable[[], bool] = lambda: False, host: str = "",
    ) -> None:  # fmt: skip
        super().__init__()
        self.setObjectName("window")
        self.setWindowTitle("Waggle")
        self.setMinimumSize(*SMALLEST)
        self._theme, self._current = theme, current
        self._compact: bool | None = None
        self._announced, self._read_out = "", ("", 0.0)
        self._replay = False
        self.page = "home"
        event_log = event_log or EventLog(self)
        self._choices = choices = choices or SettingsStore(None, parent=self)
        history = QuerySchedule(ASK_AGAIN)  # shared by both pages that show it: the first one seen queries
        self._page_factories: dict[str, Callable[[], Page]] = {
            "live": lambda: self._live(theme), "progress": lambda: ProgressPage(theme, history),
            "settings": lambda: SettingsPage(theme, choices), "help": lambda: self._help(event_log, home, host),
        }  # fmt: skip
        with style_sheet_suspended():
            self.home, self.peers, self.swarms, self.you = (
                HomePage(theme, history, can_start),
                PeersPage(theme),
                SwarmsPage(theme, here=home is not None),
                YouPage(theme, home),
            )
            self.pages: dict[str, Page] = {"home": self.home, "peers": self.peers, "swarms": self.swarms, "you": self.you}
            self.rail, self.status = NavigationRail(theme), StatusBar(theme)
            self._stack, self._all = QStackedWidget(), QStackedWidget()
            for name, page in self.pages.items():
                self._add(name, page)
            self._all.addWidget(as_widget(column((row(self.rail, (self._stack, 1), gap=0), 1), self.status, gap=0)))
            self.setLayout(column(self._all))
        self.home.hero.report = lambda state: report(state, event_log.lines(), home.root if home else None, host)
        self.home.hero.far = choices.far
        self.home.hero.broken = lambda: choices.broken
        self.home.hero.aside_wanted.connect(self.aside_wanted)
        self.rail.chosen.connect(self.show_page)
        self.home.page_wanted.connect(self.show_page)
        self.status.home_wanted.connect(lambda: self.show_page("home"))
        self.home.race_wanted.connect(self.show_race)
        self.home.invite_wanted.connect(self._invite)
        self.home.trying_wanted.connect(self._show_trying)
        self.home.start_wanted.connect(self.start_wanted)
        self.home.hero.setting_wanted.connect(self._show_setting)
        self.peers.invite_wanted.connect(self._invite)
        self.you.goodbye_wanted.connect(self.goodbye_wanted)
        self.home.hero.profile.chosen.connect(choices.set)
        current.changed.connect(self.redraw)
        self._add_keys()
        self.show_page("home")
        self.resize(1280, 800)
        self.setFocus()  # no widget of a page has the focus at first

    def _add_keys(self) -> None:
        QShortcut(QKeySequence(shortcuts.QUIT), self, self.leave_wanted.emit)  # a system with keys of its own for these
        QShortcut(QKeySequence(shortcuts.CLOSE), self, self.close)  # sends the window the same
        QShortcut(QKeySequence(shortcuts.PAUSE), self, self._pause_or_resume)
        QShortcut(QKeySequence(shortcuts.FIND), self, lambda: self.pages[self.page].go_to_search())
        for place, name in enumerate(PAGES, 1):
            QShortcut(QKeySequence(shortcuts.page(place)), self, lambda name=name: self.show_page(name))
        for shortcut in self.findChildren(QShortcut, options=Qt.FindChildOption.FindDirectChildrenOnly):
            shortcut.setAutoRepeat(False)  # a second quit kills the engine, and a second pause resumes

    def _pause_or_resume(self) -> None:
        """Do what Home's main button does now, on any page; not during the welcome questions, which have buttons of their own."""
        state = self._current.state
        if self._all.currentIndex() == 0 and sentence(state).action != "copy_report":
            self.home.hero.show_state(state, self._current.now())
            self.home.hero.act()

    def show_page(self, name: str) -> None:
        """Show a page by its id (an unknown one is Home) and draw it: hidden pages are not kept up to date."""
        self.page = name = name if name in PAGES else "home"
        self.rail.show_chosen(name)
        page, before, focused = self._page(name), self._stack.currentWidget(), self.focusWidget()
        if before is not None and focused is not None and before.isAncestorOf(focused):
            page.setFocus()  # else Qt focuses some button of the page, and Space would press it
        self._stack.setCurrentWidget(page)
        if page is not before:
            announce(self, page.accessibleName())
        self.redraw()

    def _page(self, name: str) -> Page:
        """A page, built when it is first needed: building and restyling cost time."""
        if name not in self.pages:
            self.pages[name] = self._add(name, self._page_factories[name]())
        return self.pages[name]

    def take_over(self, before: "PageWindow") -> None:
        """Take over the state of the window that this one replaces, page by page, hidden ones included."""
        for name, page in before.pages.items():
            if name != self.page:
                self._page(name).take_over(page)
        self.setFocus()  # so that restoring the visible page decides the focus
        self.pages[self.page].take_over(before.pages[self.page])
        self.redraw()

    def forget_run(self) -> None:
        """Another run begins: Live drops the cards that it froze."""
        live = self.pages.get("live")
        if isinstance(live, LivePage):
            live.thaw()

    def _add(self, name: str, page: Page) -> Page:
        """Add a page to the stack and connect it."""
        self._stack.addWidget(page)
        page.setAccessibleName(tr(PAGES[name]))
        page.commanded.connect(self.commanded)
        page.notice_posted.connect(self.noticed)
        page.set_compact(bool(self._compact))
        return page

    def cover(self, widget: QWidget) -> None:
        """Show a widget instead of rail, pages and status bar, until `uncover`."""
        self._all.addWidget(widget)
        self._all.setCurrentWidget(widget)
        widget.setFocus()

    def uncover(self) -> None:
        while (widget := self._all.widget(1)) is not None:
            self._all.removeWidget(widget)
            widget.deleteLater()
        self.redraw()

    def redraw(self) -> None:
        """Draw the visible page and the status bar; a hidden window draws nothing."""
        state = self._current.state
        self.home.hero.watch(state)
        if self._announced and not self.is_seen():
            return
        page = self._stack.currentWidget()
        assert isinstance(page, Page)
        page.show_state(state, self._current.now())
        self.status.show_state(state, self.page)
        if not self._replay:
            self.status.show_service(state.service)
        self._announce(tr_sentence(sentence(state).word))
        self._announce_digest()

    def _announce(self, word: str) -> None:
        """Announce a new state to screen readers, but not each round."""
        if word != self._announced:
            self._announced = word
            announce(self, tr_sentence(sentence(self._current.state).says))

    def _announce_digest(self) -> None:
        """Announce the summary if the setting is on, at most once a minute, and never the same twice."""
        last_words, at = self._read_out
        now = self._current.now()
        if not self._choices.settings.window.read_out or now - at < MINUTE:
            return
        words = summary_text(self._current.state, now)
        if words and words != last_words:
            self._read_out = words, now
            announce(self, words)

    def is_seen(self) -> bool:
        """Whether the window is open: neither hidden in the tray nor minimised."""
        return not (self.isHidden() or self.isMinimized())

    def _live(self, theme: Theme) -> LivePage:
        live = LivePage(theme)
        live.example_wanted.connect(self.example_wanted)
        return live

    def _help(self, event_log: EventLog, home: paths.Home | None, host: str) -> HelpPage:
        help_page = HelpPage(self._theme, event_log, home, host)
        help_page.goodbye_wanted.connect(self._show_goodbye)
        help_page.race_wanted.connect(self.show_race)
        return help_page

    def _show_goodbye(self) -> None:
        self.show_page("you")
        self.you.show_goodbye()

    def _show_setting(self, key: str) -> None:
        self.show_page("settings")
        settings = self.pages["settings"]
        assert isinstance(settings, SettingsPage)
        settings.show_setting(key)

    def show_race(self) -> None:
        self.show_page("swarms")
        self.swarms.show_race()

    def _show_trying(self) -> None:
        self.show_page("swarms")
        self.swarms.show_trying()

    def _invite(self) -> None:
        self.show_page("swarms")
        self.swarms.show_invitation()

    def show_join(self, link: str) -> None:
        """Preview the swarm of an invite link, or say that the link is invalid."""
        self.show_page("swarms")
        self.swarms.show_join(link)

    def show_invite(self, link: str) -> None:
        """Preview an invite link, or a file with one (path or URL), from outside Waggle; joining is left to the person."""
        if link.startswith("waggle:"):
            self.show_join(link)
        else:
            self.show_page("swarms")
            self.swarms.show_join()
            self.swarms.join_view.open_file(Path(QUrl(link).toLocalFile() if link.startswith("file:") else link))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        compact = self.width() < self._theme.size["compact_below"]
        if compact != self._compact:
            self._compact = compact
            self.rail.set_compact(compact)
            self.status.set_compact(compact)
            for page in self.pages.values():
                page.set_compact(compact)
            self.redraw()
