"""The page Help runs other commands of Waggle in processes of their own, only when a person presses a button."""

import json
import logging
import sys
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QPoint, QProcess, Qt
from PySide6.QtGui import QHelpEvent, QTextDocument
from PySide6.QtWidgets import QApplication, QLabel, QToolTip

import waggle
from gui.recorded import ready
from waggle.core import paths
from waggle.gui.i18n import translator
from waggle.gui.pages.context import EngineHost, PageContext
from waggle.gui.pages.help.page import WORDS, HelpPage, LogCard
from waggle.gui.state.event_log import MOST_ENTRIES, EventLog, EventLogHandler, EventLogModel
from waggle.protocol.events import EngineFailed, EngineGone, EngineStopped, Preparing, ReachChanged, Warned
from waggle.protocol.events_swarms import KnownSwarms, SwarmDetails
from waggle.protocol.state import State

KNOWN = KnownSwarms(swarms=(SwarmDetails(charter="ab" * 32, name="Anna's home", specialties=(), known=True),), offers=())


def test_whether_there_is_a_newer_version_is_asked_only_when_pressed_and_the_answer_is_shown(theme, qtbot, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))
    page = HelpPage(PageContext(theme))
    qtbot.addWidget(page)
    check = page.update_asked
    assert not check.output
    with qtbot.waitSignal(check.done, timeout=30_000):
        check.ask()
    assert "without a key for updates" in check.output
    page.close()


def test_what_it_takes_is_said_of_this_computer(theme, qtbot):
    page = HelpPage(PageContext(theme))
    qtbot.addWidget(page)
    page.show_state(State(), 0.0)
    assert page._slow.text() == "It uses only part of the processor. Choose Quiet, Balanced or Full on Home."
    page.show_state(State(ready=ready(cores=2, threads=1)), 0.0)
    assert page._slow.text() == "It uses 1 of 2 cores now. Choose Quiet, Balanced or Full on Home."


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of a size
def test_the_keyboard_waits_in_the_answer_while_its_button_rests(theme, qtbot, monkeypatch):
    monkeypatch.setattr(paths, "module_command", lambda _: [sys.executable, "-c", "print('Round 1.')"])
    page = HelpPage(PageContext(theme))
    qtbot.addWidget(page)
    page.show()
    self_test = page.self_test
    self_test._run.setFocus()
    with qtbot.waitSignal(self_test.done, timeout=30_000):
        qtbot.keyClick(self_test._run, Qt.Key.Key_Return)
        assert page.focusWidget() is self_test._output
    assert page.focusWidget() is self_test._run


def test_the_words_that_are_no_daily_ones_are_explained_below_answers_and_checks(theme, qtbot):
    translator.use("de")
    page = HelpPage(PageContext(theme))
    qtbot.addWidget(page)
    labels = [label.text() for label in page.findChildren(QLabel)]
    places = [labels.index(title) for title in ("Was macht Waggle?", "Gibt es ein neueres Waggle?", "Was die Wörter bedeuten")]
    assert places == sorted(places)
    assert "<answer>…</answer>: Nur hierin sucht Waggle die Antwort." in labels
    assert len(WORDS) == 9


def test_one_peer_is_no_peers_in_the_log():
    journal = EventLog()
    journal.take(ReachChanged(reach="connected", peers=1))
    journal.take(ReachChanged(reach="connected", peers=2))
    assert [entry.words for entry in journal.entries] == ["Reach: connected, 1 peer", "Reach: connected, 2 peers"]


def test_whether_there_is_a_newer_version_is_said_in_the_persons_language(theme, qtbot, monkeypatch):
    newest = {"id": "Waggle %1 is the newest.", "values": ["0.9.1"]}
    newer = {"id": "Waggle %1 of %2 is newer than this one (%3).", "values": ["1.0.0", "2027-01-02", "0.9.1"]}
    says = "\n".join(f"print({json.dumps(line)!r})" for line in (newest, newer))
    monkeypatch.setattr(paths, "module_command", lambda _: [sys.executable, "-c", says])
    translator.use("de")
    try:
        page = HelpPage(PageContext(theme))
        qtbot.addWidget(page)
        with qtbot.waitSignal(page.update_asked.done, timeout=30_000):
            page.update_asked.ask()
    finally:
        translator.use("en")
    assert page.update_asked.output.splitlines() == [
        "Waggle 0.9.1 ist das neueste.", "Waggle 1.0.0 vom 2027-01-02 ist neuer als dieses hier (0.9.1)."
    ]  # fmt: skip


