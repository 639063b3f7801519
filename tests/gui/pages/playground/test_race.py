"""The race of Try it goes on while other pages are shown, says how it ended, and ends with the window."""

from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QProcess
from pytestqt.qtbot import QtBot

import waggle
from gui.state.test_race_state import BEGAN, STORY, WON
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.playground.page import PlaygroundPage
from waggle.gui.pages.playground.race import RaceView
from waggle.gui.theme.theme import Theme
from waggle.protocol.state import AnyEvent

Make = Callable[..., MainWindow]


def racing(window: MainWindow) -> RaceView:
    """A race as its process would tell it, while Home is shown."""
    window.show_page("playground", "race")
    view = window.pages.of(PlaygroundPage).race
    view.take(BEGAN)
    window.show_page("home")
    return view


def test_a_race_goes_on_while_one_looks_elsewhere_and_its_end_is_told(
    window_told: Make, written: Sequence[AnyEvent], announcements: list[str]
) -> None:
    window = window_told(written)
    view = racing(window)
    for message in STORY[1:]:
        view.take(message)
    assert view.race.phase == "running"
    view.take(WON)
    view._show_end("")  # the process ends after its last message
    words = "Does sharing help? Sharing won, 16.9% to 2.9%"
    assert window.status._notice.accessibleName() == words
    assert announcements.count(words) == 1
    window.show_page("playground")
    assert view.isVisible(), "as it was left"
    assert view._says.text() == "Sharing won, 16.9% to 2.9%"


def test_where_the_end_is_seen_it_is_only_read_out(
    window_told: Make, written: Sequence[AnyEvent], announcements: list[str]
) -> None:
    window = window_told(written)
    view = racing(window)
    window.show_page("playground", "race")
    for message in (*STORY[1:], WON):
        view.take(message)
    view._show_end("")
    assert announcements[-1] == "Does sharing help? Sharing won, 16.9% to 2.9%"
    assert window.status._notice.isHidden()


def test_a_race_that_fails_elsewhere_is_told_as_a_failure(window_told: Make, written: Sequence[AnyEvent]) -> None:
    window = window_told(written)
    view = racing(window)
    assert view._stopped.isHidden()
    view._show_end("The verifier was gone")
    assert not view._stopped.isHidden()
    assert {box._about.words() for box in view._lanes.values()} == {""}, "no round was played"
    assert window.status._notice.accessibleName() == "Does sharing help? The race stopped by itself"


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
def test_a_real_race_goes_on_unseen_and_in_another_window_and_ends_when_it_is_stopped(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))
    monkeypatch.setattr("waggle.gui.engine_client.line_process.STOP_TIMEOUT_MS", 60_000)  # it runs when nobody else does
    pages = [PlaygroundPage(PageContext(theme)) for _ in range(2)]
    for page in pages:
        qtbot.addWidget(page)
    before, after = pages
    before.show()
    before.show_part("race")
    before.race.start("--nodes", "2", "--seed", "1")
    qtbot.waitUntil(lambda: bool(before.race.race.racers) or before.race.race.phase == "failed", timeout=400_000)
    assert before.race.race.phase == "running", before.race.race.problem
    child = psutil.Process(before.race.process.process.processId())
    family = [child, *child.children(recursive=True)]
    assert len(family) > 1, "the verifier of a race is a process of its own"
    before.show_part("question")
    before.hide()
    played = before.race.race.rounds_played
    qtbot.waitUntil(lambda: before.race.race.rounds_played > played, timeout=400_000)
    after.take_over(before)  # as with another language
    played = after.race.race.rounds_played
    qtbot.waitUntil(lambda: after.race.race.rounds_played > played, timeout=400_000)
    assert before.race.race.rounds_played == played, "one of them listens"
    after.race.stop()
    assert after.race.process.process.state() == QProcess.ProcessState.NotRunning
    assert after.race.race.phase == "stopped"
    assert not psutil.wait_procs(family, timeout=30)[1]
