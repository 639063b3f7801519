"""The shell: what outlives a window. It owns the tray, shows and hides the window, and sees that everything leaves in time."""

import sys

from msgspec.structs import replace
from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication

from waggle.core import paths
from waggle.core.errors import SettingsError
from waggle.core.settings import Settings, Value
from waggle.core.stored_data import Kind
from waggle.gui.application import window_state
from waggle.gui.application.main_window import Window
from waggle.gui.application.tray import Tray
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.engine_client.replay import Replay
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.welcome.page import Welcome
from waggle.gui.pages.you.data_removal import Farewell
from waggle.gui.state import notifications
from waggle.gui.state.event_log import Journal
from waggle.gui.state.settings_store import Choices
from waggle.gui.state.store import Current
from waggle.gui.theme.theme import Look, Theme
from waggle.gui.widgets import system_tray
from waggle.protocol.commands import AnyCommand
from waggle.protocol.state import State

Source = EngineProcess | Replay
FRAME = QSize(16, 96)  # a window's own, and the task bar of a system that does not say what it takes
GONE = ("problem", "stopped")  # phases in which nobody answers


class Shell(QObject):
    """Window, tray, settings and the source of events. `left` says that nothing is running any more. `host`: the engine runs on
    that computer, so that what is kept there is not to be reached by paths of this one. `example_wanted`: a window of its own
    should show a recorded swarm.

    A window is made anew when its words or their size change: whatever it shows is in the State, and each page takes along what
    a person chose, typed or waits for there, so nothing is lost but a passphrase.
    """

    left = Signal()
    example_wanted = Signal()

    def __init__(
        self, look: Look, current: Current, source: Source, choices: Choices, home: paths.Home | None = None, *, host: str = ""
    ) -> None:
        super().__init__()
        self._look, self._current, self._source, self._home, self._host = look, current, source, home, host
        self.wanted_again: str | None = None  # the invite, perhaps an empty one, of a start that came while this was leaving
        self._kept = window_state.read(home.window) if home is not None else window_state.Kept()
        self._told = State()
        self._invite = ""
        self._farewell: Farewell | None = None
        self._asking = False
        self.choices, self.journal = choices, Journal(self)
        self._worn = _worn(choices.settings)
        look.less_motion = choices.settings.window.less_motion
        self.window = self._made_window()
        self.tray = self._made_tray()
        self._connect(source)
        choices.changed.connect(self._settings_changed)
        current.changed.connect(self._changed)

    def _connect(self, source: Source) -> None:
        source.told.connect(self._current.take)
        source.told.connect(self.journal.take)
        if isinstance(source, EngineProcess):
            self.choices.ask = source.send
            source.complained.connect(self.journal.complain)
            source.refused.connect(self._refused)
            source.ended.connect(self._ended)
            source.stopped.connect(self._current.flush)  # Home offers to start an engine only where none is
        else:
            self._current.tell_time_by_events()
            source.ended.connect(self._replay_ended)
        app = QGuiApplication.instance()
        assert isinstance(app, QGuiApplication)
        app.commitDataRequest.connect(self._remember)  # no more: another program may call the end of the session off
        app.applicationStateChanged.connect(self._activated)

    def begin(self, page: str | None, *, first: bool = False) -> None:
        """Show the window where it stood; at the very first start, the few questions that come before everything."""
        if not self.window.restoreGeometry(self._kept.geometry_bytes):
            self._fit()
        self.window.show_page(page or self._kept.page)
        self._asking = first
        if first:
            welcome = Welcome(self._look)
            welcome.invited.connect(self._remember_invite)
            welcome.done.connect(self._welcomed)
            self.window.cover(welcome)
            self.tray.show_questions()
        self.window.show()
        self.tray.show()

    def _fit(self) -> None:
        """A window that never stood anywhere is no larger than there is room for, its frame and a task bar beside it."""
        screen = self.window.screen().availableGeometry().size()
        self.window.resize(self.window.size().boundedTo(screen - FRAME))

    def start(self) -> None:
        """Let events come: from an engine, or from a recording."""
        self._source.start()
        self._current.flush()  # the first drawing came before there was an engine, and offered to start one
        if self._invite:
            self.window.show_join(self._invite)
            self._invite = ""

    def _start_anew(self) -> None:
        """With the defaults, where the settings file cannot be used."""
        try:
            kept = self.choices.set_aside()
        except SettingsError as error:
            self.window.refused(error.title, error.advice)
            return
        self.start()
        if kept is not None:
            self.window.notice(tr("Your settings of before are in %1; all is set as it ships.").replace("%1", str(kept)), "check")

    def raise_window(self) -> None:
        self.window.setWindowState(self.window.windowState() & ~Qt.WindowState.WindowMinimized)
        self.window.show()
        self.window.redraw()
        self.window.raise_()
        self.window.activateWindow()

    def _activated(self, state: Qt.ApplicationState) -> None:
        """A press on the Dock brings a closed window back; on other systems there is nothing to press but the tray."""
        if sys.platform == "darwin" and state == Qt.ApplicationState.ApplicationActive and self.window.isHidden():
            self.raise_window()

    def called(self, invite: str) -> None:
        """A second start: this window comes to the front, with the invite that it brought."""
        self.raise_window()
        if self.window.leaving:
            self.wanted_again = invite or self.wanted_again or ""
        elif invite:
            self.window.show_invite(invite)

    def send(self, command: AnyCommand) -> None:
        """Take a command to whoever plays the engine, and say so when nobody does."""
        if not self._source.send(command):
            self.window.unheard(command)

    def leave(self) -> None:
        """End everything. The engine is given its time; asking again ends it at once. What is being removed is waited for."""
        if self._farewell is not None:
            if self._farewell.over:
                self.left.emit()
            return
        self._remember()
        self.window.show_leaving()
        self._source.stop()
        if isinstance(self._source, Replay):
            self.left.emit()

    def leave_with_system(self) -> None:
        """As a person leaves, but the system may ask again at the end of a session: that does not mean at once."""
        if not self.window.leaving:
            self.leave()

    @property
    def said_goodbye(self) -> bool:
        """Whether what was kept has been removed: nothing is written any more."""
        return self._farewell is not None

    def _say_goodbye(self, kinds: frozenset[Kind]) -> None:
        """The engine stops, what was chosen goes, and what was done is said before everything ends."""
        assert self._home is not None
        self._farewell = Farewell(self._look, self._home.root, kinds)
        self._farewell.closed.connect(self.left)
        self.window.cover(self._farewell)
        self._source.stop()

    def _ended(self) -> None:
        if self._farewell is not None:
            self._farewell.remove()
        else:
            self.left.emit()

    def _made_window(self) -> Window:
        source = self._source
        can_start = (lambda: not source.running) if isinstance(source, EngineProcess) else (lambda: False)
        window = Window(
            self._look, self._current, choices=self.choices, journal=self.journal, home=None if self._host else self._home,
            can_start=can_start, host=self._host,
        )  # fmt: skip
        window.commanded.connect(self.send)
        window.closing.connect(self._closed)
        window.leave_wanted.connect(self.leave)
        window.goodbye_wanted.connect(self._say_goodbye)
        window.example_wanted.connect(self.example_wanted)
        window.unseen.connect(self._say_by_tray)
        if isinstance(source, EngineProcess):
            window.start_wanted.connect(self.start)
            window.aside_wanted.connect(self._start_anew)
        else:
            window.start_wanted.connect(self._play_again)
            window.show_replay(example=source.is_example, over=source.over)
        return window

    def _made_tray(self) -> Tray:
        made = Tray(self._look, self)
        made.raised.connect(self.raise_window)
        made.commanded.connect(self.send)
        made.leave_wanted.connect(self.leave)
        made.show_state(self._current.state)
        return made

    def _welcomed(self, values: dict[str, Value]) -> None:
        """The questions are answered or skipped: they are not asked again, and the engine may start."""
        self._asking = False
        self.tray.show_state(self._told)
        self.choices.set({"window.welcomed": True, **values})
        self.window.uncover()
        self.start()

    def _remember_invite(self, link: str) -> None:
        self._invite = link

    def _closed(self) -> None:
        """The person closed the window: to the tray where there is one, it is wanted and something goes on; else all ends."""
        if (
            self._farewell is not None
            or self._asking
            or self.window.leaving
            or isinstance(self._source, Replay)
            or not (self.choices.settings.window.close_to_tray and system_tray.available())
        ):
            self.leave()
            return
        self.window.hide()
        if not self._kept.tray_told:
            self._kept = replace(self._kept, tray_told=True)
            mac = sys.platform == "darwin"
            here = tr("Open or quit it here, in the menu bar." if mac else "Open or quit it here, in the tray.")
            self.tray.say(tr("Waggle goes on in the background"), here)
        self._remember()

    def _remember(self) -> None:
        geometry = window_state.geometry_text(bytes(self.window.saveGeometry().data()))
        self._kept = replace(self._kept, geometry=geometry, page=self.window.page)
        if self._home is not None and not self.said_goodbye:
            window_state.write(self._home.window, self._kept)

    def _settings_changed(self) -> None:
        """Theme, motion, language and the size of words hold at once."""
        worn, self._worn = self._worn, _worn(self.choices.settings)
        theme, spoken, percent = self._worn
        self._look.less_motion = self.choices.settings.window.less_motion
        if worn[0] != theme:
            self._look.use(theme)
        if worn[1:] != self._worn[1:]:
            translator.use(translator.chosen(spoken))
            self._look.set_text(percent)
            self._look.use(theme)
            self._renew()

    def _renew(self) -> None:
        """The same window in other words, where it stood."""
        old, shown = self.window, self.window.isVisible()
        self.window = self._made_window()
        self.window.setGeometry(old.normalGeometry())
        self.window.setWindowState(old.windowState() & ~Qt.WindowState.WindowActive)
        self.window.show_page(old.page)
        self.window.setVisible(shown)
        self.window.go_on(old)
        old.closing.disconnect()
        old.hide()
        old.deleteLater()
        self.tray.hide()
        self.tray.menu.deleteLater()  # no widget can be the parent of it
        self.tray.deleteLater()
        self.tray = self._made_tray()
        self.tray.show()

    def _changed(self) -> None:
        before, self._told = self._told, self._current.state
        if self._told.phase in GONE and before.phase not in GONE:
            self.window.give_up(tr("The engine ended before it answered."))
        self.choices.hear(self._told)
        if not self._asking:
            self.tray.show_state(self._told)
        news = notifications.notices(before, self._told) if not self.window.isActiveWindow() else []
        wanted = self.choices.settings.window
        for notice in news:
            if wanted.notify_problems if notice.kind == "problems" else wanted.notify_discoveries:
                self.tray.say(notice.title, notice.words)
        if self.window.is_seen() or wanted.notify_problems:
            self._say_warnings(before)

    def _say_warnings(self, before: State) -> None:
        """On whichever page the person is: a choice that failed, too, comes back as a warning."""
        for warned in reversed(notifications.recent(self._told, self._current.now())):
            if warned not in before.warnings:
                self.window.notice(notifications.warning_words(warned))

    def _refused(self, title: str, advice: str, command: str) -> None:
        self.window.refused(title, advice, command)
        self.choices.changed.emit()  # what was shown as changed is as it was

    def _say_by_tray(self, words: str) -> None:
        self.tray.say("Waggle", words)

    def _replay_ended(self, skipped: int) -> None:
        self.window.show_replay(skipped, example=isinstance(self._source, Replay) and self._source.is_example, over=True)

    def _play_again(self) -> None:
        """From the beginning, in a window that holds nothing of it."""
        self.window.forget_run()
        self._current.state = self._told = State()
        self._source.start()
        self._renew()


def _worn(chosen: Settings) -> tuple[Theme, str, int]:
    return chosen.window.theme, chosen.window.language, chosen.window.text_percent
