"""What the window's tests share: a platform without a screen, one look, a recorded run, a window that was told it."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import shiboken6

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from gui.recorded import REAL, Run
from waggle.gui.application.garbage_collection import Collector
from waggle.gui.application.main import application
from waggle.gui.application.main_window import Window
from waggle.gui.application.qt_application import Application
from waggle.gui.i18n import translator
from waggle.gui.state.store import Current
from waggle.gui.theme.theme import Look
from waggle.protocol import events, json_lines
from waggle.protocol.state import AnyEvent

HERE = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """What a test here leaves in cycles is freed after it, in this thread: Qt bears neither another moment nor another thread.
    So are its windows: a theme dresses every widget there is.

    Not by a fixture: pytest holds what fixtures gave until all of them have ended. And it asks this for other folders, too.
    """
    if not item.path.is_relative_to(HERE):
        return (yield)
    gc.disable()
    told = yield
    for left in QApplication.topLevelWidgets():
        if isinstance(left, Window) and shiboken6.isValid(left):
            left.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    gc.collect(1)
    gc.enable()
    return told


@pytest.fixture(scope="session")
def qapp() -> Application:
    """Without its collector: it would look through all that torch has made, in the midst of a test."""
    app = application()
    shiboken6.delete(app.findChild(Collector))
    return app


@pytest.fixture(autouse=True)
def english_again(qapp: Application) -> Iterator[None]:
    yield
    translator.use("en")


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real recorded run where there is one, else the written one."""
    return REAL if REAL.exists() else Run().write(tmp_path_factory.mktemp("recorded") / "run.jsonl")


@pytest.fixture(scope="session")
def written() -> tuple[AnyEvent, ...]:
    """The written run: short, and known in every figure."""
    return tuple(Run(rounds=12).told())


@pytest.fixture(scope="session")
def told(recording: Path) -> tuple[AnyEvent, ...]:
    return tuple(event for event in json_lines.recording(recording) if event and not isinstance(event, events.EngineStopped))


@pytest.fixture
def look(qapp: Application) -> Look:
    made = Look("light")
    made.dress()
    return made


Told = Callable[[Sequence[AnyEvent]], Window]


@pytest.fixture
def window_told(qapp: Application, look: Look) -> Iterator[Told]:
    """Makes a shown window that was told these events; all are taken away afterwards."""
    made: list[Window] = []

    def make(story: Sequence[AnyEvent], width: int = 1280, height: int = 800) -> Window:
        current = Current()
        current.tell_time_by_events()
        window = Window(look, current)
        window.resize(width, height)
        for event in story:
            current.take(event)
        current.flush()
        window.show()
        for _ in range(4):
            qapp.processEvents()
        made.append(window)
        return window

    yield make
    for window in made:
        window.hide()
        shiboken6.delete(window)
