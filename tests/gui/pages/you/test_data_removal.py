"""Removing data: all is listed, the identity stays unless it is ticked, a confirmation is needed, and the result is shown."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

import system_folders
import waggle
from gui.recorded import Run
from waggle.core import paths
from waggle.core.stored_data import KINDS, DataKind, FailedRemoval, Removal, StoredFiles
from waggle.gui.application.controller import Controller
from waggle.gui.application.main_window import MainWindow
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.i18n import translator
from waggle.gui.pages.context import EngineHost, PageContext
from waggle.gui.pages.you.data_removal import NOTES, TITLES, DataRemovalView, RemovalScreen, chosen_words, done_words
from waggle.gui.pages.you.page import YouPage
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button

FAKE = Path(__file__).parents[2] / "fake_engine.py"
BELONGINGS = (
    StoredFiles(kind="identity", files=(Path("identity.key"),), size=68),
    StoredFiles(kind="checkpoints", files=(Path("a"), Path("b")), size=26_100_000),
    StoredFiles(kind="log", files=(Path("c"),), size=932),
)


def test_every_kind_has_its_words() -> None:
    assert set(TITLES) == set(NOTES) == set(KINDS)


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (frozenset(), "Nothing is chosen; everything stays."),
        (frozenset({"log"}), "1 file, 932 bytes"),
        (frozenset({"log", "checkpoints"}), "3 files, 26.1 MB"),
        (frozenset({"cache"}), "Nothing is chosen; everything stays."),
    ],
)
def test_how_much_is_chosen_is_said(kinds: frozenset[DataKind], words: str) -> None:
    assert chosen_words(BELONGINGS, kinds) == words


def test_what_was_done_is_said() -> None:
    assert done_words(Removal(kind="log", files=1, size=932)) == "Logs: 1 file removed, 932 bytes"
    assert done_words(Removal(kind="history", files=3, size=45_000)) == "History: 3 files removed, 45 kB"


def test_who_one_is_stays_unless_chosen_and_a_second_word_is_needed(theme: Theme, qtbot: QtBot) -> None:
    view, choices = DataRemovalView(theme), list[object]()
    qtbot.addWidget(view)
    view.confirmed.connect(choices.append)
    view.show_stored(BELONGINGS, no_backup="")
    assert view.chosen_kinds() == {"checkpoints", "log"}
    view._go.click()
    assert not choices
    assert view._warning.text() == "They are removed for good. Training stops first, then Waggle closes."
    view._keeps[0].box.setChecked(True)
    assert view._warning.text() == "Your key is chosen too: without a backup nobody can be you again."
    view._go.click()
    assert not choices, "another choice needs another word"
    view._cancel.click()
    view._keeps[0].box.setChecked(False)
    view._go.click()
    view._go.click()
    assert choices == [frozenset({"checkpoints", "log"})]


def test_nothing_chosen_cannot_be_removed(theme: Theme, qtbot: QtBot) -> None:
    view = DataRemovalView(theme)
    qtbot.addWidget(view)
    view.show_stored(BELONGINGS[:1], no_backup="Training is not running.")
    assert not view._go.isEnabled()
    assert not view._backup.isEnabled()
    assert view._backup.toolTip()


def test_a_file_that_resisted_is_named(theme: Theme, qtbot: QtBot) -> None:
    last = RemovalScreen(theme, Path("/nowhere"), frozenset({"log"}))
    qtbot.addWidget(last)
    last._say(
        (Removal(kind="log", files=0, size=0, spared=(FailedRemoval(path="/x/<b>waggle.log", reason="Permission denied"),)),)
    )
    assert last._title.words() == "1 file could not be removed"
    assert "still here" in last.words()


def test_a_goodbye_that_is_refused_says_so_in_the_persons_language(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = (
        "waggle: Another engine, or a seed, is running for this folder.\n"
        "        Stop it (an engine with `waggle ctl stop`), or use another --home.\n"
    )
    monkeypatch.setattr(
        paths, "module_command", lambda _: [sys.executable, "-c", f"import sys; sys.stderr.write({refusal!r}); sys.exit(1)"]
    )
    last = RemovalScreen(theme, Path("/nowhere"), frozenset({"log"}))
    qtbot.addWidget(last)
    translator.use("de")
    try:
        with qtbot.waitSignal(last.finished, timeout=30_000):
            last.remove()
    finally:
        translator.use("en")
    assert last._title.words() == "Nichts wurde entfernt"
    assert last.words().startswith("Für diesen Ordner läuft schon eine Engine oder ein Seed.")


def test_help_and_you_lead_there_and_a_replay_offers_none(theme: Theme, tmp_path: Path, qtbot: QtBot,
                                                          window_told: Callable[..., MainWindow]) -> None:  # fmt: skip
    (tmp_path / "identity.key").write_bytes(b"x" * 68)
    current = StateStore()
    window = MainWindow(PageContext(theme, store=current, engine=EngineHost(home=paths.Home(tmp_path))))
    qtbot.addWidget(window)
    window.show()
    window.show_page("help")
    next(button for button in window.pages["help"].findChildren(Button) if button.text() == "Say goodbye").click()
    assert window.page == "you"
    assert next(keep.kind for keep in window.pages.of(YouPage)._goodbye._keeps) == "identity"
    window.pages.of(YouPage)._goodbye.done.emit()
    assert window.pages.of(YouPage)._views.currentIndex() == 0
    without = window_told(list(Run(rounds=1).all_events()))
    without.show_page("you")
    assert "Leaving?" not in {label.text() for label in without.pages.of(YouPage).findChildren(QLabel) if label.isVisible()}


@pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support")
def test_the_engine_stops_what_was_chosen_goes_and_nothing_is_written_afterwards(
    theme: Theme, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(waggle.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{root}{os.pathsep}{FAKE.parents[1]}")
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    home = paths.Home(tmp_path / "home").prepare()
    for name in ("identity.key", "settings.toml", "window.json", "logs/waggle.log"):
        (home.root / name).parent.mkdir(exist_ok=True)
        (home.root / name).write_text("")
    source = EngineProcess(lambda: [sys.executable, str(FAKE), "well"])
    shell = Controller(theme, StateStore(), source, SettingsStore(home.settings, send=source.send), home)
    shell.begin("you")
    shell.start()
    finished = list[bool]()
    shell.finished.connect(lambda: finished.append(True))
    qtbot.waitUntil(lambda: source.is_running and shell._store.state.phase == "contributing", timeout=20_000)
    shell.window.requests.data_removal.emit(frozenset({"settings", "log"}))
    assert shell._farewell is not None
    shell.leave()
    assert not finished, "what is being removed is waited for"
    with qtbot.waitSignal(shell._farewell.finished, timeout=30_000):
        pass
    assert not source.is_running
    assert shell._farewell._title.words() == "Goodbye, and thank you"
    shell._farewell._close.click()
    assert finished == [True]
    assert [path.name for path in home.root.iterdir()] == ["identity.key"], "where the window stood is written no more"
    shell.window.hide()
    shell.tray.hide()
