"""A recorded run in place of an engine."""

from pathlib import Path

import pytest
import shiboken6
from pytestqt.qtbot import QtBot

from gui.pages.live.test_page import show_all_answers
from gui.recorded import Run
from waggle.cli import main
from waggle.core import paths
from waggle.core.errors import WaggleError
from waggle.gui.application import main as app
from waggle.gui.application.controller import Controller
from waggle.gui.application.main import Arguments, run
from waggle.gui.application.main_window import MainWindow
from waggle.gui.engine_client.replay import Replay
from waggle.gui.i18n import translator
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.live.page import LivePage
from waggle.gui.pages.models.page import ModelsPage
from waggle.gui.pages.playground.page import PlaygroundPage
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets import system_tray
from waggle.gui.widgets.controls.buttons import Button
from waggle.protocol import events, json_lines
from waggle.protocol.commands import Pause, QueryHistory, Resume
from waggle.protocol.state import AnyEvent
from waggle.protocol.text.status_text import sentence


def collect(replay: Replay) -> list[AnyEvent]:
    received: list[AnyEvent] = []
    replay.event_received.connect(received.append)
    return received


def test_unknown_lines_are_skipped_and_counted(tmp_path: Path, qtbot: QtBot) -> None:
    path = tmp_path / "run.jsonl"
    lines = [b'{"type":"FromTheFuture","seq":1}\n', b"not json\n", json_lines.line(events.TrafficMeasured(up=1, down=2)), b"{}\n"]
    path.write_bytes(b"".join(lines))
    replay = Replay(path)
    received = collect(replay)
    with qtbot.waitSignal(replay.ended) as ended:
        replay.play_all()
    assert ended.args == [3]
    assert received == [events.TrafficMeasured(up=1, down=2)]


def test_a_picture_leaves_out_the_end(tmp_path: Path, qtbot: QtBot) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(
        json_lines.line(events.PhaseChanged(phase="contributing", round=1)) + json_lines.line(events.EngineStopped(round=1))
    )
    replay = Replay(path)
    received = collect(replay)
    replay.play_all()
    assert [type(event) for event in received] == [events.PhaseChanged]


def test_events_come_in_their_own_rhythm(tmp_path: Path, qtbot: QtBot) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(json_lines.line(events.TrafficMeasured(up=n, down=0, at=1000.0 + n)) for n in range(4)))
    now = [0.0]
    replay = Replay(path, speed=2.0, clock=lambda: now[0])
    received = collect(replay)
    replay.start()
    qtbot.waitUntil(lambda: len(received) == 1)
    now[0] = 0.6
    qtbot.waitUntil(lambda: len(received) == 2)
    now[0] = 60.0
    with qtbot.waitSignal(replay.ended):
        pass
    assert len(received) == 4


def test_a_replay_can_be_held(tmp_path: Path, qtbot: QtBot) -> None:
    replay = Replay(Run(rounds=3).write(tmp_path / "run.jsonl"), speed=1.0)
    received = collect(replay)
    replay.start()
    qtbot.waitUntil(lambda: bool(received))
    assert replay.send(Pause(id="a"))
    assert isinstance(received[-1], events.PhaseChanged)
    assert received[-1].phase == "paused"
    count = len(received)
    qtbot.wait(200)
    assert len(received) == count
    assert replay.send(Resume(id="b"))
    assert not replay.send(QueryHistory(id="c"))
    replay.stop()


NO_SCREEN = pytest.mark.qt_log_ignore("systemTrayWindowChanged")  # the platform without a screen says so


def offered(window: MainWindow) -> list[str]:
    return [button.text() for button in window.pages.of(HomePage).hero._buttons.findChildren(Button) if button.isVisible()]


