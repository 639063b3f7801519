"""The page You: totals and days, a calendar to read by keyboard, and an identity that changes only after a confirmation."""

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QTableView
from pytestqt.qtbot import QtBot

from gui.answers import answer, refuse
from gui.recorded import START, ready
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.charts.painted.heat_map import day_words, first_day, level
from waggle.gui.i18n.formatting import whole_day
from waggle.gui.pages.you.page import YouPage
from waggle.gui.pages.you.share_card import SIZE, share_card_figures
from waggle.gui.state.problem_report import report
from waggle.gui.widgets.aha_list import aha_cells
from waggle.gui.widgets.text import ElidedLabel
from waggle.protocol import commands, events
from waggle.protocol.commands import AnyCommand
from waggle.protocol.events_identity import BackupRead, BackupWritten, DailyTotals, Day
from waggle.protocol.state import State

TellWindow = Callable[..., MainWindow]
WORDS = "correct horse battery"
TODAY = datetime.datetime.fromtimestamp(START, datetime.UTC).astimezone().date()
YESTERDAY = TODAY - datetime.timedelta(days=1)
DAYS = DailyTotals(
    days=(Day(date=YESTERDAY.isoformat(), rounds=2, answers=128, right=32, learned=9, seconds=240.0),),
    all=Day(date="2026-01-05", rounds=20, answers=1280, right=320, learned=90, seconds=2400.0),
    used_by=3,
    groups_pulled=41,
    at=START,
)
BEGUN = [ready(), events.PhaseChanged(phase="contributing", round=613, at=START), DAYS]
Page = tuple[MainWindow, YouPage, list[AnyCommand]]


@pytest.fixture
def page(window_told: TellWindow) -> Page:
    window = window_told(BEGUN)
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    window.show_page("you")
    return window, window.pages.of(YouPage), sent


def tell(window: MainWindow, event: object) -> None:
    window._store.take(event)  # type: ignore[arg-type]
    window._store.flush()


def test_totals_and_who_took_groups_are_said(page: Page) -> None:
    _window, you, sent = page
    assert [type(command) for command in sent] == [commands.QueryDays, commands.QueryHistory]
    assert you._line.words() == "You trained on 1 day and shared with 3 peers"
    assert [figure._value.text() for figure in you._figures] == ["1,280", "320", "90", "3"]
    # whether they learned from them, nobody here knows
    assert [label.text() for label in you._figures[3].findChildren(QLabel)][:2] == ["Learned from you", "3"]


def test_rounds_are_counted_once_though_the_clock_was_set_back(page: Page) -> None:
    """Rounds that the engine's days include already have later times than the days themselves."""
    window, you, _ = page
    ahead = [events.RoundSummary(round=n, at=START + 7200.0, reward=0.4, solved=0.5, seconds=2.0, completions=64) for n in (1, 2)]
    for summary in ahead:
        tell(window, events.RoundCompleted(summary=summary))
    assert you._figures[0]._value.text() == "1,408"
    tell(window, replace(DAYS, all=replace(DAYS.all, answers=1408), at=START + 10.0))
    assert you._figures[0]._value.text() == "1,408"
    tell(window, events.RoundCompleted(summary=replace(ahead[1], round=3, at=START + 12.0)))
    assert you._figures[0]._value.text() == "1,472"


def test_a_beginner_sees_a_quarter_beside_the_energy_and_later_a_year_above_it(page: Page) -> None:
    window, you, _ = page
    for back, recent in ((7 * 12, True), (7 * 13, False)):
        first = Day(date=(TODAY - datetime.timedelta(days=back)).isoformat(), rounds=2, answers=128)
        tell(window, replace(DAYS, days=(first, *DAYS.days)))
        QApplication.processEvents()
        assert you._period.text() == ("Recent weeks" if recent else "The last year")
        assert (you._energy.y() == you._calendar_card.y()) == recent
        assert you._calendar_card.height() < you._map.height() + 120
        assert you._map.place_of(TODAY).right() <= you._map.width()
        you._as_table.click()
        QApplication.processEvents()
        assert (you._calendar.isVisible(), you._table.isVisible()) == (False, True)
        assert you._table.height() > you._table.rowHeight(0) * 3
        assert you._energy.y() > you._calendar_card.y()
        you._as_table.click()


def test_the_calendar_is_read_by_keyboard_and_as_a_table(page: Page, qtbot: QtBot) -> None:
    _, you, _ = page
    qtbot.keyClick(you._map, Qt.Key.Key_Up)
    qtbot.keyClick(you._map, Qt.Key.Key_Up)
    assert you._day.words() == f"{day_words(YESTERDAY, DAYS.days[0])}"
    assert you._map.accessibleDescription() == you._day.words()
    you._as_table.click()
    assert [you._rows.index(0, column).data() for column in range(4)] == [whole_day(YESTERDAY), "128", "32", "2"]
    assert you._rows.index(0, 0).data(Qt.ItemDataRole.ToolTipRole) == whole_day(YESTERDAY), "in a narrow column it is cut"