def test_a_fault_of_the_window_reaches_the_report_whatever_is_looked_for_in_the_log(theme, qtbot, caplog):
    journal, log = EventLog(), logging.getLogger("waggle.gui.somewhere")
    notes = EventLogHandler(journal)
    logging.getLogger().addHandler(notes)
    page = HelpPage(PageContext(theme, event_log=journal))
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
    qtbot.waitUntil(lambda: len(journal.entries) == 2, timeout=20_000)
    logging.getLogger().removeHandler(notes)
    caplog.clear()


def test_what_was_asked_goes_with_the_window(theme, qtbot, qapp, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))
    page = HelpPage(PageContext(theme))
    qtbot.addWidget(page)
    self_test = page.self_test
    self_test.ask()
    assert self_test._program.process.waitForStarted()
    qapp.aboutToQuit.emit()
    assert self_test._program.process.state() == QProcess.ProcessState.NotRunning


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of the tooltip
def test_a_line_of_the_log_that_is_cut_can_be_read_whole(theme, qtbot, qapp):
    journal = EventLog()
    journal.take(EngineFailed(title="The engine ran out of memory.", advice="Choose a smaller model. " * 20, at=1.0))
    journal.take(EngineStopped(round=7, at=2.0))
    page = HelpPage(PageContext(theme, event_log=journal))
    qtbot.addWidget(page)
    page.show()
    page.show_state(State(), 0.0)
    view = page._log._view
    place = view.visualRect(page._log.model.index(1, 0))
    assert view.fontMetrics().horizontalAdvance(journal.lines()[1]) > place.width(), "it is cut"
    pointed = QPoint(20, place.center().y())
    qapp.sendEvent(view.viewport(), QHelpEvent(QEvent.Type.ToolTip, pointed, view.viewport().mapToGlobal(pointed)))
    document = QTextDocument()
    document.setHtml(QToolTip.text())
    assert document.toPlainText() == journal.lines()[1]
    tooltip = next(each for each in QApplication.allWidgets() if each.objectName() == "qtooltip_label")
    assert tooltip.width() < 1000, "it is broken into lines"
    QToolTip.hideText()


@pytest.mark.parametrize("host", ["anna@nas-kiel", "nas-kiel"])
def test_a_report_and_a_copied_log_name_neither_swarm_nor_node_nor_the_computer_behind_ssh(theme, qtbot, host):
    journal, here = EventLog(), ready(swarm="Anna's\tclass", name="Brisk Otter", at=1.0)
    events = (
        Warned(title=f"{here.swarm} is away.", advice="Brisk Otter asks again.", at=2.0),
        EngineGone(code=255, host=host, restarts=1, at=3.0),
    )
    for event in events:
        journal.take(event)
    journal.add_stderr(f"{host}: Permission denied (publickey).")
    page = HelpPage(PageContext(theme, event_log=journal, engine=EngineHost(name=host)))
    qtbot.addWidget(page)
    reports = []
    for state in (
        State(phase="contributing", ready=here, round=7),
        State(phase="problem", gone=events[1], ready=here),
        State(phase="preparing", preparing=Preparing(part="Going to Anna's home", done=0, parts=1), swarms=KNOWN),
        State(phase="problem", problem=EngineFailed(title=f"There is no Waggle on {host}.", advice="nas-kiel: not found")),
    ):
        page.show_state(state, 0.0)
        reports.append(page._report._text.toPlainText())
    page.show_state(State(ready=here), 0.0)
    page._log._copy.click()
    copied = QApplication.clipboard().text()
    assert "Training in the swarm, round 8." in reports[0]
    assert "The connection to HOST broke." in reports[1]
    assert "Going to a swarm." in reports[2]
    assert "There is no Waggle on HOST." in reports[3]
    assert "Warning: the swarm is away. this node asks again." in copied
    assert "Anna's home" not in reports[2]
    for words in (*reports[:2], copied):
        assert not [name for name in ("class", "Otter", "anna", "nas-kiel") if name in words]
    assert not [name for name in ("anna", "nas-kiel") if name in reports[3]]


