"""The controller outlives a window: it owns the tray, shows and hides the window, and shuts everything down in order."""

import sys

from msgspec.structs import replace
from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication

from waggle.core import paths
from waggle.core.errors import SettingsError
from waggle.core.settings import Settings, Value
from waggle.core.stored_data import DataKind
from waggle.gui.application.login_choice import LoginChoice
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.tray import TrayIcon
from waggle.gui.application.window import window_state
from waggle.gui.application.window.notices import is_on_screen
from waggle.gui.coroutines import Task, start
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.engine_client.first_model import first_model
from waggle.gui.engine_client.replay import Replay
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.context import EngineHost, PageContext
from waggle.gui.pages.models.model_words import choice_title, offers_of
from waggle.gui.pages.swarms.page import SwarmsPage
from waggle.gui.pages.welcome.page import WelcomePage
from waggle.gui.pages.you.data_removal import RemovalScreen
from waggle.gui.state import notifications
from waggle.gui.state.event_log import EventLog
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme, ThemeName
from waggle.gui.widgets import system_tray
from waggle.protocol.commands import ChooseModel, ChooseSwarm, new_id
from waggle.protocol.state import State

Source = EngineProcess | Replay
FRAME = QSize(16, 96)  # the window frame, and a task bar where the system does not report its size


