"""Help asks other doors of Waggle, in processes of their own, and only when a person presses."""

import logging
import threading
from pathlib import Path

from PySide6.QtCore import QProcess

import waggle
from waggle.gui.help_page import HelpPage
from waggle.gui.journal import Journal, Notes
from waggle.protocol.state import State


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


def test_a_fault_of_the_window_reaches_the_report_whatever_is_looked_for_in_the_log(look, qtbot, caplog):
    journal, log = Journal(), logging.getLogger("waggle.gui.somewhere")
    notes = Notes(journal)
    logging.getLogger().addHandler(notes)
    page = HelpPage(look, journal, None)
    qtbot.addWidget(page)
    page.show_state(State(), 0.0)
    page._log.model.find("xyzzy")

    def fail():
        try:
            raise KeyError("disk")
        except KeyError:
            log.exception("fault in the window, token=hf_abcdefghijkl")

    fail()
    page.show_state(State(), 0.0)
    report = page._report._text.toPlainText()
    assert "window  fault in the window" in report
    assert "KeyError: 'disk'" in report
    assert "hf_abcdefghijkl" not in report
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    assert len(journal.entries) == 1, "what another thread says is heard in this one"
    qtbot.waitUntil(lambda: len(journal.entries) == 2, timeout=5000)
    logging.getLogger().removeHandler(notes)
    caplog.clear()


def test_what_was_asked_goes_with_the_window(look, qtbot, qapp, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))
    page = HelpPage(look, Journal(), None)
    qtbot.addWidget(page)
    asked = page.self_test
    asked.ask()
    assert asked._program.process.waitForStarted()
    qapp.aboutToQuit.emit()
    assert asked._program.process.state() == QProcess.ProcessState.NotRunning