@pytest.mark.qt_log_ignore("propagateSizeHints")
def test_a_report_stays_while_it_is_read(theme, qtbot):
    journal = EventLog()
    for number in range(60):
        journal.add_stderr(f"line {number}")
    page, state = HelpPage(PageContext(theme, event_log=journal)), State(phase="contributing")
    qtbot.addWidget(page)
    page.resize(900, 640)
    page.show()
    page.show_state(state, 0.0)
    read, words = page._report._text, page._report._text.toPlainText()
    bar = read.verticalScrollBar()
    bar.setValue(bar.maximum())
    at = bar.value()
    assert at > 0
    page.show_state(replace(state, round=1), 0.0)
    assert (read.toPlainText(), bar.value()) == (words, at)
    bar.setValue(0)
    read.selectAll()
    page.show_state(replace(state, round=2), 0.0)
    assert read.textCursor().selectedText()
    page.show_state(replace(state, phase="problem", round=2), 0.0)
    assert read.toPlainText() != words, "a failure is in every report"
    page.show_state(replace(state, phase="problem", round=3), 0.0)
    assert "3" in read.toPlainText()


@pytest.mark.qt_log_ignore("propagateSizeHints")
def test_who_reads_the_log_keeps_the_place_while_lines_come(theme, qtbot):
    journal = EventLog()
    for number in range(200):
        journal.add_stderr(f"line {number}")
    log = LogCard(theme, journal)
    qtbot.addWidget(log)
    log.resize(900, 300)
    log.show()
    view, model = log._view, log.model
    view.setCurrentIndex(model.index(100, 0))
    view.scrollTo(model.index(90, 0), view.ScrollHint.PositionAtTop)
    qtbot.waitUntil(lambda: view.indexAt(QPoint(4, 4)).row() == 90)
    top = view.indexAt(QPoint(4, 4)).data()
    journal.add_stderr("newer")
    journal.add_stderr("newest")
    log.catch_up()
    qtbot.waitUntil(lambda: view.indexAt(QPoint(4, 4)).row() == 92)
    assert view.indexAt(QPoint(4, 4)).data() == top
    assert view.currentIndex().row() == 102
    assert model.index(0, 0).data().endswith("newest")
    view.scrollToTop()
    journal.add_stderr("newest of all")
    log.catch_up()
    qtbot.wait(50)
    assert view.indexAt(QPoint(4, 4)).row() == 0


def test_a_log_is_bounded_and_holds_what_its_journal_holds(theme, qtbot):
    journal = EventLog()
    lines = EventLogModel(journal)
    journal.add_stderr("first")
    for _ in range(MOST_ENTRIES):
        journal.add_stderr("line")
    lines.catch_up()
    assert lines.rowCount() == MOST_ENTRIES
    assert "first" not in lines.text()
    lines.find("l7")
    journal.add_stderr("l6")
    journal.add_stderr("l7")
    lines.catch_up()
    assert [line[-2:] for line in lines.text().splitlines()] == ["l7"]


@pytest.mark.parametrize("then", [lambda log: log._journal.add_stderr("newer"), lambda log: log.search.setText("line")])
def test_what_was_copied_of_the_log_is_said_only_while_it_is_what_stands_there(theme, qtbot, then):
    journal = EventLog()
    journal.add_stderr("line")
    log = LogCard(theme, journal)
    qtbot.addWidget(log)
    log._copy.click()
    log.catch_up()
    assert log._copy.text() == "Copied"
    then(log)
    log.catch_up()
    assert log._copy.text() == "Copy"