@NO_SCREEN
def test_a_recorded_run_says_that_it_has_ended_and_can_be_played_again(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    replay = Replay(Run(rounds=3).write(tmp_path / "run.jsonl"), speed=1e9)
    shell = Controller(theme, StateStore(), replay, SettingsStore(None))
    shell.begin("home")
    for begin in (shell.start, lambda: shell.window.pages.of(HomePage).hero._main.click()):
        with qtbot.waitSignal(replay.ended, timeout=20_000):
            begin()
            assert shell.window.windowTitle() == "Waggle: Replay of a recorded run"
            assert "Play again" not in offered(shell.window)
        assert shell.window.windowTitle() == "Waggle: Replay of a recorded run: it has ended"
        assert offered(shell.window) == ["Play again"]
    shell._rebuild_window()  # as for another language
    assert offered(shell.window) == ["Play again"]
    shell.window.show_replay(example=True, over=True)
    assert shell.window.windowTitle() == "Waggle: Example, recorded: it has ended"
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


@NO_SCREEN
def test_the_key_for_pausing_does_not_begin_a_recorded_run_anew_before_it_has_ended(
    theme: Theme, qtbot: QtBot, tmp_path: Path
) -> None:
    replay = Replay(Run(rounds=3).write(tmp_path / "run.jsonl"), speed=1e-9)
    shell = Controller(theme, StateStore(), replay, SettingsStore(None))
    shell.begin("home")
    window = shell.window
    with qtbot.waitSignal(replay.event_received):
        shell.start()
    begun = shell._store.state
    assert (begun.phase, sentence(begun).action) == ("preparing", "none")
    window._pause_or_resume()
    assert (shell.window, shell._store.state) == (window, begun)
    shiboken6.delete(shell)
    shiboken6.delete(window)


@NO_SCREEN
def test_a_recorded_run_that_is_closed_has_ended_also_where_there_is_a_tray(
    theme: Theme, qtbot: QtBot, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_tray, "available", lambda: True)
    shell = Controller(theme, StateStore(), Replay(recording), SettingsStore(None))
    shell.begin("home")
    with qtbot.waitSignal(shell.finished, timeout=1000):
        shell.window.close()
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


@NO_SCREEN
def test_a_recorded_run_is_shown_as_its_person_wants_windows_to_be_and_changes_no_file(
    tmp_path: Path, qtbot: QtBot, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[window]\nlanguage = "de"\nless_motion = "on"\nclose_to_tray = false\n[computer]\nthreads = 3\n')
    before, controllers = file.read_bytes(), list[Controller]()
    monkeypatch.setattr(app, "_run_event_loop", lambda shell, _arguments: controllers.append(shell) or 0)
    assert run(Arguments(home=tmp_path, replay=recording)) == 0
    (shell,) = controllers
    assert shell._theme.less_motion == "on"
    assert not shell.settings_store.settings.window.close_to_tray
    assert shell.settings_store.value("computer.threads") == 3, "the page of settings says what is chosen"
    shell.settings_store.set({"window.text_percent": 115})
    assert translator.translate("Copied") == "Kopiert", "the language is still the person's"
    assert file.read_bytes() == before
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


@NO_SCREEN
def test_an_example_is_opened_from_the_same_home(tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(app.QProcess, "startDetached", lambda program, rest: started.append([program, *rest]))
    app.watch_example(tmp_path)
    app.watch_example(None)
    requested, by_default = (main.parse(command[len(paths.window_command()) :]) for command in started)
    assert (requested.home, requested.replay) == (tmp_path, paths.example())
    assert (by_default.home, by_default.replay) == (None, paths.example())


@NO_SCREEN
def test_a_press_on_live_asks_for_an_example(theme: Theme, qtbot: QtBot, recording: Path) -> None:
    shell = Controller(theme, StateStore(), Replay(recording), SettingsStore(None))
    shell.begin("live")
    live = shell.window.pages["live"]
    assert isinstance(live, LivePage)
    with qtbot.waitSignal(shell.example_wanted, timeout=1000):
        live.nothing._example.click()
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


@NO_SCREEN
def test_what_was_frozen_is_held_in_other_words_and_not_when_it_is_played_again(
    theme: Theme, qtbot: QtBot, tmp_path: Path
) -> None:
    shell = Controller(theme, StateStore(), Replay(Run(rounds=3).write(tmp_path / "run.jsonl")), SettingsStore(None))
    shell._source.play_all()
    shell.begin("live")
    shell._store.flush()
    show_all_answers(shell.window)
    live_in(shell.window).answers.freeze.setChecked(True)
    shell._rebuild_window()
    assert live_in(shell.window).answers.freeze.isChecked()
    assert live_in(shell.window).answers.pace.cards
    shell._play_again()
    assert not live_in(shell.window).answers.freeze.isChecked()
    assert not live_in(shell.window).answers.pace.cards
    shell._source.stop()
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


def live_in(window: MainWindow) -> LivePage:
    page = window.pages["live"]
    assert isinstance(page, LivePage)
    return page


@NO_SCREEN
def test_a_recorded_run_has_no_model_to_ask(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    shell = Controller(theme, StateStore(), Replay(Run(rounds=3).write(tmp_path / "run.jsonl")), SettingsStore(None))
    shell._source.play_all()
    shell.begin("swarms")
    words = "This is a recorded run: there is no model to ask."
    shell.window.show_page("models")
    models = shell.window.pages.of(ModelsPage)
    assert (models._waiting.text(), models._field._act.isEnabled()) == (words, False)
    shell.window.show_page("playground")
    playground = shell.window.pages.of(PlaygroundPage)
    assert (playground.ask._about.words(), playground.ask._go.isEnabled()) == (words, False)
    playground.which.choose(1)
    assert (playground.chat._empty.text(), playground.chat.button.isEnabled()) == (words, False)
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read"), (b"", "no recorded run"), (b"\x00\xff {}\n" * 9, "no recorded run")]
)
def test_what_is_no_recording_is_refused_before_a_window_opens(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "run").write_bytes(content)
    with pytest.raises(WaggleError, match=message):
        run(Arguments(replay=tmp_path / "run"))
    with pytest.raises(WaggleError, match="cannot be read"):
        run(Arguments(replay=tmp_path, screenshot=tmp_path / "page.png"))


def test_a_picture_that_cannot_be_taken_says_why(tmp_path: Path, recording: Path) -> None:
    with pytest.raises(WaggleError, match=r"missing.page\.png cannot be written"):
        run(Arguments(replay=recording, screenshot=tmp_path / "missing/page.png"))
    with pytest.raises(WaggleError, match="of a recorded run"):
        run(Arguments(screenshot=tmp_path / "page.png"))


@pytest.mark.parametrize("page", ["home", "live", "progress", "peers"])
def test_a_page_is_taken_as_a_picture(tmp_path: Path, recording: Path, qtbot: QtBot, page: str) -> None:
    picture = tmp_path / "page.png"
    assert run(Arguments(replay=recording, screenshot=picture, page=page, theme="dark")) == 0
    assert picture.stat().st_size > 20_000