class Controller(QObject):
    """Owns the window, the tray, the settings and the source of events.

    `finished`: nothing runs any more. `example_wanted`: open a second window with a recorded swarm. `host`: the engine runs on
    that computer, so paths of this computer do not reach its files.

    The window is rebuilt when the language or the text size changes. Everything it shows is in the State, and each page carries
    over what the person chose, typed or waits for; only a passphrase is lost.
    """

    finished = Signal()
    example_wanted = Signal()

    def __init__(
        self,
        theme: Theme,
        current: StateStore,
        source: Source,
        settings_store: SettingsStore,
        home: paths.Home | None = None,
        *,
        host: str = "",
    ) -> None:
        super().__init__()
        self._theme, self._store, self._source, self._home, self._host = theme, current, source, home, host
        self.pending_start: str | None = None  # invite (may be empty) of a start that came during shutdown
        self._window_state = window_state.read(home.root / window_state.NAME) if home is not None else window_state.WindowState()
        self._views = dict(self._window_state.views)
        self._shown_state = State()
        self._invite = self._swarm = self._model = ""  # that were chosen at the first start: a link, a charter, a name
        self._offering: Task | None = None  # finds a model for the welcome questions
        self._client = EngineClient(source.send, recorded=isinstance(source, Replay))
        self._farewell: RemovalScreen | None = None
        self._asking = False
        self.settings_store, self.event_log = settings_store, EventLog(self)
        self._appearance = _appearance_of(settings_store.settings)
        theme.less_motion = settings_store.settings.window.less_motion
        self.window = self._new_window()
        self.tray = self._new_tray()
        self._connect(source)
        settings_store.changed.connect(self._apply_settings)
        self._login = LoginChoice(home, settings_store, self) if home is not None else None
        if self._login is not None:
            self._login.reported.connect(self._say_login)
        current.changed.connect(self._handle_state_change)

    def _connect(self, source: Source) -> None:
        self._store.applied.connect(self._client.take)
        self._client.refused.connect(lambda: self.settings_store.changed.emit())  # pages show the old value again
        source.event_received.connect(self._store.take)
        source.event_received.connect(self.event_log.take)
        if isinstance(source, EngineProcess):
            source.complained.connect(self.event_log.add_stderr)
            source.ended.connect(self._finish_shutdown)
            source.stopped.connect(self._store.flush)  # Home offers to start an engine only where none runs
        else:
            self._store.tell_time_by_events()
            source.ended.connect(self._show_replay_end)
        app = QGuiApplication.instance()
        assert isinstance(app, QGuiApplication)
        app.commitDataRequest.connect(self._save_window_state)  # no quit yet: another program may cancel the end of the session
        app.applicationStateChanged.connect(self._reopen_from_dock)

    def begin(self, page: str | None, *, first: bool = False) -> None:
        """Show the window at its last position; at the first start, show the welcome questions instead of the pages."""
        if not self.window.restoreGeometry(self._window_state.geometry_bytes):
            self._fit()
        self.window.show_page(page or self._window_state.page)
        self._asking = first
        if first:
            welcome = WelcomePage(self._theme)
            welcome.invited.connect(self._remember_invite)
            welcome.model_chosen.connect(self._remember_model)
            welcome.swarm_chosen.connect(self._remember_swarm)
            welcome.done.connect(self._finish_welcome)
            self._offering = start(self, self._offer_model(welcome))
            self.window.cover(welcome)
            self.tray.show_questions()
        self.window.show()
        self.tray.show()
        if self._login is not None:
            self._login.read()

    def _fit(self) -> None:
        """Without a saved position, limit the window to the screen minus its frame and a task bar."""
        screen = self.window.screen().availableGeometry().size()
        self.window.resize(self.window.size().boundedTo(screen - FRAME))

    def start(self) -> None:
        """Start the engine or the recording."""
        self._source.start()
        self._store.flush()  # the first drawing came before the engine ran, and offered to start one
        if self._invite:
            self.window.show_page("swarms")
            self.window.pages.of(SwarmsPage).show_join(self._invite)
            self._invite = ""

    def _start_with_defaults(self) -> None:
        """Rename a settings file that cannot be used, and start with the defaults."""
        try:
            set_aside_path = self.settings_store.set_aside()
        except SettingsError as error:
            self.window.show_refusal(error.title, error.advice)
            return
        self.start()
        if set_aside_path is not None:
            self.window.notices.show(
                tr("Your settings of before are in %1; all is set as it ships.").replace("%1", str(set_aside_path)), "check"
            )

    def raise_window(self) -> None:
        self.window.setWindowState(self.window.windowState() & ~Qt.WindowState.WindowMinimized)
        self.window.show()
        self.window.redraw()
        self.window.raise_()
        self.window.activateWindow()

    def _reopen_from_dock(self, state: Qt.ApplicationState) -> None:
        """A click on the macOS Dock reopens a closed window; other systems only have the tray for that."""
        if sys.platform == "darwin" and state == Qt.ApplicationState.ApplicationActive and self.window.isHidden():
            self.raise_window()

    def open_invite(self, invite: str) -> None:
        """Raise the window, and open the invite link or file of a second start or of the system, if any."""
        self.raise_window()
        if self.window.leaving:
            self.pending_start = invite or self.pending_start or ""
        elif invite:
            self.window.arrivals.show_invite(invite)

    def leave(self) -> None:
        """Shut down: the engine gets time to finish; a second call kills it at once. A removal of data is waited for."""
        if self._farewell is not None:
            if self._farewell.over:
                self.finished.emit()
            return
        self._stop_offering()
        self._save_window_state()
        self.window.show_shutdown()
        self._source.stop()
        if isinstance(self._source, Replay):
            self.finished.emit()

    def leave_with_system(self) -> None:
        """Shut down for the system, which may ask more than once at the end of a session: a repeat kills nothing."""
        if not self.window.leaving:
            self.leave()

    @property
    def removes_data(self) -> bool:
        """Whether the person has the stored data removed: nothing is written any more."""
        return self._farewell is not None

    def _remove_data(self, kinds: frozenset[DataKind]) -> None:
        """Stop the engine, remove these kinds of data, and show what was removed before everything ends."""
        assert self._home is not None
        self._farewell = RemovalScreen(self._theme, self._home.root, kinds)
        self._farewell.closed.connect(self.finished)
        self.window.cover(self._farewell)
        self._source.stop()

    def _finish_shutdown(self) -> None:
        if self._farewell is not None:
            self._farewell.remove()
        else:
            self.finished.emit()

    def _new_window(self) -> MainWindow:
        source = self._source
        can_start = (lambda: not source.is_running) if isinstance(source, EngineProcess) else (lambda: False)
        host = EngineHost(home=None if self._host else self._home, name=self._host, can_start=can_start)
        window = MainWindow(
            PageContext(
                self._theme, store=self._store, settings=self.settings_store, event_log=self.event_log, engine=host,
                client=self._client, views=self._views,
            )
        )  # fmt: skip
        window.commanded.connect(self._client.send)
        window.closing.connect(self._close_or_hide)
        window.leave_wanted.connect(self.leave)
        window.requests.data_removal.connect(self._remove_data)
        window.requests.example.connect(self.example_wanted)
        window.notices.unseen.connect(self._say_by_tray)
        if isinstance(source, EngineProcess):
            window.requests.engine_start.connect(self.start)
            window.requests.defaults.connect(self._start_with_defaults)
        else:
            window.requests.engine_start.connect(self._play_again)
            window.show_replay(example=source.is_example, over=source.over)
        return window

    def _new_tray(self) -> TrayIcon:
        tray = TrayIcon(self._theme, self, self._host, self._store.now)
        tray.raised.connect(self.raise_window)
        tray.commanded.connect(self._client.send)
        tray.leave_wanted.connect(self.leave)
        tray.show_state(self._store.state)
        return tray

    def _finish_welcome(self, values: dict[str, Value]) -> None:
        """The questions were answered or skipped: never ask them again, and start the engine."""
        self._asking = False
        self._stop_offering()
        self.tray.show_state(self._shown_state)
        self.settings_store.set({"window.welcomed": True, **values})
        self.window.uncover()
        self.start()
        start(self, self._carry_out_choices())

    async def _offer_model(self, welcome: WelcomePage) -> None:
        if (offer := await first_model()) is not None:
            welcome.offer_model(offer)

    def _stop_offering(self) -> None:
        if self._offering is not None:
            self._offering.cancel()

    def _remember_invite(self, link: str) -> None:
        self._invite = link

    def _remember_model(self, name: str) -> None:
        self._model = name

    def _remember_swarm(self, charter: str) -> None:
        self._swarm = charter

    async def _carry_out_choices(self) -> None:
        """Choose the swarm of the first start as soon as an engine listens: it has hardly begun to start in the default one.

        The model is chosen once the engine trains: it trains the starter until the model is here.
        """
        if self._swarm:
            await self._client.until(lambda state: (state.preparing or state.ready) is not None)
            self._client.send(ChooseSwarm(id=new_id(), charter=self._swarm))
        if self._model:
            await self._client.until(lambda state: state.ready is not None)
            self._client.send(ChooseModel(id=new_id(), name=self._model))
            words = tr("%1 is being downloaded. Until it is here, you train the starter: see the page Models.")
            self.window.notices.show(words.replace("%1", self._model), "gather")

    def _close_or_hide(self) -> None:
        """The window was closed: hide it in the tray if there is one, the setting says so and an engine runs; else shut down."""
        if (
            self._farewell is not None
            or self._asking
            or self.window.leaving
            or isinstance(self._source, Replay)
            or not (self.settings_store.settings.window.close_to_tray and system_tray.available())
        ):
            self.leave()
            return
        self.window.hide()
        if not self._window_state.tray_told:
            self._window_state = replace(self._window_state, tray_told=True)
            mac = sys.platform == "darwin"
            here = tr("Open or quit it here, in the menu bar." if mac else "Open or quit it here, in the tray.")
            self.tray.notify(tr("Waggle keeps running in the background"), here)
        self._save_window_state()

    def _save_window_state(self) -> None:
        geometry = window_state.geometry_text(bytes(self.window.saveGeometry().data()))
        self._window_state = replace(self._window_state, geometry=geometry, page=self.window.page, views=dict(self._views))
        if self._home is not None and not self.removes_data:
            window_state.write(self._home.root / window_state.NAME, self._window_state)

    def _apply_settings(self) -> None:
        """Apply theme, motion, language and text size at once."""
        worn, self._appearance = self._appearance, _appearance_of(self.settings_store.settings)
        theme_name, spoken, percent = self._appearance
        self._theme.less_motion = self.settings_store.settings.window.less_motion
        if worn[0] != theme_name:
            self._theme.use(theme_name)
        if worn[1:] != self._appearance[1:]:
            translator.use(translator.language_of_setting(spoken))
            self._theme.set_text(percent)
            self._theme.use(theme_name)
            self._rebuild_window()

    def _rebuild_window(self) -> None:
        """Rebuild the window in the new language or text size, at the same place."""
        old, was_visible = self.window, self.window.isVisible()
        self.window = self._new_window()
        self.window.setGeometry(old.normalGeometry())
        self.window.setWindowState(old.windowState() & ~Qt.WindowState.WindowActive)
        self.window.show_page(old.page)
        self.window.setVisible(was_visible)
        self.window.pages.take_over(old.pages, self.window.page)
        self.window.redraw()
        old.closing.disconnect()
        old.hide()
        old.deleteLater()
        self.tray.hide()
        self.tray.menu.deleteLater()  # no widget can be its parent
        self.tray.deleteLater()
        self.tray = self._new_tray()
        self.tray.show()

    def _handle_state_change(self) -> None:
        before, self._shown_state = self._shown_state, self._store.state
        self.settings_store.adopt(self._shown_state)
        if not self._asking:
            self.tray.show_state(self._shown_state)
        news = notifications.new_notices(before, self._shown_state) if not self.window.isActiveWindow() else []
        window_settings = self.settings_store.settings.window
        for notice in news:
            if window_settings.notify_problems if notice.kind == "problems" else window_settings.notify_discoveries:
                self.tray.notify(notice.title, notice.words)
        if is_on_screen(self.window) or window_settings.notify_problems:
            self._say_warnings(before)
            self._say_failed_choice(before)

    def _say_warnings(self, before: State) -> None:
        """Show new warnings on any page: a failed choice comes back as a warning, too."""
        for warned in reversed(notifications.new_warnings(before, self._shown_state, self._store.now())):
            self.window.notices.show(notifications.warning_words(warned))

    def _say_failed_choice(self, before: State) -> None:
        """A download may fail long after the person left the page Models, which shows why."""
        choice = self._shown_state.choice
        if choice is None or choice.stage != "failed" or choice == before.choice or self.window.page == "models":
            return
        if self._store.now() - choice.at < notifications.RECENT:  # an older engine sends old ones, too
            title = choice_title(choice, offers_of(self._shown_state.models))
            self.window.notices.show(f"{title}: {tr(choice.title)}")

    def _say_login(self, title: str, advice: str) -> None:
        self.window.notices.show(f"{tr(title)} {tr(advice)}")

    def _say_by_tray(self, words: str) -> None:
        self.tray.notify("Waggle", words)

    def _show_replay_end(self, skipped: int) -> None:
        self.window.show_replay(skipped, example=isinstance(self._source, Replay) and self._source.is_example, over=True)

    def _play_again(self) -> None:
        """Play the recording from the beginning, in a new window."""
        self.window.pages.forget_run()
        self._store.state = self._shown_state = State()
        self._source.start()
        self._rebuild_window()


def _appearance_of(chosen: Settings) -> tuple[ThemeName, str, int]:
    return chosen.window.theme, chosen.window.language, chosen.window.text_percent