def test_a_year_is_read_as_a_table_while_rounds_end(page: Page, qapp: QApplication, qtbot: QtBot) -> None:
    window, you, _ = page
    days = [TODAY - datetime.timedelta(days=back) for back in range(300, 0, -1)]
    tell(window, replace(DAYS, days=tuple(Day(date=day.isoformat(), rounds=2, answers=128) for day in days)))
    you._as_table.click()
    (table,) = you.findChildren(QTableView)
    qapp.processEvents()
    table.selectRow(99)
    table.scrollTo(you._rows.index(99, 0), table.ScrollHint.PositionAtTop)
    read = whole_day(days[-100])
    for number in (614, 615):
        summary = events.RoundSummary(round=number, at=START + number, reward=0.4, solved=0.3, seconds=2.0)
        tell(window, events.RoundCompleted(summary=summary))
        assert you._rows.index(0, 0).data() == whole_day(TODAY)
        assert [index.data() for index in table.selectionModel().selectedRows()] == [read]
        qtbot.waitUntil(lambda: table.indexAt(QPoint(4, 4)).data() == read)
    assert you._rows.index(0, 3).data() == "2"


def test_the_calendar_shows_its_focus_and_is_heard(page: Page, qtbot: QtBot, announcements: list[str]) -> None:
    window, you, _ = page
    window.activateWindow()
    you._map.clearFocus()
    before = you._map.grab().toImage()
    you._map.setFocus()
    qtbot.waitUntil(you._map.hasFocus)
    assert you._map.grab().toImage() != before
    qtbot.keyClick(you._map, Qt.Key.Key_Up)
    assert announcements[-1] == you._day.words()


def test_a_year_begins_on_a_monday_and_today_is_in_its_last_week() -> None:
    for day in range(20):
        today = datetime.date(2026, 3, 1) + datetime.timedelta(days=day)
        assert first_day(today).weekday() == 0
        assert 52 * 7 <= (today - first_day(today)).days < 53 * 7


def test_any_answer_at_all_is_seen_and_only_the_most_is_strongest() -> None:
    assert [level(answers, 10_000) for answers in (0, 1, 40, 10_000)] == [0, 1, 2, 4]


def test_an_aha_says_who_was_right_first() -> None:
    learned = events.Aha(round=41, at=0.0, specialty="Logic", origin="p", name="Brisk Otter")
    assert aha_cells(learned) == ("Logic", "round 42, Brisk Otter was right first")
    assert aha_cells(events.Aha(round=3, at=0.0, specialty="Logic"))[1] == "round 4, found by itself"


def test_the_specialty_of_an_aha_is_whole_beside_a_long_name(page: Page) -> None:
    window, you, _ = page
    window.resize(1024, 600)
    name = "Immeasurably Thoughtful Hippopotamus"
    aha = events.Aha(round=41, at=0.0, specialty="Grids in a line", origin="p" * 52, name=name)
    tell(window, events.AhaHappened(aha=aha))
    screenshot_when_still(window)
    (label,) = (label for label in you.findChildren(ElidedLabel) if label.words() == "Grids in a line")
    assert label.width() >= label.sizeHint().width()


def test_a_backup_needs_the_passphrase_twice_and_forgets_it(page: Page) -> None:
    window, you, sent = page
    you._acts[0].click()
    form = you._identity
    form._path.setText("/tmp/me.identity")
    form._words.setText("short")
    assert (form._go.isEnabled(), form._hint.text()[:10]) == (False, "At least 8")
    form._words.setText(WORDS)
    form._repeated.setText(WORDS + "x")
    assert not form._go.isEnabled()
    form._repeated.setText(WORDS)
    form._go.click()
    assert sent[-1] == commands.BackUpIdentity(id=sent[-1].id, path="/tmp/me.identity", passphrase=WORDS)
    answer(window, BackupWritten(path="/tmp/me.identity"))
    assert form._message.text().startswith("Written to /tmp/me.identity")
    assert form._words.text() == form._repeated.text() == ""
    assert form._words.echoMode() == QLineEdit.EchoMode.Password


def test_becoming_somebody_is_shown_first_and_done_by_a_second_word(page: Page) -> None:
    window, you, sent = page
    you._acts[2].click()
    form = you._identity
    form._path.setText("/tmp/other.identity")
    form._words.setText(WORDS)
    form._go.click()
    assert isinstance(sent[-1], commands.CheckBackup), "first it is only looked into"
    answer(window, BackupRead(path="/tmp/other.identity", node="12D3KooWOther", name="Brisk Otter", mine=False))
    assert form._go.text() == "Become Brisk Otter"
    assert "Amber Finch would be kept" in form._message.text()
    form._go.click()
    assert isinstance(sent[-1], commands.RestoreIdentity)


