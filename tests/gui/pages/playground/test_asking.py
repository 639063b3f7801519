"""Commands of a person in the whole window: sent to an engine, answered, refused, or given up without an engine."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

import waggle
from gui.answers import newest, record_commands, refuse, run_coroutines
from gui.pages.swarms.test_page import is_previewing
from gui.recorded import ready
from waggle.core.paths import Home
from waggle.core.settings import Settings
from waggle.gui.application.controller import Controller
from waggle.gui.application.qt_application import Application
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.engine_client.replay import Replay
from waggle.gui.pages import PAGES
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.swarms.create_form import CreateSwarmForm
from waggle.gui.pages.swarms.page import SwarmsPage
from waggle.gui.pages.swarms.swarm_preview import SwarmPreviewCard
from waggle.gui.pages.you.identity_backup import IdentityBackupView
from waggle.gui.pages.you.page import YouPage
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.protocol.commands import ChoosePeer, ListSwarms, Pause, Resume
from waggle.protocol.events_identity import BackupWritten
from waggle.protocol.schedule import moment
from waggle.protocol.state import State

FAKE = Path(__file__).parents[2] / "fake_engine.py"
pytestmark = pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support")  # the platform without a screen says so
Begun = Callable[..., Controller]


@pytest.fixture
def begun(theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Begun]:
    """A controller with a visible window and a fake engine that contributes."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(waggle.__file__).parents[1]}{os.pathsep}{FAKE.parents[1]}")
    controllers: list[Controller] = []

    def begin(kind: str = "well", page: str = "home") -> Controller:
        home = Home(tmp_path)
        engine = EngineProcess(lambda: [sys.executable, str(FAKE), kind], backoff=(60.0,), farewell=2.0)
        shell = Controller(theme, StateStore(), engine, SettingsStore(home.settings, send=engine.send), home)
        controllers.append(shell)
        shell.begin(page)
        shell.start()
        qtbot.waitUntil(lambda: shell._store.state.phase == "contributing", timeout=20_000)
        shell._store.flush()
        shell.window.activateWindow()
        return shell

    yield begin
    for shell in controllers:
        if shell._source.is_running:  # type: ignore[union-attr]
            with qtbot.waitSignal(shell.finished, timeout=20_000):
                shell.leave()
        window = shell.window
        shiboken6.delete(shell)
        shiboken6.delete(window)


def phase_is(shell: Controller, phase: str, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: shell._store.state.phase == phase, timeout=20_000)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "home"])
def test_the_key_that_pauses_and_resumes_does_so_on_every_page(begun: Begun, page: str, qtbot: QtBot) -> None:
    shell = begun(page=page)
    for phase in ("paused", "contributing", "paused"):
        QTest.keyClick(shell.window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)
        phase_is(shell, phase, qtbot)


def test_whoever_pauses_by_keyboard_stays_on_the_button(begun: Begun, qtbot: QtBot) -> None:
    shell = begun()
    commands = record_commands(shell._client)
    hero = shell.window.pages.of(HomePage).hero
    shell.settings_store._send = lambda command: commands.append(command) is None
    hero._more.setFocus()
    hero._more.menu().actions()[0].trigger()
    phase_is(shell, "paused", qtbot)
    shell._store.flush()
    for phase in ("contributing", "paused"):
        QTest.keyClick(shell.window.focusWidget(), Qt.Key.Key_Space)
        QTest.keyClick(shell.window.focusWidget(), Qt.Key.Key_Space)
        phase_is(shell, phase, qtbot)
        shell._store.flush()
    assert [type(command) for command in commands] == [Pause, Resume, Pause]


def test_no_button_inherits_the_focus_of_one_that_goes(begun: Begun, qtbot: QtBot) -> None:
    hero = begun().window.pages.of(HomePage).hero
    hero._main.setFocus()
    hero.show_state(State(phase="preparing", ready=ready(), settings=Settings()), 0.0)
    assert hero.hasFocus()


def test_since_when_names_the_day_where_it_is_not_today(begun: Begun) -> None:
    hero, now = begun().window.pages.of(HomePage).hero, 1.7e9
    for since in (now, now - 2 * 86_400):
        hero.show_state(State(phase="paused", phase_since=since, round=1), now)
        assert hero._since.words() == f"since {moment(since, now)}"


def backing_up(shell: Controller) -> IdentityBackupView:
    """The person has just pressed Back up."""
    shell.window.show_page("you")
    shell.window.pages.of(YouPage)._open("backup")
    form = shell.window.pages.of(YouPage)._identity
    form._path.setText("/tmp/me.identity")
    type_passphrase(form)
    form._go.click()
    return form


