"""What a person asks for in the whole window, with an engine behind it: it is asked, answered, and given up where nobody is."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

import waggle
from gui.recorded import ready
from waggle.gui.choices import Choices
from waggle.gui.current import Current
from waggle.gui.engine_process import EngineProcess
from waggle.gui.frame import PAGES
from waggle.gui.look import Look
from waggle.gui.shell import Shell
from waggle.paths import Home
from waggle.protocol.commands import AnyCommand, Pause, Resume
from waggle.protocol.state import State
from waggle.settings import Settings

FAKE = Path(__file__).with_name("fake_engine.py")
pytestmark = pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support")  # the platform without a screen says so
Begun = Callable[..., Shell]


@pytest.fixture
def begun(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Begun]:
    """A shell whose window is shown and whose engine, a fake of some kind, contributes."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(waggle.__file__).parents[1]}:{FAKE.parents[1]}")
    made: list[Shell] = []

    def begin(kind: str = "well", page: str = "home") -> Shell:
        home = Home(tmp_path)
        engine = EngineProcess([sys.executable, str(FAKE), kind], backoff=(60.0,), farewell=2.0)
        shell = Shell(look, Current(), engine, Choices(home.settings), home)
        made.append(shell)
        shell.begin(page)
        shell.start()
        qtbot.waitUntil(lambda: shell._current.state.phase == "contributing", timeout=20_000)
        shell._current.flush()
        shell.window.activateWindow()
        return shell

    yield begin
    for shell in made:
        with qtbot.waitSignal(shell.left, timeout=10_000):
            shell.leave()
        window = shell.window
        shiboken6.delete(shell)
        shiboken6.delete(window)


def phase_is(shell: Shell, phase: str, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: shell._current.state.phase == phase, timeout=5000)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "home"])
def test_the_key_that_pauses_and_resumes_does_so_on_every_page(begun: Begun, page: str, qtbot: QtBot) -> None:
    shell = begun(page=page)
    for phase in ("paused", "contributing", "paused"):
        QTest.keyClick(shell.window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)
        phase_is(shell, phase, qtbot)


def test_whoever_pauses_by_keyboard_stays_on_the_button(begun: Begun, qtbot: QtBot) -> None:
    shell, asked = begun(), list[AnyCommand]()
    hero = shell.window.home.hero
    shell.window.commanded.connect(asked.append)
    shell.choices.ask = lambda command: asked.append(command) is None
    hero._more.setFocus()
    hero._more.menu().actions()[0].trigger()
    phase_is(shell, "paused", qtbot)
    shell._current.flush()
    for phase in ("contributing", "paused"):
        QTest.keyClick(shell.window.focusWidget(), Qt.Key.Key_Space)
        QTest.keyClick(shell.window.focusWidget(), Qt.Key.Key_Space)
        phase_is(shell, phase, qtbot)
        shell._current.flush()
    assert [type(command) for command in asked] == [Pause, Resume, Pause]


def test_no_button_inherits_the_focus_of_one_that_goes(begun: Begun, qtbot: QtBot) -> None:
    hero = begun().window.home.hero
    hero._main.setFocus()
    hero.show_state(State(phase="preparing", ready=ready(), settings=Settings()), 0.0)
    assert hero.hasFocus()