@pytest.mark.parametrize("field", ["_path", "_words"])
def test_nobody_becomes_another_than_was_shown(page: Page, field: str) -> None:
    window, you, sent = page
    you._acts[2].click()
    form = you._identity
    form._path.setText("/tmp/other.identity")
    form._words.setText(WORDS)
    form._go.click()
    read = BackupRead(path="/tmp/other.identity", node="12D3KooWOther", name="Brisk Otter", mine=False)
    answer(window, read)
    getattr(form, field).setText("/tmp/third.identity")
    assert (form._go.text(), form._message.text()) == ("Look into it", "")
    form._go.click()
    assert isinstance(sent[-1], commands.CheckBackup), "the third is looked into first, too"
    getattr(form, field).setText("/tmp/fourth.identity")
    answer(window, replace(read, name="Clever Wren"))
    assert form._go.text() == "Look into it", "that was said of another file, or of another passphrase"
    assert form._go.isEnabled()


@pytest.mark.parametrize("leave", [lambda window: window.rail.chosen.emit("home"), lambda window: window.hide()])
def test_a_passphrase_is_forgotten_however_the_view_is_left_and_so_is_what_was_found_with_it(
    page: Page, leave: Callable[[MainWindow], None]
) -> None:
    window, you, _sent = page
    you._acts[2].click()
    form = you._identity
    form._path.setText("/tmp/other.identity")
    form._words.setText(WORDS)
    form._go.click()
    answer(window, BackupRead(path="/tmp/other.identity", node="12D3KooWOther", name="Brisk Otter", mine=False))
    window.showMinimized()
    window.showNormal()
    assert form._words.text() == WORDS, "it may be looked up in another window"
    leave(window)
    window.show()
    window.show_page("you")
    assert form.isVisible()
    assert (form._words.text(), form._message.text(), form._go.text()) == ("", "", "Look into it")
    assert not form._go.isEnabled()


def test_a_passphrase_that_was_typed_once_or_twice_and_never_used_is_forgotten_too(page: Page) -> None:
    window, you, _sent = page
    you._acts[0].click()
    you._identity._repeated.setText(WORDS)
    window.show_page("home")
    assert you._identity._repeated.text() == ""


def test_a_wrong_passphrase_is_said_where_it_was_typed(page: Page) -> None:
    window, you, _ = page
    you._acts[1].click()
    you._identity._path.setText("/tmp/me.identity")
    you._identity._words.setText("wrong horse")
    you._identity._go.click()
    refuse(window, "This passphrase does not open the backup.", "Try again.")
    assert you._identity._message.text().startswith("This passphrase does not open")
    assert you._identity._go.isEnabled()


def test_who_chose_a_name_is_called_so_here_as_by_the_members_but_in_nothing_for_others(page: Page) -> None:
    window, you, _ = page
    tell(window, ready(member_name="Kim"))
    assert you._name.words().startswith("Kim · ")
    assert "Kim" not in report(window._store.state, ["Kim trains"])


def test_the_share_card_is_a_picture_with_counts_and_a_made_up_name_only(page: Page, tmp_path: Path) -> None:
    window, you, _ = page
    you.save_card(tmp_path / "card")
    assert QImage(str(tmp_path / "card.png")).size() == SIZE
    you.save_card(tmp_path / "card")
    assert (tmp_path / "card-2.png").exists(), "nobody was asked whether the first may go"
    assert share_card_figures(window._store.state) == [
        ("1,280", "answers tried"),
        ("320", "of them right"),
        ("3", "peers took some"),
    ]
    for name, saved in (("my card v1.2", "my card v1.2.png"), ("20.11.2026", "20.11.2026.png"), ("card.JPG", "card.JPG")):
        you.save_card(tmp_path / name)
        assert not QImage(str(tmp_path / saved)).isNull()
    you.save_card(tmp_path / "nowhere" / "card.png")
    window.redraw()
    assert window.status._notice.accessibleName().startswith("Not saved")


def test_before_there_is_anything_it_says_what_will_stand_here(window_told: TellWindow) -> None:
    window = window_told([])
    window.show_page("you")
    assert window.pages.of(YouPage)._line.words() == "What your computer contributes is counted here from its first round on."
    assert not window.pages.of(YouPage)._acts[0].isEnabled()
    assert share_card_figures(State())[0] == ("0", "answers tried")


def test_a_backup_can_be_called_off_until_it_is_done_and_every_field_keeps_its_name(page: Page) -> None:
    window, you, _ = page
    you._open("backup")
    view = you._identity
    assert view._back.text() == "Cancel"
    named = {label.buddy().accessibleName(): label.text() for label in view.findChildren(QLabel) if label.buddy()}
    assert set(named) == {"The file of the backup", "Passphrase", "The same passphrase again"}
    assert all(name == attribute for name, attribute in named.items())
    view._path.setText("/somewhere/me.identity")
    for field in (view._words, view._repeated):
        field.setText(WORDS)
    view._go.click()
    answer(window, BackupWritten(path="/somewhere/me.identity"))
    assert view._back.text() == "Done"
    you._open("restore")
    assert view._back.text() == "Cancel"
