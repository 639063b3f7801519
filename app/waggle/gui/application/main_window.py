"""The main window: navigation rail, pages and status bar, drawn from one State."""

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QStackedWidget, QWidget

from waggle.gui.application.window.arrivals import Arrivals
from waggle.gui.application.window.build_ahead import BuildAhead
from waggle.gui.application.window.file_drop import FileDrop
from waggle.gui.application.window.focus_memory import FocusMemory
from waggle.gui.application.window.navigation import NavigationRail, StatusBar
from waggle.gui.application.window.notices import Notices, is_on_screen
from waggle.gui.application.window.page_area import PageArea
from waggle.gui.application.window.page_stack import PageStack
from waggle.gui.application.window.screen_fit import ScreenFit
from waggle.gui.application.window.settled_layout import settle
from waggle.gui.i18n.formatting import tr, visible
from waggle.gui.pages import PAGES
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.home.page import HomePage
from waggle.gui.state import shortcuts
from waggle.gui.state.engine_clock import clock_words, zone_words
from waggle.gui.state.story.spoken_summary import MINUTE, summary_text
from waggle.gui.theme.theme import suspend_style_sheet
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.text import announce
from waggle.protocol.text.status_text import sentence
from waggle.protocol.zone import time_there

SMALLEST = (900, 600)  # logical pixels; smaller where the free screen is smaller: pages and rail scroll there
BAR = 16  # pixels: a scroll bar beside the pages


