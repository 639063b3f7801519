"""The controller: one window for each home, the words of the tray, notifications, and the window's saved geometry."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import shiboken6
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QLockFile, Qt
from PySide6.QtWidgets import QApplication, QSystemTrayIcon
from pytestqt.qtbot import QtBot

import waggle
from gui.recorded import ready
from waggle.cli import main
from waggle.core import cuda_download, paths, settings
from waggle.core.paths import Home
from waggle.gui.application import main as app
from waggle.gui.application import single_instance, tray
from waggle.gui.application.controller import FRAME, Controller
from waggle.gui.application.main_window import SMALLEST
from waggle.gui.application.qt_application import Application
from waggle.gui.application.single_instance import SingleInstance
from waggle.gui.application.tray import TrayIcon
from waggle.gui.application.window import window_state
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.engine_client.replay import Replay
from waggle.gui.i18n.formatting import clock
from waggle.gui.pages.help.page import HelpPage
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.settings.cuda_download import CudaCard
from waggle.gui.pages.settings.page import SettingsPage
from waggle.gui.state.notifications import new_notices
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets import system_tray
from waggle.gui.widgets.controls.buttons import Button
from waggle.protocol import events
from waggle.protocol.commands import AnyCommand, Pause, Resume
from waggle.protocol.events_models import ModelChoice
from waggle.protocol.state import AnyEvent, Snapshot, State
from waggle.protocol.text import pauses

SOON_MS = 60_000
SECOND = """
import sys
from pathlib import Path
from waggle.gui.application import single_instance
single_instance.PATIENCE_MS, single_instance.ANSWER_MS = int(sys.argv[2]), 60_000
single_instance.WINDOWS = single_instance.WINDOWS or "windows" in sys.argv
print("asks", flush=True)
print(single_instance.SingleInstance(Path(sys.argv[1])).call("waggle://join?x"))
"""
FAKE = Path(__file__).parents[1] / "fake_engine.py"
CONTRIBUTING = State(phase="contributing", round=7, reach="solo", ready=ready(at=10.0))


def test_only_the_first_claims_a_home(tmp_path: Path, qtbot: QtBot) -> None:
    first, second, elsewhere = SingleInstance(tmp_path), SingleInstance(tmp_path), SingleInstance(tmp_path / "..")
    assert first.claim()
    assert not second.claim()
    first.release()
    assert second.claim()
    second.release()
    elsewhere.release()


@pytest.mark.skipif(os.name == "nt", reason="who holds a file is another process's number there")
def test_a_home_that_came_from_another_computer_is_opened_and_that_of_a_living_window_is_not(
    tmp_path: Path, qtbot: QtBot
) -> None:
    (tmp_path / "window.lock").write_text(f"{os.getppid()}\nwaggle\nelsewhere\n{'0' * 32}\n{'1' * 32}\n")
    plain = QLockFile(str(tmp_path / "window.lock"))
    plain.setStaleLockTime(0)
    assert not plain.tryLock(0), "Qt takes it for held, whether it is or not"
    here = SingleInstance(tmp_path)
    assert here.claim()
    assert not SingleInstance(tmp_path).claim()
    here.release()


def test_a_window_for_another_computer_is_another_window(tmp_path: Path, qtbot: QtBot) -> None:
    here, far = SingleInstance(tmp_path), SingleInstance(tmp_path, host="server")
    assert here.claim()
    assert far.claim()
    assert not SingleInstance(tmp_path, host="server").claim()
    here.release()
    far.release()


@pytest.mark.parametrize(("host", "has_home"), [("", True), ("server", False)])
def test_a_window_for_another_computer_writes_no_settings_for_the_engine_here(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, host: str, has_home: bool
) -> None:
    created: list[SettingsStore] = []
    monkeypatch.setattr(app, "_run_home_window", lambda _theme, _home, source, _arguments: created.append(source[1]) or 0)
    assert app.run(app.Arguments(home=tmp_path, on=host)) == 0
    created[0].set({"computer.threads": 2})
    assert (tmp_path / "settings.toml").exists() == has_home


@pytest.mark.parametrize("host", ["", "server"])
def test_a_verbose_window_starts_a_verbose_engine(qapp: Application, tmp_path: Path, host: str) -> None:
    for verbose in (False, True):
        engine, _settings = app._engine_and_settings(Home(tmp_path), app.Arguments(on=host, verbose=verbose))
        assert ("--verbose" in " ".join(engine._command())) == verbose


@pytest.mark.qt_log_ignore("systemTrayWindowChanged")
def test_a_report_does_not_say_through_whom_another_computer_is_reached(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    engine = EngineProcess(lambda: [sys.executable, str(FAKE), "well"])
    shell = Controller(theme, StateStore(), engine, SettingsStore(None), Home(tmp_path), host="anna@nas-kiel")
    shell.begin("home")
    window = shell.window
    engine.event_received.emit(
        events.EngineFailed(title="anna@nas-kiel cannot be reached by ssh.", advice="anna: no", detail="nas-kiel")
    )
    shell._store.flush()
    window.show_page("help")
    help_page = window.pages["help"]
    assert isinstance(help_page, HelpPage)
    for words in (window.pages.of(HomePage).context.report(shell._store.state), help_page._report._text.toPlainText()):
        assert "HOST cannot be reached by ssh." in words
        assert not [name for name in ("anna", "nas-kiel") if name in words]
    shiboken6.delete(shell)
    shiboken6.delete(window)


@pytest.mark.qt_log_ignore("systemTrayWindowChanged")
def test_a_settings_file_that_cannot_be_used_is_set_aside_by_a_press_and_by_nothing_else(
    theme: Theme, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, starts = Home(tmp_path), list[bool]()
    home.settings.write_text("[window")
    engine = EngineProcess(lambda: [sys.executable, str(FAKE), "well"])
    monkeypatch.setattr(engine, "start", lambda: starts.append(True))
    shell = Controller(theme, StateStore(), engine, SettingsStore(home.settings, send=engine.send), home)
    shell.begin("home")
    window, hero = shell.window, shell.window.pages.of(HomePage).hero
    engine.event_received.emit(
        events.EngineFailed(title="The settings file cannot be read.", advice="Mend that line, or rename the file.")
    )
    shell._store.flush()
    assert (hero._main.text(), hero._main.property("kind"), hero._second.text()) == (
        "Set it aside and start", "primary", "Copy report",
    )  # fmt: skip
    hero._second.click()
    assert "cannot be read" in QApplication.clipboard().text()
    assert (home.settings.read_text(), starts) == ("[window", [])
    hero._main.click()
    aside = tmp_path / "settings.toml.broken"
    assert (aside.read_text(), home.settings.exists(), starts) == ("[window", False, [True])
    assert window.status._notice._content[0] == f"Your settings of before are in {aside}; all is set as it ships."
    shell._store.flush()
    window.redraw()
    assert (hero._main.text(), hero._second.text()) == ("Try again", "Copy report"), "another failure is not the file's"
    shiboken6.delete(shell)
    shiboken6.delete(window)


@pytest.mark.skipif(os.name == "nt", reason="sockets have names there")
@pytest.mark.parametrize("is_taken", [False, True])
def test_a_window_of_a_long_folder_name_is_called_where_nobody_else_can_listen(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        home = Home(tmp_path / ("x" * 90)).prepare()
        place = paths.socket_path(home, "window.sock").parent
        if is_taken:
            place.mkdir()
            place.chmod(0o777)
        first, calls = SingleInstance(home.root), list[str]()
        first.start_requested.connect(calls.append)
        assert first.claim()
        assert (place.stat().st_mode & 0o777, first._server.isListening()) == ((0o777, False) if is_taken else (0o700, True))
        where = {**os.environ, "PYTHONPATH": str(Path(waggle.__file__).parents[1]), "TMPDIR": short}
        asks = [sys.executable, "-c", SECOND, str(home.root), "60000"]
        second = subprocess.Popen(asks, stdout=subprocess.PIPE, env=where)
        qtbot.waitUntil(lambda: second.poll() is not None, timeout=60_000)
        assert second.communicate()[0].split() == [b"asks", b"False" if is_taken else b"True"]
        assert calls == ([] if is_taken else ["waggle://join?x"])
        first.release()
        assert not place.exists()


def test_a_second_start_waits_for_a_window_that_is_still_being_made(tmp_path: Path, qtbot: QtBot) -> None:
    first, calls = SingleInstance(tmp_path), list[str]()
    first.start_requested.connect(calls.append)
    assert first.claim()
    where = {**os.environ, "PYTHONPATH": str(Path(waggle.__file__).parents[1])}
    asks = [sys.executable, "-c", SECOND, str(tmp_path), "100"]
    with subprocess.Popen(asks, stdout=subprocess.PIPE, env=where) as second:
        assert second.stdout is not None
        assert second.stdout.readline().strip() == b"asks"
        with contextlib.suppress(subprocess.TimeoutExpired):
            second.wait(2)  # far longer than it waits to be connected, and meanwhile nothing is heard here
        qtbot.waitUntil(lambda: second.poll() is not None, timeout=60_000)
        assert second.stdout.read().strip() == b"True"
    assert calls == ["waggle://join?x"]
    first.release()


def test_on_windows_nobody_can_know_where_a_window_listens_but_who_may_read_its_home(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_instance, "WINDOWS", True)
    first, calls = SingleInstance(tmp_path), list[str]()
    first.start_requested.connect(calls.append)
    assert first.claim()
    named = (tmp_path / "control/window.pipe").read_text()
    assert first._server.serverName() == f"waggle-window-{named}"
    where = {**os.environ, "PYTHONPATH": str(Path(waggle.__file__).parents[1])}
    asks = [sys.executable, "-c", SECOND, str(tmp_path), "60000", "windows"]
    second = subprocess.Popen(asks, stdout=subprocess.PIPE, env=where)
    qtbot.waitUntil(lambda: second.poll() is not None, timeout=60_000)
    assert second.communicate()[0].split() == [b"asks", b"True"]
    assert calls == ["waggle://join?x"]
    first.release()
    assert first.claim()
    assert (tmp_path / "control/window.pipe").read_text() != named, "each window has its own"
    first.release()


@pytest.mark.qt_log_ignore("unexpected locking error")  # Qt's own, on Windows
def test_a_home_that_cannot_be_written_in_is_left_to_the_engine(tmp_path: Path, qtbot: QtBot) -> None:
    assert SingleInstance(tmp_path / "missing").claim()


@pytest.mark.qt_log_ignore("systemTrayWindowChanged")
def test_the_very_first_window_is_no_larger_than_the_screen(theme: Theme, qtbot: QtBot, recording: Path) -> None:
    shell = Controller(theme, StateStore(), Replay(recording), SettingsStore(None))
    shell.begin("home")
    window = shell.window
    there = window.screen().availableGeometry()
    assert window.height() == min(800, max(there.height() - FRAME.height(), window.minimumHeight()))
    assert window.width() == min(1280, max(there.width() - FRAME.width(), window.minimumWidth()))
    assert window.height() < there.height()
    shiboken6.delete(shell)
    shiboken6.delete(window)


def test_nobody_answers_where_no_window_is(tmp_path: Path, qtbot: QtBot) -> None:
    assert not SingleInstance(tmp_path).call()


@pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support")
def test_a_start_while_it_is_leaving_is_a_start_afterwards(
    shell: Controller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.open_invite("")
    assert shell.pending_start is None
    shell.leave()
    shell.open_invite("waggle://join?charter=ab")
    shell.open_invite("")
    assert shell.pending_start == "waggle://join?charter=ab"
    started: list[list[str]] = []
    monkeypatch.setattr(app.QProcess, "startDetached", lambda program, rest: started.append([program, *rest]))
    chosen = app.Arguments(on="server", overrides=("swarm.solo=true",), verbose=True)
    app._start_again(Home(tmp_path), chosen, shell.pending_start)
    arguments = main.parse(started[0][len(paths.window_command()) :])
    assert (arguments.home, arguments.on, arguments.set, arguments.invite, arguments.verbose) == (
        tmp_path,
        "server",
        ["swarm.solo=true"],
        shell.pending_start,
        True,
    )


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "window.json"
    assert window_state.read(path) == window_state.WindowState()
    geometry = window_state.geometry_text(b"\x01\xff")
    remembered = window_state.WindowState(geometry=geometry, page="live", tray_told=True, views={"live": 1})
    window_state.write(path, remembered)
    assert window_state.read(path) == remembered
    assert window_state.read(path).geometry_bytes == b"\x01\xff"
    path.write_text("{")
    assert window_state.read(path) == window_state.WindowState()


def test_the_tray_says_the_sentence_and_offers_what_can_be_done(theme: Theme, qtbot: QtBot) -> None:
    tray_icon, commands = TrayIcon(theme), list[AnyCommand]()
    tray_icon.commanded.connect(commands.append)
    tray_icon.show_state(CONTRIBUTING)
    assert "Training in Maths swarm, round 8." in tray_icon.icon.toolTip()
    assert visible_actions(tray_icon) == ["Training: Training in Maths swarm, round 8.", "Open Waggle", "Pause",
                           "Pause for a while", "Quit"]  # fmt: skip
    tray_icon._pause.trigger()
    tray_icon.show_state(replace(CONTRIBUTING, phase="paused"))
    assert visible_actions(tray_icon) == ["Paused by you: Paused.", "Open Waggle", "Resume", "Quit"]
    tray_icon._resume.trigger()
    tray_icon.show_state(replace(CONTRIBUTING, phase="waiting"))
    assert visible_actions(tray_icon)[1:] == ["Open Waggle", "Pause", "Pause for a while", "Quit"]
    tray_icon._pause.trigger()
    assert [type(command) for command in commands] == [Pause, Resume, Pause]


def test_the_tray_names_the_computer_of_an_engine_elsewhere(theme: Theme, qtbot: QtBot) -> None:
    tray_icon = TrayIcon(theme, host="bee@hive", clock_now=lambda: 7200.0)
    tray_icon.show_state(CONTRIBUTING)
    assert tray_icon._for.actions()[0].text() == f"For 1 hour, until {clock(10_800.0)}"
    assert tray_icon.icon.toolTip().startswith("Waggle on bee@hive: Training in Maths swarm")
    assert visible_actions(tray_icon)[0].startswith("bee@hive: Training")


def test_the_tray_hands_the_system_no_words_twice(theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    tray_icon, tooltips = TrayIcon(theme), list[str]()
    tray_icon.show_state(CONTRIBUTING)
    monkeypatch.setattr(tray_icon.icon, "setToolTip", tooltips.append)
    tray_icon.show_state(replace(CONTRIBUTING, answered=7))
    assert tooltips == []
    tray_icon.show_state(replace(CONTRIBUTING, phase="paused"))
    assert len(tooltips) == 1


def test_the_tray_says_what_quitting_leaves_running(theme: Theme, qtbot: QtBot) -> None:
    tray_icon = TrayIcon(theme)
    tray_icon.show_state(replace(CONTRIBUTING, service=True))
    assert visible_actions(tray_icon)[-1] == "Quit; training keeps running"
    tray_icon.show_state(CONTRIBUTING)
    assert visible_actions(tray_icon)[-1] == "Quit"


def visible_actions(tray_icon: TrayIcon) -> list[str]:
    return [action.text() for action in tray_icon.menu.actions() if action.isVisible() and not action.isSeparator()]


def test_a_tooltip_has_a_length_that_every_system_shows() -> None:
    problem = events.EngineFailed(title="A sentence that is long. " * 20, advice="")
    assert len(tray.tooltip(State(phase="problem", problem=problem))) <= tray.LONGEST_TIP


def test_a_strangers_swarm_is_no_markup_in_a_tooltip(theme: Theme, qtbot: QtBot) -> None:
    tray_icon = TrayIcon(theme)
    tray_icon.show_state(replace(CONTRIBUTING, ready=ready(swarm="<b>Loud</b><img src=x>")))
    assert "Loud" in tray_icon.icon.toolTip()
    assert "<" not in tray_icon.icon.toolTip()


@pytest.mark.qt_log_ignore("systemTrayWindowChanged")
def test_a_strangers_specialty_is_no_markup_in_a_notification(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    tray_icon, messages = TrayIcon(theme), list[str]()
    tray_icon.show()
    monkeypatch.setattr(tray_icon.icon, "showMessage", lambda *words: messages.extend(words[:2]))  # no test reads a system's
    aha = replace(AHA, specialty="<b>Logic</b>", name="<a href=x>Brisk Otter</a>")
    (notice,) = new_notices(CONTRIBUTING, replace(CONTRIBUTING, ahas=(aha,)))
    tray_icon.notify(notice.title, notice.words)
    assert [("Logic" in messages[0], "Brisk Otter" in messages[1]), "<" in "".join(messages)] == [(True, True), False]
    tray_icon.hide()


def test_ways_to_pause_name_their_end() -> None:
    hour, tomorrow, away, after = (command for _words, command in pauses.for_a_while(1000.0))
    assert (hour.seconds, hour.until) == (3600, None), "the engine's clock may be another"
    assert tomorrow.seconds is not None
    assert 0 < tomorrow.seconds < 2 * 86_400
    assert away.until_away
    assert after.after_round


AHA = events.Aha(round=3, at=20.0, specialty="Logic", name="Brisk Otter")


@pytest.mark.parametrize(
    ("after", "kinds"),
    [
        (replace(CONTRIBUTING, ahas=(AHA,)), ["discoveries"]),
        (replace(CONTRIBUTING, ahas=(replace(AHA, at=5.0),)), []),
        (replace(CONTRIBUTING, phase="problem", problem=events.EngineFailed(title="No room.", advice="")), ["problems"]),
        (replace(CONTRIBUTING, round=8), []),
    ],
)
def test_few_things_are_worth_a_notification(after: State, kinds: list[str]) -> None:
    assert [notice.kind for notice in new_notices(CONTRIBUTING, after)] == kinds


@pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support raise")  # the platform without a screen says so
@pytest.mark.parametrize(("in_tray", "there", "hidden"), [(True, True, True), (True, False, False), (False, True, False)])
def test_closing_goes_to_the_tray_only_where_there_is_one(
    theme: Theme, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, in_tray: bool, there: bool, hidden: bool
) -> None:
    monkeypatch.setattr(system_tray, "available", lambda: there)  # no test can have a system's tray come and go
    choices, home = SettingsStore(None), Home(tmp_path)
    choices.set({"window.close_to_tray": in_tray})
    shell = Controller(theme, StateStore(), EngineProcess(lambda: [sys.executable, str(FAKE), "well"]), choices, home)
    shell.begin("live")
    shell.window.close()
    assert shell.window.isHidden() == hidden
    assert shell.window.leaving != hidden
    assert window_state.read(tmp_path / "window.json").page == "live"
    shell.open_invite("")
    assert shell.window.isVisible()
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


@pytest.mark.qt_log_ignore("systemTrayWindowChanged")
@pytest.mark.parametrize(("kind", "words"), [("fails slowly", "Try again"), ("stops slowly", "Start")])
def test_starting_is_offered_once_the_process_is_gone(
    theme: Theme, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, words: str
) -> None:
    """While a failed engine is still ending, no start is offered."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(waggle.__file__).parents[1]}{os.pathsep}{FAKE.parents[1]}")
    current, process = StateStore(), EngineProcess(lambda: [sys.executable, str(FAKE), kind], backoff=())
    shell = Controller(theme, current, process, SettingsStore(tmp_path / "settings.toml", send=process.send))
    shell.begin("home")
    with qtbot.waitSignals([current.changed, current.changed], timeout=20_000):  # the start, and what the engine said
        shell.start()
    assert process.is_running
    assert words not in offered(shell)
    assert not process.send(Pause(id="nobody reads it"))
    shell.settings_store.set({"computer.threads": 3})
    assert settings.read(tmp_path / "settings.toml", ()).computer.threads == 3
    process._process.closeWriteChannel()  # at which it goes
    qtbot.waitUntil(lambda: words in offered(shell), timeout=20_000)
    assert shell.settings_store.settings.computer.threads == 3
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


