"""Fixtures of the window's tests: offscreen platform, theme, a recorded run, and a window that shows it."""

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import qasync
import shiboken6

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
if sys.platform == "win32":  # where this platform looks for fonts in a folder, and warns that there are none
    os.environ.setdefault("QT_QPA_FONTDIR", str(Path(__file__).parents[2] / "resources/look/fonts"))

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui.recorded import REAL, Run
from waggle.gui.application.garbage_collection import GarbageCollector, freeze_long_lived
from waggle.gui.application.main import application
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.qt_application import Application
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.i18n import translator
from waggle.gui.pages.context import PageContext
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.protocol import events, json_lines
from waggle.protocol.state import AnyEvent

PATIENCE_MS = 60_000


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt modules and tests from garbage collection: they live as long as the process, and scanning them is slow."""
    gc.collect()
    freeze_long_lived()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[object]:
    """The window's garbage rule in tests: once an application exists, garbage is collected only here, after each test.

    This is the GUI thread. All generations are collected: `sys.last_value` keeps the frames of a failed test alive until the next
    test, and by then their objects are in the oldest one. Python's own collector would find them there, on any thread that
    allocates, and destroy running timers on the wrong thread.

    A fixture cannot do this: pytest keeps the values of fixtures until all of them have been torn down.
    """
    outcome = yield
    if QApplication.instance() is not None:
        _delete_windows()
        gc.collect()
    return outcome


def _delete_windows() -> None:
    """Delete the windows of a test, because a theme styles every widget. A function, so that no variable keeps one alive."""
    for widget in QApplication.topLevelWidgets():
        if isinstance(widget, MainWindow) and shiboken6.isValid(widget):
            widget.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@pytest.fixture(scope="session")
def qapp() -> Application:
    """Switch off Python's collector, and delete the window's own, whose timer would fire within a test."""
    app = application()
    shiboken6.delete(app.findChild(GarbageCollector))
    return app


@pytest.fixture(autouse=True)
def coroutines(qapp: Application) -> Iterator[None]:
    """Run the window's coroutines wherever a test turns Qt's event loop, and let none of them outlive the test."""
    loop = qasync.QEventLoop(qapp)
    asyncio._set_running_loop(loop)
    yield
    for task in asyncio.all_tasks(loop):
        task.cancel()
    qapp.processEvents()
    asyncio._set_running_loop(None)
    loop.close()


@pytest.fixture
def qtbot(qtbot: QtBot) -> QtBot:
    """Wait for signals for at least a minute: on a busy computer they come late."""
    for name in ("waitActive", "waitExposed", "waitSignal", "waitSignals", "waitUntil"):
        setattr(qtbot, name, _patient(getattr(qtbot, name)))
    return qtbot


def _patient(wait: Callable[..., object]) -> Callable[..., object]:
    def wait_longer(*arguments: object, timeout: int = 0, **options: object) -> object:
        may_end_without_signal = options.get("raising") is False  # as in assertNotEmitted, which always waits to the end
        return wait(*arguments, timeout=timeout if may_end_without_signal else max(timeout, PATIENCE_MS), **options)

    return wait_longer


@pytest.fixture(autouse=True)
def english_again(qapp: Application) -> Iterator[None]:
    yield
    translator.use("en")


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real recorded run if one exists, else the written one."""
    return REAL if REAL.exists() else Run().write(tmp_path_factory.mktemp("recorded") / "run.jsonl")


@pytest.fixture(scope="session")
def written() -> tuple[AnyEvent, ...]:
    """The written run: short, with known figures."""
    return tuple(Run(rounds=12).all_events())


@pytest.fixture(scope="session")
def story(recording: Path) -> tuple[AnyEvent, ...]:
    return tuple(event for event in json_lines.recording(recording) if event and not isinstance(event, events.EngineStopped))


@pytest.fixture
def theme(qapp: Application) -> Theme:
    light = Theme("light")
    light.apply()
    return light


@pytest.fixture
def announcements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a screen reader would read out from now on; a test can have none."""
    texts: list[str] = []
    monkeypatch.setattr(QAccessible, "isActive", lambda: True)
    monkeypatch.setattr(QAccessible, "updateAccessibility", lambda event: texts.append(event.message()))
    return texts


TellWindow = Callable[[Sequence[AnyEvent]], MainWindow]


@pytest.fixture
def window_told(qapp: Application, theme: Theme) -> Iterator[TellWindow]:
    """Make windows that show these events; they are deleted after the test."""
    windows: list[MainWindow] = []

    def make(story: Sequence[AnyEvent], width: int = 1280, height: int = 800) -> MainWindow:
        current = StateStore()
        current.tell_time_by_events()
        client = EngineClient(lambda command: window.commanded.emit(command) or True)
        current.applied.connect(client.take)
        window = MainWindow(PageContext(theme, store=current, client=client))
        window.resize(width, height)
        for event in story:
            current.take(event)
        current.flush()
        window.show()
        for _ in range(4):
            qapp.processEvents()
        windows.append(window)
        return window

    yield make
    for window in windows:
        window.hide()
        shiboken6.delete(window)