class MainWindow(QWidget):
    """Draws only the visible page. What happens to commands that no engine carries out is shown here, too.

    `commanded` carries a command for the engine; `leave_wanted`: quit; `closing`: the person closed the window. What else pages
    ask for comes from `requests`.
    """

    commanded = Signal(object)
    leave_wanted = Signal()
    closing = Signal()

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("window")
        self._host, self._other_clock_shown, self._other_zone_shown = context.engine.name, False, False
        self.setWindowTitle(self._title())
        self._theme, self._store, self._settings = context.theme, context.store, context.settings
        self.requests = context.requests
        self._compact: bool | None = None
        self._announced, self._state_said, self._read_out = "", "", ("", 0.0)
        self._replay = self.leaving = False
        self.page = "home"
        with suspend_style_sheet():
            self.pages = PageStack(context)
            self.rail, self.status, self._area = NavigationRail(context.theme), StatusBar(context.theme), PageArea(self.pages)
            self._all = QStackedWidget()
            self._all.addWidget(as_widget(column((row(self.rail, (self._area, 1), gap=0), 1), self.status, gap=0)))
            self.setLayout(column(self._all))
        self.notices = Notices(self, self.status)
        self.pages.commanded.connect(self.commanded)
        self.pages.notice_posted.connect(self.notices.show)
        self.rail.chosen.connect(self.show_page)
        self.status.home_wanted.connect(lambda: self.show_page("home"))
        self.requests.page.connect(self.show_page)
        context.store.changed.connect(self.redraw)
        context.settings.refused.connect(self.show_refusal)
        context.client.refused.connect(self.show_refusal)
        self.arrivals = Arrivals(context, self.show_page, self.pages, self.notices)
        self.file_drop = FileDrop(self, context.theme)
        self.file_drop.dropped.connect(self.arrivals.show_files)
        self.file_drop.model_dropped.connect(self.arrivals.show_model)
        self.file_drop.invite_dropped.connect(self.arrivals.show_invite)
        self.arrivals.attention_wanted.connect(self.activateWindow)
        self._add_keys()
        self.show_page("home")
        self._focus_memory = FocusMemory(self)
        self._build_ahead = BuildAhead(self, self.pages)
        self._screen_fit = ScreenFit(self, QSize(*SMALLEST))
        self.resize(1280, 800)
        self.setFocus()  # no widget of a page has the focus at first

    def _add_keys(self) -> None:
        QShortcut(QKeySequence(shortcuts.QUIT), self, self.leave_wanted.emit)  # a system with keys of its own for these
        QShortcut(QKeySequence(shortcuts.CLOSE), self, self.close)  # sends the window the same
        QShortcut(QKeySequence(shortcuts.PAUSE), self, self._pause_or_resume)
        QShortcut(QKeySequence(shortcuts.FIND), self, lambda: self.pages[self.page].go_to_search())
        for place, name in enumerate(list(PAGES)[: shortcuts.PAGES], 1):
            QShortcut(QKeySequence(shortcuts.page(place)), self, lambda name=name: self.show_page(name))
        for name, key in shortcuts.USUAL.items():
            QShortcut(QKeySequence(key), self, lambda name=name: self.show_page(name))
        for shortcut in self.findChildren(QShortcut, options=Qt.FindChildOption.FindDirectChildrenOnly):
            shortcut.setAutoRepeat(False)  # a second quit kills the engine, and a second pause resumes

    def _pause_or_resume(self) -> None:
        """Do what Home's main button does now, on any page; not during the welcome questions, which have buttons of their own.

        A question about the model or the swarm is answered on Home alone.
        """
        state = self._store.state
        if self._all.currentIndex() == 0 and not state.waits_for_choice and sentence(state).action != "copy_report":
            self.pages.of(HomePage).act()

    def show_page(self, name: str, part: str = "") -> None:
        """Show a page (an unknown name is Home), or a part of it, and draw it: hidden pages are not kept up to date."""
        self.page = name = name if name in PAGES else "home"
        self.rail.select_page(name)
        page, before, focused = self.pages[name], self.pages.currentWidget(), self.focusWidget()
        takes_focus = page is not before and before is not None and focused is not None and before.isAncestorOf(focused)
        if takes_focus:
            page.show()
            page.setFocus()  # else Qt focuses some button of the page, and Space would press it; before the stack itself has it
        self.pages.setCurrentWidget(page)
        if page is not before and not takes_focus:
            announce(self, page.accessibleName())
        self.redraw()
        if part:
            page.show_part(part)
        if page is not before:
            settle(page)

    def cover(self, widget: QWidget) -> None:
        """Show a widget instead of rail, pages and status bar, until `uncover`."""
        self._all.addWidget(widget)
        self._all.setCurrentWidget(widget)
        self.file_drop.enabled = False
        widget.setFocus()

    def uncover(self) -> None:
        """Show the pages again. The focus goes to the present one, and a screen reader says the state anew."""
        if (pages := self._all.widget(0)) is not None:
            pages.show()
        self.pages[self.page].setFocus()  # before the stack itself has it, which a screen reader would say
        while (widget := self._all.widget(1)) is not None:
            self._all.removeWidget(widget)
            widget.deleteLater()
        self.file_drop.enabled = True
        self._announced = self._state_said = ""
        self.redraw()

    def redraw(self) -> None:
        """Draw the visible page and the status bar; a hidden window draws nothing."""
        state = self._store.state
        if self._announced and not is_on_screen(self):
            return
        self.pages[self.page].show_state(state, self._store.now())
        self.status.show_state(state, self.page)
        if not self._replay:
            self.status.show_service(state.service)
        self._show_other_clock()
        self._announce(tr(sentence(state).word))
        self._announce_digest()

    def _show_other_clock(self) -> None:
        """Say once that the far computer has another time, and once that it is in another time zone."""
        if not self._host:
            return
        store = self._store
        clock = "" if self._other_clock_shown else clock_words(store.ahead, self._host)
        zone = "" if self._other_zone_shown else zone_words(time_there(store.state.utc_offset, store.now()), self._host)
        self._other_clock_shown |= bool(clock)
        self._other_zone_shown |= bool(zone)
        if clock or zone:
            self.notices.show(" ".join(filter(None, (clock, zone))))

    def _announce(self, word: str) -> None:
        """Announce a new state to screen readers, but not each round."""
        if word != self._announced:
            self._announced = word
            says = tr(sentence(self._store.state).says)
            if says != self._state_said:  # two states may be one to a person
                self._state_said = says
                announce(self, says)

    def _announce_digest(self) -> None:
        """Announce the summary if the setting is on, at most once a minute, and never the same twice."""
        last_words, at = self._read_out
        now = self._store.now()
        if not self._settings.settings.window.read_out or now - at < MINUTE:
            return
        words = summary_text(self._store.state, now)
        if words and words != last_words:
            self._read_out = words, now
            announce(self, words)

    def show_refusal(self, title: str, advice: str) -> None:
        """Show in a notice why something was refused."""
        self.notices.show(f"{tr(title)} {tr(advice)}".strip())

    def show_replay(self, skipped: int = 0, *, example: bool = False, over: bool = False) -> None:
        """Mark the window as a replay for good; `over`: the recording has ended; `skipped`: lines of other versions."""
        if over:
            words = tr("Example, recorded: it has ended") if example else tr("Replay of a recorded run: it has ended")
        else:
            words = tr("Example: a real swarm of two, recorded") if example else tr("Replay of a recorded run")
        if skipped:
            words += tr(", %1 unknown lines skipped").replace("%1", str(skipped))
        self._replay = True
        self.status.show_run_label(words)
        self.pages.show_replay(over=over)
        self.setWindowTitle(self._title(words))

    def _title(self, words: str = "") -> str:
        """The window's title: it names the computer, if the engine runs on another one."""
        name = tr("Waggle on %1").replace("%1", visible(self._host)) if self._host else "Waggle"
        return f"{name}: {words}" if words else name

    def show_shutdown(self) -> None:
        """Show that the engine is stopping, until it has."""
        self.leaving, self.file_drop.enabled = True, False
        self.setWindowTitle(self._title(tr("closing")))
        goes_on = self._store.state.service and not self._replay
        self.notices.show_permanent(
            tr("Closing; training keeps running.") if goes_on else tr("Finishing this step, then closing.")
        )

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move the focus by Tab; when its control is disabled or hidden, Qt calls this, too, and the focus stays."""
        return self._focus_memory.keep() or super().focusNextPrevChild(forward)

    def event(self, event: QEvent) -> bool:
        """Draw again and restart the notice when the window comes back: while it was away, nothing was drawn."""
        accepted = super().event(event)
        if event.type() == QEvent.Type.WindowStateChange:
            self.redraw()
        if event.type() in (QEvent.Type.WindowStateChange, QEvent.Type.Show):
            self.notices.restart_timer()
        return accepted

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        compact = self.width() < self._theme.size["compact_below"]
        if compact != self._compact:
            self._compact = compact
            self.rail.set_compact(compact)
            self.status.set_compact(compact)
            self.pages.set_compact(compact)
            self._area.set_least_width(SMALLEST[0] - self.rail.sizeHint().width() - BAR)
            self.redraw()

    def closeEvent(self, event: QCloseEvent) -> None:
        """The controller decides what closing means: hide in the tray, or shut down after the engine has stopped."""
        event.ignore()
        self.closing.emit()
