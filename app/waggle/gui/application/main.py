"""Entry point of the window: show it first, then start the engine or a replay, and exit after the engine has stopped."""

import asyncio
import contextlib
import logging
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import cast, get_args

from PySide6.QtCore import QProcess, QSettings, Qt
from PySide6.QtWidgets import QApplication, QMessageBox

from waggle.core import paths, stored_data
from waggle.core.errors import EngineError, WaggleError
from waggle.core.message import Message
from waggle.gui.application import taskbar, unix_signals
from waggle.gui.application.controller import Controller
from waggle.gui.application.garbage_collection import GarbageCollector, freeze_long_lived
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.program_files import ProgramFiles, ask_to_close
from waggle.gui.application.qt_application import Application
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.application.single_instance import SingleInstance
from waggle.gui.engine_client.engine_process import EngineProcess, command_line, remote_command_line
from waggle.gui.engine_client.replay import Replay
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.context import PageContext
from waggle.gui.state.event_log import EventLogHandler
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme import reduced_motion
from waggle.gui.theme.theme import Theme, ThemeName
from waggle.gui.widgets.system_tray import logo_icon

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Command-line arguments of the window."""

    home: Path | None = None
    on: str = ""
    overrides: tuple[str, ...] = ()
    verbose: bool = False  # of the engine, which this window starts
    invite: str = ""
    replay: Path | None = None
    speed: float = 1.0
    theme: str | None = None
    page: str | None = None
    screenshot: Path | None = None
    background: bool = False  # begin with the window small


def run(arguments: Arguments) -> int:
    """Show the window until it is closed; returns the exit status of the process."""
    app = application()
    reduced_motion.is_reduced()  # asks the desktop in a thread; the answer is there before anything moves
    home = paths.home_in(arguments.home)
    # Qt's file dialogs write settings of their own, which would stay behind in a folder of all Qt programs.
    QSettings.setPath(QSettings.Format.NativeFormat, QSettings.Scope.UserScope, str(home.root / stored_data.QT_SETTINGS))
    engine, settings = _engine_and_settings(home, arguments)
    window_settings = settings.settings.window
    translator.use(translator.language_of_setting(window_settings.language))
    theme = Theme(_theme_name(arguments.theme or window_settings.theme), text_percent=window_settings.text_percent)
    theme.apply()
    app.setWindowIcon(logo_icon(theme))
    if arguments.screenshot is not None:
        if arguments.replay is None:
            raise WaggleError("A picture is taken of a recorded run.", "Name one with --replay, or leave --screenshot out.")
        return save_screenshot(theme, arguments.replay, arguments.page or "home", arguments.screenshot)
    if arguments.replay is not None:
        return _run_event_loop(
            Controller(theme, StateStore(), Replay(arguments.replay, arguments.speed), settings.copy_in_memory()), arguments
        )
    return _run_home_window(theme, home, (engine, settings), arguments)


def application() -> Application:
    """The QApplication of this process, created if necessary, in a style that looks the same on every system."""
    app = QApplication.instance()
    if app is None:
        taskbar.name_application()  # before the first window
        app = Application(sys.argv[:1])
        GarbageCollector(app)
    assert isinstance(app, Application)
    app.setApplicationName("Waggle")
    app.setDesktopFileName("io.waggle.Waggle")
    app.setStyle("Fusion")
    app.setQuitOnLastWindowClosed(False)
    return app


def show_refused(error: WaggleError) -> None:
    """Say in a dialog why no window opened: a start by a click has no terminal."""
    application()
    box = QMessageBox(QMessageBox.Icon.Warning, "Waggle", tr(error.title))
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(tr(error.advice))
    box.exec()


def save_screenshot(theme: Theme, recording: Path, page: str, picture: Path) -> int:
    """Play a recording to its end, show a page, and save the window as an image file; raises WaggleError."""
    current = StateStore()
    current.tell_time_by_events()
    window = MainWindow(PageContext(theme, store=current))
    replay = Replay(recording)
    replay.event_received.connect(current.take)
    replay.ended.connect(window.show_replay)
    replay.play_all()
    window.show()
    window.show_page(page)
    if not screenshot_when_still(window).save(str(picture)):
        raise WaggleError(Message("%1 cannot be written.", picture), "A picture's name ends in .png, in a folder that is there.")
    return 0


def _engine_and_settings(home: paths.Home, arguments: Arguments) -> tuple[EngineProcess, SettingsStore]:
    """The engine, not started yet, and the settings that are changed through it; each start takes the overrides of then."""

    def command() -> list[str]:
        options = _options(settings.overrides, verbose=arguments.verbose)
        if arguments.on:
            return remote_command_line(arguments.on, options)
        return command_line(["--home", str(home.root), *options])

    engine = EngineProcess(command, host=arguments.on)
    settings = SettingsStore(home.settings, arguments.overrides, send=engine.send, far=bool(arguments.on))
    return engine, settings


def _run_home_window(
    theme: Theme, home: paths.Home, engine_and_settings: tuple[EngineProcess, SettingsStore], arguments: Arguments
) -> int:
    """Run the window of a home, or raise the one that is already open."""
    engine, settings = engine_and_settings
    with contextlib.suppress(OSError):  # the engine says in the window what is wrong with the folder
        home.prepare()
    instance = SingleInstance(home.root, host=arguments.on)
    if not instance.claim():
        if instance.call(arguments.invite):
            return 0
        raise EngineError("Waggle is open already, but its window does not answer.", "End that process, then start again.")

    store = StateStore(far=bool(arguments.on))
    store.keep_ages_current()
    controller = Controller(theme, store, engine, settings, home, host=arguments.on)
    instance.start_requested.connect(controller.open_invite)
    code = _run_event_loop(controller, arguments, first=not arguments.on and needs_welcome(home, settings, arguments.overrides))
    instance.release()
    if controller.removes_data:
        stored_data.tidy(home)  # the lock file was the last file in the home
    elif controller.pending_start is not None:
        _start_again(home, replace(arguments, overrides=settings.overrides), controller.pending_start)
    return code


def _options(overrides: tuple[str, ...], *, verbose: bool) -> list[str]:
    return [*(("--verbose",) if verbose else ()), *(part for value in overrides for part in ("--set", value))]


def _start_again(home: paths.Home, arguments: Arguments, invite: str) -> None:
    """Start a new process for a start that came during shutdown."""
    program, *rest = paths.window_command()
    named = [*(("--on", arguments.on) if arguments.on else ()), *(("--invite", invite) if invite else ())]
    options = _options(arguments.overrides, verbose=arguments.verbose)
    QProcess.startDetached(program, [*rest, "--home", str(home.root), *options, *named])


def watch_example(home: Path | None) -> None:
    """Open a second window with a recorded swarm; theme and language come from the settings of the same home."""
    program, *arguments = paths.window_command()
    QProcess.startDetached(program, [*arguments, *(("--home", str(home)) if home else ()), "--replay"])


def needs_welcome(home: paths.Home, settings: SettingsStore, overrides: tuple[str, ...]) -> bool:
    """Whether to ask the welcome questions: not after settings by hand, nor in a home older than the questions."""
    return not (settings.settings.window.welcomed or overrides or home.settings.exists() or home.identity.exists())


def _run_event_loop(controller: Controller, arguments: Arguments, *, first: bool = False) -> int:
    import qasync

    files = ProgramFiles(controller)
    files.changed.connect(lambda: ask_to_close(controller.window).accepted.connect(controller.leave))
    sys.excepthook = _ExceptionHook(controller, files)
    logging.getLogger().addHandler(EventLogHandler(controller.event_log))
    app = application()
    app.invite_opened.connect(controller.open_invite)
    app.leave_wanted.connect(controller.leave_with_system)
    controller.example_wanted.connect(lambda: watch_example(arguments.home))
    with (
        unix_signals.on_termination_signals(controller.leave),
        asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner,  # at the end it cancels what still runs
    ):
        runner.run(_show_until_finished(controller, arguments, first=first))
    return 0


async def _show_until_finished(controller: Controller, arguments: Arguments, *, first: bool) -> None:
    """Show the window until nothing runs any more.

    The event loop is not ended by `quit`: that asks the windows first, and ours refuses until the engine has stopped.
    """
    finished = asyncio.Event()
    controller.finished.connect(finished.set)
    controller.begin(arguments.page, first=first)
    if arguments.background and not first:
        controller.window.showMinimized()
    freeze_long_lived()
    await asyncio.sleep(0)  # the window is painted first
    if not first:
        controller.start()
    if arguments.invite:
        controller.open_invite(arguments.invite)
    await finished.wait()


def _theme_name(name: str) -> ThemeName:
    return cast(ThemeName, name if name in get_args(ThemeName) else "system")


class _ExceptionHook:
    """Exception hook of the window process: an error in the window never ends the engine."""

    def __init__(self, controller: Controller, files: ProgramFiles) -> None:
        self._controller, self._files = controller, files

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        log.error("fault in the window", exc_info=(kind, error, trace))
        if not self._files.check():  # else that is the reason, and was said
            self._controller.window.notices.show(tr("Something in the window went wrong: %1").replace("%1", kind.__name__))
