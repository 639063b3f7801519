"""The pages Settings and Help: settings can be searched, apply at once and can be reset; a report has nothing personal."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from gui.recorded import ready
from waggle.core import settings
from waggle.core.errors import SettingsError
from waggle.gui.application.main_window import MainWindow
from waggle.gui.i18n import translator
from waggle.gui.i18n.translator import Language
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.help.page import LogCard
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.home.rules_popup import RulesPopup, no_rule_text
from waggle.gui.pages.settings.cards import SettingRow
from waggle.gui.pages.settings.page import SettingsPage
from waggle.gui.pages.settings.rows import SECTIONS
from waggle.gui.pages.settings.sent_messages import PrivacyCard
from waggle.gui.state.event_log import EventLog, EventLogModel
from waggle.gui.state.problem_report import report
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.inputs import ComboBox, NumberField, Switch, TextField
from waggle.gui.widgets.controls.week_schedule import ALWAYS, WeekSchedule
from waggle.protocol import events
from waggle.protocol.commands import AnyCommand, ChangeSettings, QuerySent, Resume
from waggle.protocol.events_outbox import SentMessage
from waggle.protocol.schedule import Rule, ScheduleDecision, Tick
from waggle.protocol.state import State
from waggle.protocol.text.status_text import sentence

ROWS = {row.key: row for part in SECTIONS for row in part.rows}


@pytest.fixture
def page(theme: Theme, qtbot: QtBot, tmp_path: Path) -> SettingsPage:
    settings_page = SettingsPage(PageContext(theme, settings=SettingsStore(tmp_path / "settings.toml")))
    qtbot.addWidget(settings_page)
    settings_page.resize(1000, 800)
    settings_page.show_state(State(), 0.0)
    return settings_page


def row_of(page: SettingsPage, key: str) -> SettingRow:
    return next(row for row in page._rows() if row._row.key == key)


def test_every_row_shows_a_setting_that_exists(page: SettingsPage) -> None:
    for key in ROWS:
        assert settings.value_of(settings.Settings(), key) is not None
        assert row_of(page, key)._reset.isHidden(), "a default needs no way back"


def test_the_window_offers_the_sharing_strategies_that_a_live_swarm_can_serve(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    settings.change(path, {"learning.sharing": "truncated_importance"})
    page = SettingsPage(PageContext(theme, settings=SettingsStore(path)))
    qtbot.addWidget(page)
    picker = row_of(page, "learning.sharing")._control
    assert isinstance(picker, ComboBox)
    assert {"plain", "own_probability"} < set(settings.LIVE_SHARING_STRATEGIES)
    assert picker._values == [*(name for name, _ in ROWS["learning.sharing"].kind.options), "truncated_importance"]  # type: ignore[union-attr]
    assert sorted(picker._values[:-1]) == sorted(settings.LIVE_SHARING_STRATEGIES)
    assert picker.currentText() == "truncated_importance", "as the file says"


def test_a_switch_holds_at_once_and_has_a_way_back(page: SettingsPage, qtbot: QtBot, tmp_path: Path) -> None:
    row = row_of(page, "when.only_on_power")
    assert isinstance(row._control, Switch)
    qtbot.keyClick(row._control, Qt.Key.Key_Space)
    assert not settings.read(tmp_path / "settings.toml").when.only_on_power
    assert not row._reset.isHidden()
    row._reset.click()
    assert settings.read(tmp_path / "settings.toml").when.only_on_power
    assert row._control.isChecked()


@pytest.mark.parametrize("checked", [False, True])
def test_a_switch_that_cannot_be_changed_does_not_look_like_one_that_can(theme: Theme, qtbot: QtBot, checked: bool) -> None:
    switch = Switch(theme, "")
    qtbot.addWidget(switch)
    switch.show_value(checked)
    changeable = switch.grab().toImage()
    switch.setEnabled(False)
    assert switch.grab().toImage() != changeable


def test_what_a_setting_does_follows_what_is_chosen(page: SettingsPage) -> None:
    row = row_of(page, "when.idle_minutes")
    for minutes, words in ((0, ""), (10, "Pauses until nobody has touched it for this long.")):
        page._settings_store.set({"when.idle_minutes": minutes})
        assert row._note.text() == words
        assert row._control.accessibleDescription() == f"{words} Default: Keep training.".strip()


def test_what_has_no_limit_at_zero_says_so(page: SettingsPage) -> None:
    row = row_of(page, "computer.disk_gb")
    for room, number, words in (
        (20.0, "20 GB", "For saved states and models. At the limit, the oldest are deleted, but never the newest good state."),
        (0.0, "No limit", ""),
    ):
        page._settings_store.set({"computer.disk_gb": room})
        assert isinstance(row._control, NumberField)
        assert (row._control.text(), row._note.text()) == (number, words)


def test_a_number_is_meant_when_it_is_finished(page: SettingsPage, qtbot: QtBot, tmp_path: Path) -> None:
    row = row_of(page, "computer.cpu_percent")
    assert isinstance(row._control, NumberField)
    row._control.selectAll()
    qtbot.keyClicks(row._control, "65")
    assert not (tmp_path / "settings.toml").exists()
    qtbot.keyClick(row._control, Qt.Key.Key_Return)
    assert settings.read(tmp_path / "settings.toml").computer.cpu_percent == 65


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of a window
def test_a_line_of_words_that_is_only_stood_in_changes_nothing_and_one_that_is_typed_in_stays(
    page: SettingsPage, qtbot: QtBot
) -> None:
    field = row_of(page, "swarm.seeds")._control
    assert isinstance(field, TextField)
    page._settings_store.set({"swarm.seeds": ["/ip4/192.0.2.1/tcp/1"]})
    page.show()
    page.activateWindow()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    page._settings_store.set({"swarm.seeds": None})  # by another window, or by a button that takes no focus
    assert field.text() == ""
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert page._settings_store.value("swarm.seeds") == ()
    qtbot.keyClicks(field, "/ip4/192.0.2.2/tcp/2")
    page._settings_store.set({"swarm.seeds": ["/ip4/192.0.2.1/tcp/1"]})
    assert field.text() == "/ip4/192.0.2.2/tcp/2"
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert page._settings_store.value("swarm.seeds") == ("/ip4/192.0.2.2/tcp/2",)


def test_a_value_set_by_hand_is_shown_as_itself(theme: Theme, qtbot: QtBot) -> None:
    picker = ComboBox(theme, "Theme", [("a", "A")])
    qtbot.addWidget(picker)
    picker.show_value("b")
    assert picker.currentText() == "b"


BY_HAND = """[computer]
price_kwh = 0.2785
memory_gb = 7.25
traffic_kb = 2000000
disk_gb = 0.5

