"""The window: rail, pages, status bar. Shows one State, and carries what a person asks for to whoever answers."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from waggle.core import paths
from waggle.gui.application.navigation import Rail, Status
from waggle.gui.i18n.formatting import told, tr
from waggle.gui.pages.help.page import HelpPage
from waggle.gui.pages.home.page import Home
from waggle.gui.pages.live.page import Live
from waggle.gui.pages.page import Page
from waggle.gui.pages.peers.page import Peers
from waggle.gui.pages.progress.page import ASK_AGAIN, Progress
from waggle.gui.pages.settings.page import SettingsPage
from waggle.gui.pages.swarms.page import Swarms
from waggle.gui.pages.you.page import You
from waggle.gui.state import shortcuts
from waggle.gui.state.daily_totals import Due
from waggle.gui.state.event_log import Journal
from waggle.gui.state.pages import PAGES
from waggle.gui.state.problem_report import report
from waggle.gui.state.settings_store import Choices
from waggle.gui.state.spoken_summary import MINUTE, digest
from waggle.gui.state.store import Current
from waggle.gui.theme.theme import Look, putting_together
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.text import announce
from waggle.protocol.commands import AnyCommand, ListModels, ListSwarms, OfferTalk, PoseQuestion, QueryDays, QueryHistory
from waggle.protocol.status_text import sentence

NOTICE_MS, LETTER_MS = 8000, 70  # the least that a notice stands, and what each of its letters takes to read
SMALLEST = (900, 600)
ASKED_BY_ITSELF = (ListModels, ListSwarms, OfferTalk, PoseQuestion, QueryDays, QueryHistory)


class Window(QWidget):
    """`commanded` carries commands for the engine, and `start_wanted` asks for one.

    `closing` says that the person closed the window, `leave_wanted` that everything should end, `goodbye_wanted` what should
    be removed first, `example_wanted` that a window of its own should show a recorded swarm,
    `aside_wanted` that a settings file which cannot be used should give way before a start. `unseen` carries what is said for
    a moment while nobody sees the window.
    """

    commanded = Signal(object)
    start_wanted = Signal()
    closing = Signal()
    leave_wanted = Signal()
    goodbye_wanted = Signal(object)
    example_wanted = Signal()
    aside_wanted = Signal()
    unseen = Signal(str)

    def __init__(
        self, look: Look, current: Current, *, choices: Choices | None = None, journal: Journal | None = None,
        home: paths.Home | None = None, can_start: Callable[[], bool] = lambda: False, host: str = "",
    ) -> None:  # fmt: skip
        super().__init__()
        self.setObjectName("window")
        self.setWindowTitle("Waggle")
        self.setMinimumSize(*SMALLEST)
        self._look, self._current = look, current
        self._compact: bool | None = None
        self._said, self._read_out = "", ("", 0.0)
        self.leaving = self._replay = False
        self.page = "home"
        journal = journal or Journal(self)
        self._choices = choices = choices or Choices(None, parent=self)
        history = Due(ASK_AGAIN)  # one for both pages that show it: whichever is seen first asks
        self._made_when_seen: dict[str, Callable[[], Page]] = {
            "live": lambda: self._live(look), "progress": lambda: Progress(look, history),
            "settings": lambda: SettingsPage(look, choices), "help": lambda: self._help(journal, home, host),
        }  # fmt: skip
        with putting_together():
            self.home, self.peers, self.swarms, self.you = (
                Home(look, history, can_start),
                Peers(look),
                Swarms(look, here=home is not None),
                You(look, home),
            )
            self.pages: dict[str, Page] = {"home": self.home, "peers": self.peers, "swarms": self.swarms, "you": self.you}
            self.rail, self.status = Rail(look), Status(look)
            self._stack, self._all = QStackedWidget(), QStackedWidget()
            for name, page in self.pages.items():
                self._add(name, page)
            self._all.addWidget(as_widget(column((row(self.rail, (self._stack, 1), gap=0), 1), self.status, gap=0)))
            self.setLayout(column(self._all))
        self.home.hero.report = lambda state: report(state, journal.lines(), home.root if home else None, host)
        self.home.hero.far = choices.far
        self.home.hero.broken = lambda: choices.broken
        self.home.hero.aside_wanted.connect(self.aside_wanted)
        self._notice_end = QTimer(self)
        self._notice_end.setSingleShot(True)
        self._notice_end.timeout.connect(self._end_notice)
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
        choices.refused.connect(self.refused)
        current.changed.connect(self.redraw)
        self._add_keys()
        self.show_page("home")
        self.resize(1280, 800)
        self.setFocus()  # nothing is chosen until the person chooses

    def _add_keys(self) -> None:
        QShortcut(QKeySequence(shortcuts.QUIT), self, self.leave_wanted.emit)  # where a system has keys of its own for these,
        QShortcut(QKeySequence(shortcuts.CLOSE), self, self.close)  # it sends the window what they mean
        QShortcut(QKeySequence(shortcuts.PAUSE), self, self._pause_or_resume)
        QShortcut(QKeySequence(shortcuts.FIND), self, lambda: self.pages[self.page].go_to_search())
        for place, name in enumerate(PAGES, 1):
            QShortcut(QKeySequence(shortcuts.page(place)), self, lambda name=name: self.show_page(name))
        for made in self.findChildren(QShortcut, options=Qt.FindChildOption.FindDirectChildrenOnly):
            made.setAutoRepeat(False)  # to be asked to leave twice is to end at once, and to pause twice is to go on

    def _pause_or_resume(self) -> None:
        """What Home's one button does, as things stand now, whichever page is seen. A first start has its own buttons."""
        state = self._current.state
        if self._all.currentIndex() == 0 and sentence(state).action != "copy_report":
            self.home.hero.show_state(state, self._current.now())
            self.home.hero.act()

    def show_page(self, name: str) -> None:
        """Only the page that is seen is drawn, so it catches up now."""
        self.page = name = name if name in PAGES else "home"
        self.rail.show_chosen(name)
        page, before, focused = self._made(name), self._stack.currentWidget(), self.focusWidget()
        if before is not None and focused is not None and before.isAncestorOf(focused):
            page.setFocus()  # else Qt gives it to some button of the page, and a space would press it
        self._stack.setCurrentWidget(page)
        if page is not before:
            announce(self, page.accessibleName())
        self.redraw()

    def _made(self, name: str) -> Page:
        if name not in self.pages:
            self.pages[name] = self._add(name, self._made_when_seen[name]())
        return self.pages[name]

    def go_on(self, before: "Window") -> None:
        """Take another window's place, page by page, also of those that are not seen: the person stays where they were."""
        for name, page in before.pages.items():
            if name != self.page:
                self._made(name).go_on(page)
        self.setFocus()  # what is opened where nobody looks takes it from nobody
        self.pages[self.page].go_on(before.pages[self.page])
        self.redraw()

    def forget_run(self) -> None:
        """Another run begins: nothing is held of what was told before."""
        live = self.pages.get("live")
        if isinstance(live, Live):
            live.thaw()

    def _add(self, name: str, page: Page) -> Page:
        """A page costs time when it is made and when the theme changes: most are made when they are first seen."""
        self._stack.addWidget(page)
        page.setAccessibleName(tr(PAGES[name]))
        page.commanded.connect(self.commanded)
        page.notice_posted.connect(self.notice)
        page.set_compact(bool(self._compact))
        return page

    def cover(self, widget: QWidget) -> None:
        """Show something in place of everything, until `uncover`."""
        self._all.addWidget(widget)
        self._all.setCurrentWidget(widget)
        widget.setFocus()

    def uncover(self) -> None:
        while (widget := self._all.widget(1)) is not None:
            self._all.removeWidget(widget)
            widget.deleteLater()
        self.redraw()

    def redraw(self) -> None:
        """Draw what is seen; a window that is not seen costs nothing."""
        state = self._current.state
        self.home.hero.watch(state)
        if self._said and not self.is_seen():
            return
        page = self._stack.currentWidget()
        assert isinstance(page, Page)
        page.show_state(state, self._current.now())
        self.status.show_state(state, self.page)
        if not self._replay:
            self.status.show_service(state.service)
        self._announce(told(sentence(state).word))
        self._announce_digest()

    def _announce(self, word: str) -> None:
        """A screen reader hears of a new state, not of each round."""
        if word != self._said:
            self._said = word
            announce(self, told(sentence(self._current.state).says))

    def _announce_digest(self) -> None:
        """Only for whoever asked for it, once a minute at most, and never the same twice."""
        said, at = self._read_out
        now = self._current.now()
        if not self._choices.settings.window.read_out or now - at < MINUTE:
            return
        words = digest(self._current.state, now)
        if words and words != said:
            self._read_out = words, now
            announce(self, words)

    def is_seen(self) -> bool:
        """Whether it is open at all: neither closed to the tray nor minimised."""
        return not (self.isHidden() or self.isMinimized())

    def notice(self, words: str, sign: str = "warn") -> None:
        """Say something for as long as it takes to read; the sign is as `Status.notice` has it."""
        self.status.notice(words, sign)
        announce(self, words)
        self._notice_end.start(max(NOTICE_MS, LETTER_MS * len(words)))
        if not self.is_seen():
            self.unseen.emit(words)

    def _end_notice(self) -> None:
        if self.status.is_read():
            self._notice_end.start(NOTICE_MS)
        elif self.is_seen():
            self.status.notice("")

    def _show_notice_again(self) -> None:
        """What was said while nobody saw it is still there, and stands as long as if it were said now."""
        if not self.leaving:
            self._notice_end.start(NOTICE_MS)

    def refused(self, title: str, advice: str, command: str = "") -> None:
        """The command with this id was not carried out."""
        self._say_refused(f"{told(title)} {told(advice)}".strip(), command)

    def unheard(self, command: AnyCommand) -> None:
        """There was nobody to ask. What nobody pressed a button for is asked again by itself."""
        if isinstance(command, ASKED_BY_ITSELF) or (not self._replay and self.swarms.put_off(command.id)):
            return
        recorded, dead = tr("This is a recorded run: nothing was done."), tr("The engine is not running: nothing was done.")
        self._say_refused(recorded if self._replay else dead, command.id)

    def _say_refused(self, words: str, command: str) -> None:
        """Once: where it was asked, if that is seen, else as a notice."""
        if self.give_up(words, command) and self.is_seen():
            announce(self, words)
        else:
            self.notice(words)

    def give_up(self, words: str, command: str = "") -> bool:
        """No answer will come to this command, or to any: whoever waits for it says why, and can ask again.

        Whether one of them says it where it is seen.
        """
        self.home.hero.refused(words, command)
        self.peers.refused(words, command)
        return any([self.swarms.refused(words, command), self.you.refused(words, command)])

    def show_replay(self, skipped: int = 0, *, example: bool = False, over: bool = False) -> None:
        """Say for good that this is no living engine, and that nothing more comes of it once all was told."""
        if over:
            words = tr("Example, recorded: it has ended") if example else tr("Replay of a recorded run: it has ended")
            self.home.hero.show_over()
        else:
            words = tr("Example: a real swarm of two, recorded") if example else tr("Replay of a recorded run")
        if skipped:
            words += tr(", %1 unknown lines skipped").replace("%1", str(skipped))
        self._replay = True
        self.status.mark(words)
        self.peers.show_replay()
        self.swarms.show_replay()
        self.setWindowTitle(f"Waggle: {words}")

    def show_leaving(self) -> None:
        """The engine is asked to leave: say so until it has."""
        self.leaving = True
        self.setWindowTitle(tr("Waggle: closing"))
        goes_on = self._current.state.service and not self._replay
        self.notice(tr("Closing; the engine goes on.") if goes_on else tr("Finishing this step, then closing."), "")
        self._notice_end.stop()

    def _live(self, look: Look) -> Live:
        made = Live(look)
        made.example_wanted.connect(self.example_wanted)
        return made

    def _help(self, journal: Journal, home: paths.Home | None, host: str) -> HelpPage:
        made = HelpPage(self._look, journal, home, host)
        made.goodbye_wanted.connect(self._show_goodbye)
        made.race_wanted.connect(self.show_race)
        return made

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
        """What a person wrote or pasted as a link is looked at, or said to be none."""
        self.show_page("swarms")
        self.swarms.show_join(link)

    def show_invite(self, link: str) -> None:
        """A link, or a file with one, by its path or URL, came from outside: it is looked at, never joined by itself."""
        if link.startswith("waggle:"):
            self.show_join(link)
        else:
            self.show_page("swarms")
            self.swarms.open_file(Path(QUrl(link).toLocalFile() if link.startswith("file:") else link))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        compact = self.width() < self._look.size["compact_below"]
        if compact != self._compact:
            self._compact = compact
            self.rail.set_compact(compact)
            self.status.set_compact(compact)
            for page in self.pages.values():
                page.set_compact(compact)
            self.redraw()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show_notice_again()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.WindowStateChange:
            self.redraw()  # back from where it was not seen, it catches up
            self._show_notice_again()

    def closeEvent(self, event: QCloseEvent) -> None:
        """What closing means is the shell's to say: to the tray, or to the end, which waits for the engine."""
        event.ignore()
        self.closing.emit()