def type_passphrase(form: IdentityBackupView) -> None:
    for field in (form._words, form._repeated):
        field.setText("correct horse battery")


def creating(shell: Controller, qtbot: QtBot) -> CreateSwarmForm:
    """The person has just pressed Create."""
    shell.window.show_page("swarms")
    form = shell.window.pages.of(SwarmsPage)._form
    qtbot.waitUntil(lambda: form._specialties._model.rowCount() > 0, timeout=20_000)
    shell.window.pages.of(SwarmsPage)._new.click()
    form._name.setText("Ours")
    form._specialties._items()[0].setCheckState(Qt.CheckState.Checked)
    form._create.click()
    return form


def test_what_an_engine_that_died_was_asked_can_be_asked_again(begun: Begun, qtbot: QtBot) -> None:
    shell = begun("mortal")
    form = backing_up(shell)
    assert not form._go.isEnabled()
    shell.window.show_page("home")
    phase_is(shell, "problem", qtbot)
    run_coroutines()
    shell._store.flush()
    assert (form._message.text(), form._go.isEnabled()) == ("The engine ended before it answered.", False)
    type_passphrase(form)  # it was forgotten when the page was left
    assert form._go.isEnabled()
    form._go.click()
    run_coroutines()
    assert form._go.isEnabled()
    assert shell.window.status._notice._content[0] == form._message.text() == "Training is not running: nothing was done."


def test_a_swarm_that_was_being_made_when_the_engine_died_is_made_no_more(begun: Begun, qtbot: QtBot) -> None:
    shell = begun("mortal")
    form = creating(shell, qtbot)
    assert form._count.words() == "Making its questions; a few seconds."
    phase_is(shell, "problem", qtbot)
    run_coroutines()
    shell._store.flush()
    assert (form._problem.text(), form._count.words()) == ("The engine ended before it answered.", "1 specialty chosen")


def test_a_swarm_that_nobody_can_join_stays_on_the_sheet(begun: Begun, qtbot: QtBot) -> None:
    shell = begun()
    shell.open_invite("waggle://join?charter=ab")
    swarms = shell.window.pages.of(SwarmsPage)
    qtbot.waitUntil(lambda: is_previewing(swarms), timeout=20_000)
    shell._source._process.kill()  # type: ignore[union-attr]
    phase_is(shell, "problem", qtbot)
    swarms.findChild(SwarmPreviewCard).join.click()  # type: ignore[union-attr]
    assert is_previewing(swarms)
    assert shell.window.status._notice._content[0] == "Training is not running: nothing was done."


def test_a_refusal_is_for_whoever_asked(begun: Begun, qtbot: QtBot) -> None:
    shell = begun("silent")
    backup, swarm = backing_up(shell), creating(shell, qtbot)
    shell._client.send(ChoosePeer(id="another", peer="12D3KooWUnknown", choice="muted"))
    qtbot.waitUntil(lambda: "no peer's id" in shell.window.status._notice._content[0], timeout=20_000)
    assert (backup._message.text(), backup._go.isEnabled()) == ("", False)
    assert (swarm._problem.text(), swarm._create.isEnabled()) == ("", False)
    refuse(shell.window, "The disk is full.", "", newest(shell.window, BackupWritten))
    assert (backup._message.text(), bool(backup._answer)) == ("The disk is full.", False)
    assert not swarm._create.isEnabled()


def test_a_recorded_run_says_that_nothing_was_done(theme: Theme, recording: Path, qtbot: QtBot) -> None:
    shell = Controller(theme, StateStore(), Replay(recording), SettingsStore(None))
    shell.begin("home")
    shell._client.send(ListSwarms(id="by itself"))
    assert shell.window.status._notice._content[0] == ""
    shell._client.send(ChoosePeer(id="pressed", peer="12D3KooWUnknown", choice="muted"))
    assert shell.window.status._notice._content[0] == "This is a recorded run: nothing was done."
    shell.open_invite("waggle://join?charter=ab")
    run_coroutines()
    assert shell.window.pages.of(SwarmsPage).join_view._message.text() == "This is a recorded run: nothing was done."
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


def test_whoever_quits_by_the_menu_of_the_system_has_left(begun: Begun, qapp: Application, qtbot: QtBot) -> None:
    shell = begun()
    qapp.leave_wanted.connect(shell.leave)
    with qtbot.waitSignal(shell.finished, timeout=20_000):
        assert QApplication.sendEvent(qapp, QEvent(QEvent.Type.Quit))
        assert shell.window.isVisible()
        assert shell.window.leaving
    assert not shell._source.is_running  # type: ignore[union-attr]