ENGINE = """
import json, sys
from gui.fake_engine import tell
from waggle.protocol import events
from waggle.core.settings import ComputerSettings, Settings
with open(sys.argv[1], "a") as begun:
    begun.write(json.dumps([argument for argument in sys.argv[2:] if "=" in argument]) + "\\n")
tell(events.SettingsChanged(settings=Settings(computer=ComputerSettings(threads=1, cpu_percent=70))))
if sys.stdin.readline() and len(open(sys.argv[1]).readlines()) == 1:
    tell(events.SettingsChanged(settings=Settings(computer=ComputerSettings(threads=4, cpu_percent=70))))
    sys.exit(7)
"""


@pytest.mark.qt_log_ignore("systemTrayWindowChanged")
def test_an_engine_that_died_is_not_told_again_what_was_changed_since_the_command_line_said_it(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{Path(waggle.__file__).parents[1]}{os.pathsep}{FAKE.parents[1]}")
    begun, shells = tmp_path / "begun", list[Controller]()
    monkeypatch.setattr(app, "command_line", lambda arguments: [sys.executable, "-c", ENGINE, str(begun), *arguments])
    monkeypatch.setattr(app, "_run_event_loop", lambda shell, _arguments, first: shells.append(shell) or 0)
    overrides = ("computer.threads=1", "computer.cpu_percent=70")
    app.run(app.Arguments(home=tmp_path / "home", overrides=overrides))
    (shell,), source = shells, shells[0]._source
    assert isinstance(source, EngineProcess)
    shell.start()
    qtbot.waitUntil(lambda: shell._store.state.settings is not None, timeout=60_000)
    shell.settings_store.set({"computer.threads": 4})
    qtbot.waitUntil(lambda: len(begun.read_text().splitlines()) == 2, timeout=60_000)
    assert [json.loads(line) for line in begun.read_text().splitlines()] == [[*overrides], [overrides[1]]]
    with qtbot.waitSignal(source.ended, timeout=60_000):
        source.stop()
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


def offered(shell: Controller) -> list[str]:
    return [button.text() for button in shell.window.pages.of(HomePage).hero.findChildren(Button) if button.isVisible()]


@pytest.fixture
def shell(theme: Theme, recording: Path, qtbot: QtBot) -> Iterator[Controller]:
    controller = Controller(theme, StateStore(), Replay(recording), SettingsStore(None))
    controller.begin("home")
    yield controller
    window = controller.window
    shiboken6.delete(controller)
    shiboken6.delete(window)
    theme.set_text(100)
    theme.apply()


NO_SCREEN = pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support")  # the platform without a screen says so


@NO_SCREEN
def test_what_nobody_sees_is_said_by_the_tray_and_still_stands_there(shell: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[tuple[str, str]] = []
    monkeypatch.setattr(
        TrayIcon, "notify", lambda _tray, *words: messages.append(words)
    )  # no test can read a system's notifications
    window, words = shell.window, "This computer does not tell whether you are using it."
    window.show_refusal(words, "")
    assert not messages
    window.hide()
    window.show_refusal(words, "")
    assert messages == [("Waggle", words)]
    window.notices._end.timeout.emit()
    assert window.status._notice._content[0] == words
    shell.raise_window()
    assert window.notices._end.isActive()
    window.notices._end.timeout.emit()
    assert window.status._notice._content[0] == ""


NO_MODEL = events.Warned(
    title="Hugging Face has no model Qwen/Typo.", advice="Check its name. All is as it was before.", at=5000.0
)


def tell(shell: Controller, *received: AnyEvent) -> None:
    for event in received:
        shell._store.take(event)
    shell._store.flush()


@NO_SCREEN
def test_a_choice_that_failed_is_said_where_it_was_made(shell: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    monkeypatch.setattr(shell.window.notices, "show", messages.append)
    shell.window.show_page("swarms")
    old = replace(NO_MODEL, at=1000.0)  # of an engine that was there before
    tell(shell, Snapshot(state=State(warnings=(old,)), at=4990.0))
    tell(shell, NO_MODEL, replace(NO_MODEL, title="The clock is wrong.", advice=""))
    assert messages == ["Hugging Face has no model Qwen/Typo. Check its name. All is as it was before.", "The clock is wrong."]
    tell(shell, events.PhaseChanged(phase="contributing", round=7, at=5001.0))
    assert len(messages) == 2, "it was said before"


@NO_SCREEN
def test_a_choice_of_a_model_that_fails_is_said_on_every_page_but_the_one_that_shows_it(
    shell: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.setattr(shell.window.notices, "show", messages.append)
    failed = ModelChoice(name="bees/tiny", stage="failed", title="Hugging Face cannot be reached.", at=5000.0)
    tell(shell, Snapshot(state=State(choice=replace(failed, at=1000.0)), at=4990.0))
    assert messages == [], "it failed long ago"
    tell(shell, failed)
    assert messages == ["Waggle could not switch to tiny: Hugging Face cannot be reached."]
    shell.window.show_page("models")
    tell(shell, replace(failed, at=5001.0))
    assert len(messages) == 1


@NO_SCREEN
@pytest.mark.parametrize("notify", [True, False])
def test_a_warning_that_nobody_sees_is_a_notification_only_for_who_wants_such(
    shell: Controller, monkeypatch: pytest.MonkeyPatch, notify: bool
) -> None:
    messages: list[str] = []
    monkeypatch.setattr(
        TrayIcon, "notify", lambda _tray, _title, words: messages.append(words)
    )  # no test reads a system's notifications
    shell.settings_store.set({"window.notify_problems": notify})
    shell.window.hide()
    tell(shell, NO_MODEL)
    assert len(messages) == notify


@NO_SCREEN
def test_a_tray_in_other_words_takes_the_place_of_the_one_before_and_of_its_menu(shell: Controller, qapp: QApplication) -> None:
    before = shell.tray
    menu = before.menu
    shell.settings_store.set({"window.language": "de"})
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not shiboken6.isValid(before)
    assert not shiboken6.isValid(menu)
    assert visible_actions(shell.tray)[-1] == "Beenden"


@NO_SCREEN
def test_a_maximised_window_stays_maximised(shell: Controller, qtbot: QtBot) -> None:
    shell.window.setGeometry(40, 40, 1040, 700)
    shell.window.showMaximized()
    shell.settings_store.set({"window.text_percent": 115})
    assert shell.window.isMaximized()
    assert shell.window.normalGeometry().size().toTuple() == (1040, 700)
    shell.window.showMinimized()
    qtbot.waitUntil(shell.window.isMinimized)
    shell.raise_window()
    assert (shell.window.isMinimized(), shell.window.isMaximized()) == (False, True)


@NO_SCREEN
def test_whoever_changes_the_size_of_words_stays_at_that_row(shell: Controller, qtbot: QtBot) -> None:
    def row_state() -> tuple[bool, float]:
        """Whether the row's control has the focus and is visible, and the scroll position of the page."""
        page = shell.window.pages["settings"]
        assert isinstance(page, SettingsPage)
        (row,) = (setting_row for setting_row in page._rows() if setting_row.key == "window.text_percent")
        bar = page._area.verticalScrollBar()
        return row.has_control_focus and not row._control.visibleRegion().isEmpty(), bar.value() / bar.maximum()

    shell.window.resize(*SMALLEST)
    shell.window.show_page("settings", "window.text_percent")
    page = shell.window.pages["settings"]
    assert isinstance(page, SettingsPage)
    bar = page._area.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    bar.setValue(bar.maximum() // 2)
    assert row_state()[0]
    before = row_state()[1]
    assert before > 0.1
    shell.settings_store.set({"window.text_percent": 150})
    is_at_row, position = row_state()
    assert is_at_row
    assert position == pytest.approx(before, abs=0.2)  # larger rows: as far as this one has to be moved into view
    shell.window.pages["settings"]._search.setText("words")  # type: ignore[attr-defined]
    shell.settings_store.set({"window.language": "de"})
    assert shell.window.pages["settings"]._search.text() == "words"  # type: ignore[attr-defined]


@NO_SCREEN
def test_a_self_test_goes_on_in_other_words(shell: Controller, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; print('begun', flush=True); sys.stdin.read(1); print('played')"
    monkeypatch.setattr(paths, "module_command", lambda name: [sys.executable, "-c", script])
    shell.window.show_page("help")
    help_page = shell.window.pages["help"]
    assert isinstance(help_page, HelpPage)
    help_page.self_test.ask()
    qtbot.waitUntil(lambda: "begun" in help_page.self_test.output, timeout=20_000)
    shell.window.show_page("settings")
    shell.settings_store.set({"window.language": "de"})
    renewed = shell.window.pages["help"]
    assert isinstance(renewed, HelpPage)
    assert renewed.self_test.busy
    assert "dauert etwa" in renewed.self_test._says.text()
    with qtbot.waitSignal(renewed.self_test.done, timeout=20_000):
        renewed.self_test._program.process.write(b"\n")
    assert renewed.self_test.output.split() == ["begun", "played"]


def test_a_download_goes_on_in_other_words(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    script = "import sys; print('[1, 4]', flush=True); sys.stdin.read(1); print('[2, 4]', flush=True); sys.stdin.read(1)"
    pack = cuda_download.shipped_pack()
    before, after = (CudaCard(theme, pack, tmp_path / "cuda", [sys.executable, "-c", script]) for _ in range(2))
    before.act.click()
    qtbot.waitUntil(lambda: before._bar.value() == 250, timeout=20_000)
    after.take_over(before)
    shiboken6.delete(before)
    assert after._bar.value() == 250
    after.program.process.write(b"\n")
    qtbot.waitUntil(lambda: after._bar.value() == 500, timeout=20_000)
    after.stop()
    shiboken6.delete(after)


@NO_SCREEN
@pytest.mark.parametrize(("platform", "raised"), [("linux", True), ("win32", True), ("darwin", False)])
def test_a_press_on_the_tray_raises_the_window_where_it_opens_no_menu(
    shell: Controller, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, platform: str, raised: bool
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    shell.window.hide()
    shell.tray.icon.activated.emit(QSystemTrayIcon.ActivationReason.Trigger)
    assert shell.window.isVisible() == raised


@NO_SCREEN
@pytest.mark.parametrize(("platform", "raised"), [("linux", False), ("darwin", True)])
def test_the_dock_brings_a_closed_window_back(
    shell: Controller, qapp: QApplication, monkeypatch: pytest.MonkeyPatch, platform: str, raised: bool
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    shell.window.hide()
    qapp.applicationStateChanged.emit(Qt.ApplicationState.ApplicationInactive)
    assert not shell.window.isVisible()
    qapp.applicationStateChanged.emit(Qt.ApplicationState.ApplicationActive)
    assert shell.window.isVisible() == raised


@NO_SCREEN
def test_the_end_of_a_session_is_no_end_until_the_system_says_so_and_leaves_the_engine_its_time(
    theme: Theme, qapp: Application, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program can still cancel the end of a session, and the system may ask more than once."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(waggle.__file__).parents[1]}{os.pathsep}{FAKE.parents[1]}")
    engine, received = EngineProcess(lambda: [sys.executable, str(FAKE), "well"]), list[AnyEvent]()
    engine.event_received.connect(received.append)
    shell = Controller(theme, StateStore(), engine, SettingsStore(None), Home(tmp_path))
    qapp.leave_wanted.connect(shell.leave_with_system)
    shell.begin("home")
    shell.start()
    qtbot.waitUntil(lambda: any(isinstance(event, events.Ready) for event in received), timeout=SOON_MS)
    qapp.commitDataRequest.emit(None)
    assert not shell.window.leaving
    assert window_state.read(tmp_path / "window.json").geometry
    with qtbot.waitSignal(shell.finished, timeout=SOON_MS):
        for _ in range(2):
            QApplication.sendEvent(qapp, QEvent(QEvent.Type.Quit))
    assert isinstance(received[-1], events.EngineStopped)
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)
