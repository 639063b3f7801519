"""Help asks other doors of Waggle, in processes of their own, and only when a person presses."""

from pathlib import Path

from PySide6.QtCore import QProcess

import waggle
from waggle.gui.help_page import HelpPage
from waggle.gui.journal import Journal


def test_whether_there_is_a_newer_version_is_asked_only_when_pressed_and_the_answer_is_shown(look, qtbot, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))
    page = HelpPage(look, Journal(), None)
    qtbot.addWidget(page)
    asked = page.update_asked
    assert not asked.output
    with qtbot.waitSignal(asked.done, timeout=30_000):
        asked.ask()
    assert "without a key for updates" in asked.output
    page.close()


def test_what_was_asked_goes_with_the_window(look, qtbot, qapp, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))
    page = HelpPage(look, Journal(), None)
    qtbot.addWidget(page)
    asked = page.self_test
    asked.ask()
    assert asked._program.process.waitForStarted()
    qapp.aboutToQuit.emit()
    assert asked._program.process.state() == QProcess.ProcessState.NotRunning