[learning]
held_out_every = 20000
"""


def test_opening_the_page_changes_nothing_that_was_set_by_hand(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(BY_HAND)
    choices, commands = SettingsStore(path), list[AnyCommand]()
    choices._send = lambda command: commands.append(command) is not None
    page = SettingsPage(PageContext(theme, settings=choices))
    qtbot.addWidget(page)
    choices.adopt(State(settings=choices.settings, after_restart=("swarm.port",)))
    for number in page.findChildren(NumberField):
        number.interpretText()  # as when one goes through the fields with Tab
    assert (path.read_text(), commands) == (BY_HAND, [])
    keys = ("computer.price_kwh", "computer.memory_gb", "computer.traffic_kb", "computer.disk_gb", "learning.held_out_every")
    texts = [control.text() for key in keys if isinstance(control := row_of(page, key)._control, NumberField)]
    assert texts == ["0.2785", "7.25 GB", "2000000 kB/s", "0.5 GB", "20000"]


def test_every_number_that_may_be_set_can_be_shown(page: SettingsPage) -> None:
    for section in msgspec.structs.fields(settings.Settings):
        for field in msgspec.structs.fields(type(section.default)):
            bounds = next((meta for meta in getattr(field.type, "__metadata__", ()) if meta.ge is not None), None)
            key = f"{section.name}.{field.name}"
            if bounds is not None and key in ROWS and isinstance(control := row_of(page, key)._control, NumberField):
                assert control.minimum() == bounds.ge, key
                assert bounds.le is None or control.maximum() == bounds.le, key


def test_a_change_that_is_refused_is_taken_back(page: SettingsPage, qtbot: QtBot) -> None:
    row = row_of(page, "learning.local")
    refusals: list[str] = []
    page._settings_store.refused.connect(lambda title, advice: refusals.append(title))
    row._set(64)
    assert refusals == ["learning.local is 64, but only 8 questions are drawn."]
    assert isinstance(row._control, NumberField)
    assert row._control.value() == 4


def test_settings_are_found_by_a_word(page: SettingsPage) -> None:
    page._search.setText("battery")
    visible = [row._row.key for row in page._rows() if not row.isHidden()]
    assert visible == ["when.only_on_power"]
    assert page.privacy is not None
    assert page.privacy.isHidden()
    page._search.setText("privacy")
    assert (page.privacy.isHidden(), page._line.words(), page._none.isHidden()) == (False, "1 setting", True)
    page._search.setText("xyzzy")
    assert not page._none.isHidden()
    page._search.clear()
    assert all(not row.isHidden() for row in page._rows())


def test_a_running_engine_is_asked_and_tells(tmp_path: Path) -> None:
    choices, commands = SettingsStore(tmp_path / "settings.toml"), list[AnyCommand]()
    choices._send = lambda command: commands.append(command) is None
    choices.set({"window.theme": "dark"})
    assert choices.settings.window.theme == "system", "nothing is so until the engine says so"
    assert isinstance(commands[0], ChangeSettings)
    dark = settings.Settings(window=settings.WindowSettings(theme="dark"))
    choices.adopt(State(settings=dark, after_restart=("swarm.port",)))
    assert choices.settings == dark
    assert choices.after_restart == ("swarm.port",)


def test_what_is_set_after_the_engine_ended_holds_until_an_engine_says_something_anew(tmp_path: Path) -> None:
    choices, ended = SettingsStore(tmp_path / "settings.toml"), State(phase="stopped", settings=settings.Settings())
    choices.adopt(ended)
    choices.set({"window.theme": "dark", "when.idle_minutes": 7})
    choices.adopt(replace(ended, at=60.0))  # a minute goes by
    assert (choices.settings.window.theme, choices.settings.when.idle_minutes) == ("dark", 7)
    choices.adopt(replace(ended, settings=settings.Settings()))  # another engine runs, without what was set
    assert choices.settings == settings.Settings()


def test_of_an_engine_on_another_computer_nothing_is_kept_in_the_file_here_and_the_window_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(here := '[computer]\nthreads = 2\n[window]\ntext_percent = 150\ntheme = "dark"\n')
    choices, commands, refusals = SettingsStore(path, far=True), list[AnyCommand](), list[str]()
    choices.refused.connect(lambda title, advice: refusals.append(title))
    own = choices.settings.window
    assert (own.text_percent, own.theme, choices.settings.computer.threads) == (150, "dark", 0)
    far_settings = settings.Settings(computer=settings.ComputerSettings(threads=48))
    choices.adopt(State(settings=far_settings))
    assert choices.settings == replace(far_settings, window=own)
    choices.set({"computer.threads": 32, "when.idle_minutes": 5})  # the connection broke
    assert refusals == ["The other computer does not answer: nothing was changed."]
    assert (choices.settings.computer.threads, path.read_text()) == (48, here)
    choices._send = lambda command: commands.append(command) is None
    choices.set({"computer.threads": 32, "window.theme": "light"})
    assert [command.values for command in commands if isinstance(command, ChangeSettings)] == [{"computer.threads": 32}]
    assert (choices.settings.computer.threads, choices.settings.window.theme) == (48, "light"), "its engine did not say so yet"
    assert settings.read(path).computer.threads == 2
    assert settings.read(path).window == replace(own, theme="light")


def test_what_was_changed_since_the_command_line_said_it_is_not_said_to_the_next_engine(tmp_path: Path) -> None:
    overrides = ("model.name=owner/model", "swarm.seeds=['a']", "when.idle_minutes=3", "computer.price_kwh=1")
    choices = SettingsStore(tmp_path / "settings.toml", overrides)
    begun = choices.settings
    choices.adopt(State(settings=begun))
    assert choices.overrides == overrides
    other = replace(begun, model=settings.ModelSettings(folder="/models/other"))
    choices.adopt(State(settings=other, service=True))
    assert choices.overrides == overrides, "an engine that is followed was told nothing of it"
    choices.adopt(State(settings=replace(other)))
    assert choices.overrides == overrides[1:]
    choices.adopt(State(settings=begun))  # the other one could not begin, and was taken back
    assert choices.overrides == overrides
    choices.set({"when.idle_minutes": 9})  # no engine runs
    assert choices.settings.when.idle_minutes == 9
    assert choices.overrides == (*overrides[:2], overrides[3])


def test_a_profile_is_one_word_for_many_settings(page: SettingsPage, tmp_path: Path) -> None:
    page.profile._segments.choose(2)
    assert settings.read(tmp_path / "settings.toml").computer.priority == "normal"


def test_the_week_is_set_by_keyboard(theme: Theme, qtbot: QtBot) -> None:
    week, weeks = WeekSchedule(theme, "Your week"), list[object]()
    qtbot.addWidget(week)
    week.changed.connect(weeks.append)
    week.show_value(())
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Space):
        qtbot.keyClick(week, key)
    assert isinstance(weeks[-1], tuple)
    assert weeks[-1][1] == "#" * 10 + "." + "#" * 13
    assert week.accessibleName() == "Your week: Tuesday 10:00 is left out"
    qtbot.keyClick(week, Qt.Key.Key_Space)
    assert weeks[-1] == (), "all hours are the default"
    assert tuple(week._week) == ALWAYS


def test_the_week_is_set_by_the_left_button_and_only_where_an_hour_was_pressed(theme: Theme, qtbot: QtBot) -> None:
    week, weeks = WeekSchedule(theme, "Your week"), list[object]()
    qtbot.addWidget(week)
    week.resize(600, week.height())
    week.changed.connect(weeks.append)
    week.show_value(())
    hour, name = week._cell(3, 2).center().toPoint(), QPoint(5, week.height() // 2)
    for button, place in ((Qt.MouseButton.RightButton, hour), (Qt.MouseButton.LeftButton, name)):
        qtbot.mousePress(week, button, pos=place)
        qtbot.mouseMove(week, hour)
        qtbot.mouseRelease(week, button, pos=hour)
    assert (weeks, tuple(week._week)) == ([], ALWAYS)
    qtbot.mouseClick(week, Qt.MouseButton.LeftButton, pos=hour)
    assert weeks == [("#" * 24, "#" * 24, "###." + "#" * 20, *("#" * 24,) * 4)]


def test_a_rule_is_switched_off_where_it_is_named(theme: Theme, qtbot: QtBot, page: SettingsPage) -> None:
    why, commands = RulesPopup(theme, page), list[AnyCommand]()
    why.commanded.connect(commands.append)
    ticks = (Tick(rule="pause", passes=False, says="Paused."), Tick(rule="power", passes=True, says="It is plugged in."))
    why.show_ticks(ticks)
    for switch in why.findChildren(Switch):
        switch.click()
    assert isinstance(commands[0], Resume)
    assert isinstance(commands[1], ChangeSettings)
    assert commands[1].values == {"when.only_on_power": False}


UNTOLD = (
    Tick(rule="power", passes=None, says="No battery found."),
    Tick(rule="full_screen", passes=None, says="This computer does not tell whether a program fills the screen."),
    Tick(rule="metered", passes=None, says="This computer does not tell whether its network is metered."),
    Tick(rule="temperature", passes=None, says="This computer does not tell its temperature."),
)


PASSED = tuple(replace(tick, passes=True) for tick in UNTOLD)


def test_why_begins_with_the_answer_where_no_rule_holds_anything_back(window_told: Callable[..., MainWindow]) -> None:
    alone = [events.PhaseChanged(phase="contributing", round=3), events.ReachChanged(reach="alone", peers=0)]
    window = window_told([ready(swarm="First light"), *alone])
    hero = window.pages.of(HomePage).hero

    def answer_and_note(*ticks: Tick) -> list[str]:
        decision = ScheduleDecision(standing="contributing", why=ticks)
        hero.show_state(replace(window._store.state, decision=decision), 9.0)
        why = hero._why
        labels = (why._answer, *why._rows.findChildren(QLabel), why._untold)
        return [label.text() for label in labels if not label.isHidden()]

    nothing_told = "4 rules can't be checked on this computer, so they're ignored."
    assert answer_and_note(*UNTOLD) == ["Nobody else is in First light now. It needs nothing from you.", nothing_told]
    assert answer_and_note(PASSED[0], UNTOLD[1])[-1] == "1 rule can't be checked on this computer, so it's ignored."
    failed = replace(PASSED[0], passes=False)
    assert answer_and_note(failed, *UNTOLD) == [failed.says, nothing_told], "the rule is the answer"
    state = window._store.state
    assert no_rule_text(replace(state, reach="connecting"), sentence(state)) == "Nothing is holding Waggle back."


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of a popup
@pytest.mark.parametrize("percent", [100, 150, 200])
@pytest.mark.parametrize("spoken", ["en", "de"])
def test_no_rule_is_cut(theme: Theme, qapp: QApplication, page: SettingsPage, spoken: Language, percent: int) -> None:
    translator.use(spoken)
    theme.set_text(percent)
    why = RulesPopup(theme, page)
    for ticks in (PASSED[:1], PASSED, PASSED[2:]):
        why.show_ticks([*ticks, *UNTOLD], "Nobody else is in First light now. It needs nothing from you.")
        why.open_below(page)
        for _ in range(3):  # layouts settle in the second pass
            qapp.processEvents()
        labels = [label for label in why._rows.findChildren(QLabel) if label.isVisible()]
        assert len(labels) == len(ticks)
        labels += [why._answer, why._untold]
        assert [label.text() for label in labels if label.height() < label.heightForWidth(label.width())] == []
        assert why.height() == why.layout().totalHeightForWidth(why.width())
    why.hide()


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of a popup
def test_a_rule_stays_under_the_finger_while_its_degrees_change(theme: Theme, qtbot: QtBot, page: SettingsPage) -> None:
    why, commands = RulesPopup(theme, page), list[AnyCommand]()
    why.commanded.connect(commands.append)

    def ticks(celsius: int) -> tuple[Tick, ...]:
        running = (Tick(rule="program", passes=False, says=f"{name} is running.") for name in ("steam", "zoom"))
        return *running, Tick(rule="temperature", passes=False, says=f"The processor is too warm: {celsius} °C.", ends="Starts.")

    why.show_ticks(ticks(86))
    (switch,) = why.findChildren(Switch)
    why.show()
    switch.setFocus()
    qtbot.mousePress(switch, Qt.MouseButton.LeftButton)
    why.show_ticks(ticks(87))
    assert why.findChildren(Switch) == [switch]
    assert (why.focusWidget(), switch.isDown()) == (switch, True)
    assert switch.accessibleName() == "Rule: The processor is too warm: 87 °C."
    assert "The processor is too warm: 87 °C." in [label.text() for label in why.findChildren(QLabel)]
    qtbot.mouseRelease(switch, Qt.MouseButton.LeftButton)
    assert [command.values for command in commands if isinstance(command, ChangeSettings)] == [{"when.below_celsius": 0}]
    assert not switch.isChecked()
    why.show_ticks(ticks(87))  # as if the change were refused: the rule is still on
    assert switch.isChecked()
    why.show_ticks(ticks(88)[1:])
    assert len(why._rows.findChildren(Button)) == 1


def test_what_was_made_by_hand_is_no_switchs_to_erase(window_told: Callable[..., MainWindow], qtbot: QtBot) -> None:
    """The rules on the week and on programs link to their settings, because switching them off would erase them."""
    window = window_told([events.PhaseChanged(phase="waiting", round=3)], 1024, 640)
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    for rule, key in (("program", "when.not_while"), ("week", "when.week")):
        why = window.pages.of(HomePage).hero._why
        why.show_ticks([Tick(rule=rule, passes=False, says="For some reason.")])  # type: ignore[arg-type]
        assert why._rows.findChildren(Switch) == []
        why._rows.findChildren(Button)[0].click()
        assert window.page == "settings"
        settings_page = window.pages["settings"]
        assert isinstance(settings_page, SettingsPage)
        row = row_of(settings_page, key)
        qtbot.waitUntil(lambda row=row: not row.visibleRegion().isEmpty())
        assert row._control.hasFocus()
    assert sent == []


def test_what_is_no_rule_cannot_be_switched_off(theme: Theme, page: SettingsPage) -> None:
    why = RulesPopup(theme, page)
    why.show_ticks([Tick(rule="disk", passes=False, says="The disk is full.", ends="Make room on it.")])
    assert why.findChildren(Switch) == []
    for rule in get_args(Rule):
        why.show_ticks([Tick(rule=rule, passes=False, says="For some reason.")])
        for switch in why._rows.findChildren(Switch):
            switch.click()


def test_what_left_this_computer_is_shown_verbatim(theme: Theme, qtbot: QtBot) -> None:
    privacy, commands = PrivacyCard(theme), list[AnyCommand]()
    qtbot.addWidget(privacy)
    privacy.commanded.connect(commands.append)
    privacy._ask.click()
    assert isinstance(commands[0], QuerySent)
    at = datetime.datetime(2026, 11, 20, 14, 3, 9).astimezone().timestamp()
    message = SentMessage(at=at, kind="groups", to="Brisk Otter (12D3)", size=312, text='["<b>7</b>"]')
    privacy.show_state(State(sent=(message,)))
    head, text = privacy._messages.toPlainText().split("\n")
    assert head == "— 20 Nov 2026, 14:03 · Your model's answers · to Brisk Otter (12D3) · 312 bytes"
    assert text == '["<b>7</b>"]'
    privacy.show_state(State(sent=()))
    assert privacy._line.text() == "Nothing has left this computer since Waggle started."


def test_the_log_is_searched_and_newest_first() -> None:
    journal = EventLog()
    for event in (
        events.Warned(title="The disk is nearly full.", at=1.0), events.TrafficMeasured(up=1, down=1),
        events.RecordRejected(origin="12D3KooWabc", reason="malformed\u202e", at=2.0),
    ):  # fmt: skip
        journal.take(event)
    lines = EventLogModel(journal)
    first, second = lines.text().splitlines()
    assert first.endswith("sent: malformed\ufffd")
    assert second.endswith("Warning: The disk is nearly full.")
    assert "\u202e" not in lines.text()
    lines.find("DISK full")
    assert lines.rowCount() == 1


def test_an_empty_log_says_why_and_has_nothing_to_copy(theme: Theme, qtbot: QtBot) -> None:
    journal = EventLog()
    log = LogCard(theme, journal)
    qtbot.addWidget(log)
    states = [(log._none.text(), log._none.isHidden(), log._copy.isEnabled())]
    journal.take(events.EngineStopped(round=3, at=5.0))
    log.catch_up()
    states.append((log._none.text(), log._none.isHidden(), log._copy.isEnabled()))
    log.model.find("zebra")
    states.append((log._none.text(), log._none.isHidden(), log._copy.isEnabled()))
    assert states[0] == ("Nothing has happened yet.", False, False)
    assert states[1][1:] == (True, True)
    assert states[2] == ("No line has these words.", False, False)


def test_a_report_has_what_a_helper_needs(tmp_path: Path) -> None:
    problem = events.EngineFailed(title="No room.", advice="Make some.", detail=f"OSError in {tmp_path}/checkpoints")
    words = report(State(phase="problem", problem=problem, round=7), ["a line"], tmp_path)
    assert "No room." in words
    assert "round 8, " in words
    assert "a line" in words
    assert str(tmp_path) not in words


def test_a_profile_of_another_computer_is_offered_once_its_cores_are_known(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    choices, commands = SettingsStore(tmp_path / "settings.toml", far=True), list[AnyCommand]()
    choices._send = lambda command: commands.append(command) is None
    page = SettingsPage(PageContext(theme, settings=choices))
    qtbot.addWidget(page)
    page.show_state(State(), 0.0)
    assert (page.profile.isHidden(), page._unknown.isHidden()) == (True, False)
    assert page._unknown.text() == "Shown once Waggle has started."
    page.show_state(State(ready=ready(cores=48)), 0.0)
    assert (page.profile.isHidden(), page._unknown.isHidden()) == (False, True)
    page.profile._segments.choose(2)
    (command,) = commands
    assert isinstance(command, ChangeSettings)
    assert command.values["computer.threads"] == 48


@pytest.mark.parametrize("far", [True, False])
def test_whose_hours_a_week_has_is_said_where_the_engine_runs_on_another_computer(
    theme: Theme, qtbot: QtBot, *, far: bool
) -> None:
    page = SettingsPage(PageContext(theme, settings=SettingsStore(None, far=far)))
    qtbot.addWidget(page)
    week = row_of(page, "when.week")
    assert week._control.isHidden(), "all hours are folded"
    assert week._note.text().startswith("Any time.")
    week.take_focus()
    assert not week._control.isHidden()
    assert week._note.text().startswith("Filled hours may be used.")
    assert week._note.text().endswith("The hours are those of the other computer.") == far


def test_choices_survive_a_settings_file_that_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("[window")
    choices = SettingsStore(path)
    assert choices.settings == settings.Settings()
    refusals: list[str] = []
    choices.refused.connect(lambda title, advice: refusals.append(advice))
    choices.set({"window.theme": "dark"})
    assert "not valid TOML" in refusals[0]
    assert path.read_text() == "[window"
    with pytest.raises(SettingsError):
        choices.value("window.nothing")


def test_settings_that_are_not_those_of_the_file_say_so_and_are_closed(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("[window")
    page = SettingsPage(PageContext(theme, settings=(choices := SettingsStore(path))))
    qtbot.addWidget(page)
    page.show_state(State(phase="problem"), 0.0)
    assert (page._broken.isHidden(), row_of(page, "when.week").isEnabled()) == (False, False)
    assert choices.set_aside() == tmp_path / "settings.toml.broken"
    page.show_state(State(phase="problem"), 0.0)
    assert (page._broken.isHidden(), row_of(page, "when.week").isEnabled()) == (True, True)


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
@pytest.mark.parametrize("wide", [False, True])
def test_the_week_is_open_where_there_is_room_for_it(page: SettingsPage, qapp: QApplication, wide: bool) -> None:
    page.resize(page.theme.px(page.wide_from) + 100 if wide else 1000, 800)
    page.show()
    qapp.processEvents()
    (week,) = page.findChildren(WeekSchedule)
    assert (page.wide, week.isVisible()) == (wide, wide)
