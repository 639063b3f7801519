"""The whole window: one redraw a tick, one page at a time, accessible names for everything the keyboard reaches."""

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QScrollArea, QTableView, QWidget
from pytestqt.qtbot import QtBot

from gui.answers import refuse
from gui.recorded import START, Run, ready
from pictures.screenshots import failed
from waggle.core.paths import Home
from waggle.core.settings import ScheduleSettings, Settings
from waggle.gui.application.main_window import SMALLEST, MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.application.window.navigation import NavigationRail, RailButton
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import date_of
from waggle.gui.i18n.translator import Language
from waggle.gui.pages import PAGES
from waggle.gui.pages.context import EngineHost, PageContext
from waggle.gui.pages.help.page import HelpPage
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.welcome.page import WelcomePage
from waggle.gui.pages.you.page import YouPage
from waggle.gui.state import shortcuts
from waggle.gui.state.event_log import EventLog
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.protocol import events
from waggle.protocol.commands import AnyCommand, Pause, QueryDays, QueryHistory, Resume
from waggle.protocol.events_identity import DailyTotals, Day
from waggle.protocol.schedule import Readings, ScheduleDecision, Wishes, decide
from waggle.protocol.state import AnyEvent, Snapshot, State

TellWindow = Callable[..., MainWindow]


def test_many_events_are_one_redraw(qtbot: QtBot) -> None:
    current = StateStore()
    changes: list[int] = []
    current.changed.connect(lambda: changes.append(current.state.seq))
    for number in range(1, 200):
        current.take(events.TrafficMeasured(seq=number, up=1.0, down=2.0))
    assert changes == []
    qtbot.waitUntil(lambda: bool(changes))
    assert changes == [199]
    qtbot.wait(250)
    assert changes == [199], "nothing is redrawn when nothing happens"


def test_what_was_now_is_in_the_past_some_time_later_though_nothing_is_told(
    qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.gui.state.store.AGE_MS", 20)
    moment = [START]
    current = StateStore(clock=lambda: moment[0])
    current.keep_ages_current()
    window = MainWindow(PageContext(theme, store=current))
    qtbot.addWidget(window)
    current.take(events.PhaseChanged(at=START, phase="paused", round=3))
    current.take(events.Warned(at=START, title="The clock is slow.", advice="Set it."))
    current.flush()
    window.show()
    assert window.pages.of(HomePage).hero._warning.text()
    moment[0] += 9 * 3600
    qtbot.waitUntil(lambda: not window.pages.of(HomePage).hero._warning.text())


def test_every_focusable_widget_has_a_name_and_every_label_is_plain_text(window_told: TellWindow, story: list[AnyEvent]) -> None:
    window = window_told(story)
    for page in PAGES:
        window.show_page(page)
        nameless = [
            widget
            for widget in window.findChildren(QWidget)
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            and not widget.accessibleName()
            and not widget.objectName().startswith("qt_")
        ]
        assert nameless == [], page
        rich = [label.text() for label in window.findChildren(QLabel) if label.textFormat() != Qt.TextFormat.PlainText]
        assert rich == [], page


def test_tab_leaves_every_table(window_told: TellWindow, story: list[AnyEvent]) -> None:
    window = window_told(story)
    for page in PAGES:
        window.show_page(page)
    tables = window.findChildren(QTableView)
    assert len(tables) >= 3
    assert [table.accessibleName() for table in tables if table.tabKeyNavigation()] == []


@pytest.mark.parametrize("case", ["story", "written", "nothing"])
def test_home_does_not_scroll_in_a_small_window(
    window_told: TellWindow, story: list[AnyEvent], written: list[AnyEvent], case: str
) -> None:
    window = window_told(
        {"story": story, "written": [*written, events.SettingsChanged(settings=Settings())], "nothing": []}[case]
    )
    for width, height in ((1280, 784), (1264, 704), (1280, 632), (1024, 640)):
        window.resize(width, height)
        screenshot_when_still(window)
        areas = window.pages.of(HomePage).findChildren(QScrollArea)
        assert [area.verticalScrollBar().maximum() for area in areas] == [0], f"{width}x{height}"
        assert window.rail.width() == window._theme.size["rail" if width > 1024 else "rail_compact"]


def test_a_warning_stands_whole_on_home_and_takes_no_room_once_it_is_old(window_told: TellWindow, story: list[AnyEvent]) -> None:
    window = window_told(story, 1024, 640)
    screenshot_when_still(window)
    hero, before = window.pages.of(HomePage).hero, window.pages.of(HomePage).hero.height()
    at = window._store.now()
    window._store.take(events.Warned(title="Hugging Face has no model Qwen/Qwen2.5-0.5B.", advice="Check its name. " * 9, at=at))
    window._store.flush()
    screenshot_when_still(window)
    assert hero._warning.text() == "Hugging Face has no model Qwen/Qwen2.5-0.5B."
    label = hero._warning_advice
    assert label.text().startswith("Check its name.")
    assert label.height() >= label.heightForWidth(label.width()) > 1.5 * label.fontMetrics().height()
    hero.show_state(window._store.state, at + 901)
    screenshot_when_still(window)
    assert (hero._warned.isVisible(), hero.height()) == (False, before)


def test_a_warning_about_swarms_leads_to_their_page(window_told: TellWindow, story: list[AnyEvent]) -> None:
    window = window_told(story, 1024, 640)
    hero, at = window.pages.of(HomePage).hero, window._store.now()
    window._store.take(events.Warned(title="The disk is nearly full.", at=at))
    window._store.flush()
    assert (hero._warning.isVisible(), hero._see["swarms"].isVisible()) == (True, False)
    window._store.take(events.Warned(title="Class 7b has ended.", page="swarms", at=at))
    window._store.flush()
    assert hero._see["swarms"].isVisible()
    hero._see["swarms"].click()
    assert window.page == "swarms"


def test_a_warning_that_is_cut_leads_to_where_it_stands_whole(window_told: TellWindow, story: list[AnyEvent]) -> None:
    window = window_told(story, 1024, 640)
    window.show_page("peers")

    def leads_home(words: str) -> bool:
        window.notices.show(words)
        screenshot_when_still(window)
        return window.status._home.isVisible()

    long = "A sentence. " * 20
    assert not leads_home(long), "no warning, so Home does not have it"
    window._store.take(events.Warned(title="The clock is wrong.", advice=long, at=window._store.now()))
    window._store.flush()
    assert not leads_home("The clock is wrong.")
    assert leads_home(f"The clock is wrong. {long}".strip())
    window.resize(4000, 640)
    screenshot_when_still(window)
    assert not window.status._home.isVisible(), "it stands there whole"
    window.resize(1024, 640)
    screenshot_when_still(window)
    assert window.status._home.isVisible()
    window.status._home.click()
    assert (window.page, window.status._home.isVisible()) == ("home", False)
    window.show_page("peers")
    assert window.status._home.isVisible()
    window.status.show_notice("")
    assert not window.status._home.isVisible()


def left_edge(widget: QWidget) -> int:
    return widget.mapTo(widget.window(), QPoint(0, 0)).x()


@pytest.mark.qt_log_ignore("propagateSizeHints")
def test_what_has_nothing_to_say_yet_takes_no_room_and_a_link_begins_where_words_do(
    window_told: TellWindow, story: list[AnyEvent], theme: Theme
) -> None:
    window = window_told([], 1024, 640)
    screenshot_when_still(window)
    hero, before = window.pages.of(HomePage).hero, window.pages.of(HomePage).hero.height()
    assert not hero._progress.isVisible()
    window._store.take(events.Preparing(part="Starting the answer checker", done=0, parts=4))
    window._store.flush()
    screenshot_when_still(window)
    assert not hero._progress.isVisible(), "the steps stand below"
    assert hero.height() >= before
    window = window_told(story, 1024, 640)
    screenshot_when_still(window)
    sharing = window.pages.of(HomePage).sharing
    assert left_edge(sharing.link) == left_edge(sharing.says)  # a button begins where words do
    window.cover(welcome := WelcomePage(theme))
    screenshot_when_still(window)
    assert left_edge(welcome._skip) + 5 == left_edge(welcome._steps)


def test_a_restart_takes_nothing_from_what_home_counts(window_told: TellWindow) -> None:
    """The days as the engine sent them, with the rounds since, and queried again once an engine is ready."""
    noon = START - START % 86_400 + 43_200
    today = Day(date=date_of(noon).isoformat(), rounds=2, answers=128, right=32, seconds=3600.0)
    days = DailyTotals(
        days=(today,), all=replace(today, date="2026-01-05", answers=1280), used_by=3, groups_pulled=41, met=9, at=noon
    )
    ready_again = ready(at=noon + 60)
    window = window_told(
        [ready(at=noon - 60), days, ready_again, events.PhaseChanged(phase="contributing", round=7, at=noon + 60)]
    )
    energy = window.pages.of(HomePage).cost.energy
    assert energy.words() == "12 Wh, estimated"
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    summary = events.RoundSummary(round=7, at=noon + 70, reward=0.5, solved=0.5, seconds=3600.0, completions=64)
    for event in (events.RoundCompleted(summary=summary, at=noon + 70), ready(at=noon + 80)):
        window._store.take(event)
    window._store.flush()
    assert (energy.words(), energy.toolTip()) == ("24 Wh, estimated", "About as much as a laptop in 48 min")
    assert [type(command) for command in sent] == [QueryDays, QueryHistory]
    window._store.take(events.RulesChecked(decision=ScheduleDecision(standing="contributing"), at=noon + 86_400))
    window._store.flush()
    assert energy.words() == "0 Wh, estimated", "a new day"


def test_pages_survive_the_smallest_window_and_every_theme(
    window_told: TellWindow, theme: Theme, story: list[AnyEvent], qapp: QApplication
) -> None:
    window = window_told(story, 900, 600)
    for page in PAGES:
        window.show_page(page)
    for theme_name in ("dark", "high_contrast", "light"):
        theme.use(theme_name)  # type: ignore[arg-type]
        for page in PAGES:
            window.show_page(page)
            qapp.processEvents()
            assert not window.grab().isNull(), (theme_name, page)


def test_the_rail_changes_pages(window_told: TellWindow, written: list[AnyEvent]) -> None:
    window = window_told(written)
    for page in PAGES:
        window.rail._buttons[page].click()
        assert window.pages[page].isVisible()


def test_a_page_that_is_opened_gives_the_focus_to_none_of_its_buttons(window_told: TellWindow, written: list[AnyEvent]) -> None:
    window = window_told(written)
    window.pages.of(HomePage).hero._main.setFocus()
    window.show_page("help")
    assert window.focusWidget() is window.pages["help"]


def test_only_the_seen_page_is_drawn(window_told: TellWindow, written: list[AnyEvent], monkeypatch: pytest.MonkeyPatch) -> None:
    window = window_told(written)
    drawn: list[str] = []
    for name, page in window.pages.built.items():
        monkeypatch.setattr(page, "show_state", lambda state, now, name=name: drawn.append(name))
    window.redraw()
    assert drawn == ["home"]


def test_pausing_for_an_hour_sends_its_length(window_told: TellWindow, written: list[AnyEvent], qtbot: QtBot) -> None:
    window = window_told(written)
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    window.pages.of(HomePage).hero._more.menu().actions()[0].trigger()
    assert isinstance(sent[0], Pause)
    assert (sent[0].seconds, sent[0].until) == (3600, None)
    window.pages.of(HomePage).hero._main.click()
    assert len(sent) == 1, "one press is one command"
    refuse(window, "Not now.", "")
    window.pages.of(HomePage).hero._main.click()
    assert len(sent) == 2


def test_a_pause_that_waits_for_a_step_is_said_and_can_be_taken_back(
    window_told: TellWindow, written: list[AnyEvent], qtbot: QtBot
) -> None:
    window = window_told([*written, events.PhaseChanged(phase="contributing", round=9, at=5.0)])
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    button = window.pages.of(HomePage).hero._main
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    paused = decide(ScheduleSettings(), Readings(), Wishes(paused=True), 0.0)
    window._store.take(events.RulesChecked(decision=paused, at=6.0))
    window._store.flush()
    assert window.pages.of(HomePage).hero._says.text() == "Finishing this step, then pausing"
    assert button.text() == "Resume"
    qtbot.mouseDClick(button, Qt.MouseButton.LeftButton)  # the second of two quick clicks
    qtbot.mouseRelease(button, Qt.MouseButton.LeftButton)
    assert [type(command) for command in sent] == [Pause], "a double click is one press"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert [type(command) for command in sent] == [Pause, Resume]


@pytest.mark.parametrize("page", ["home", "live"])
def test_a_pause_that_was_taken_back_elsewhere_can_be_asked_for_again(
    window_told: TellWindow, written: list[AnyEvent], page: str
) -> None:
    window = window_told([*written, events.PhaseChanged(phase="contributing", round=9, at=5.0)])
    window.show_page(page)
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    for _ in range(2):  # in the midst of one long step
        window._pause_or_resume()
        window._pause_or_resume()
        for wishes in (Wishes(paused=True), Wishes()):
            window._store.take(events.RulesChecked(decision=decide(ScheduleSettings(), Readings(), wishes, 0.0), at=6.0))
            window._store.flush()
    assert [type(command) for command in sent] == [Pause, Pause]


def test_the_one_button_follows_the_phase(window_told: TellWindow, written: list[AnyEvent]) -> None:
    paused = events.PhaseChanged(phase="paused", round=9, at=5.0, seq=999_999)
    window = window_told([*written, paused])
    button = window.pages.of(HomePage).hero._main
    assert (button.text(), button.property("kind")) == ("Resume", "primary")
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    button.click()
    assert isinstance(sent[0], Resume)
    window._store.take(events.PhaseChanged(phase="contributing", round=9, at=6.0, seq=1_000_000))
    window._store.flush()
    assert (button.text(), button.property("kind")) == ("Pause", "plain"), "what goes well asks for nothing"


def test_the_status_bar_says_the_state_once_and_a_figure_in_every_width(window_told: TellWindow, story: list[AnyEvent]) -> None:
    window = window_told(story)
    bar = window.status
    for width in (1280, 1024):
        window.resize(width, 640)
        window.show_page("live")
        screenshot_when_still(window)
        assert bar._says.words().startswith(bar._word.words())
        assert (bar._says.isVisible(), bar._word.isVisible()) == (True, False)
        window.show_page("home")
        screenshot_when_still(window)
        assert "tokens/s" in bar._figures.words()
    window._store.take(events.PhaseChanged(phase="paused", round=9, at=9.0, seq=999_999))
    window._store.flush()
    window.show_page("live")
    assert (bar._word.words(), bar._word.isVisible()) == ("Paused by you", True)


def test_what_waits_for_a_better_moment_can_be_paused_by_the_key_and_for_a_while(
    window_told: TellWindow, written: list[AnyEvent], qtbot: QtBot
) -> None:
    """The pause key never overrides the rules; a button of its own does."""
    on_battery = decide(ScheduleSettings(only_on_power=True), Readings(on_power=False), Wishes(), 0.0)
    window = window_told([
        *written, events.RulesChecked(decision=on_battery, at=5.0), events.PhaseChanged(phase="waiting", round=9, at=5.0),
    ])  # fmt: skip
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    hero, sent = window.pages.of(HomePage).hero, list[AnyCommand]()
    window.commanded.connect(sent.append)
    assert [button.text() for button in (hero._second, hero._main) if button.isVisible()] == ["Contribute anyway", "Pause"]
    assert hero._more.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)
    refuse(window, "Not now.", "")
    hero._more.menu().actions()[0].trigger()
    refuse(window, "Not now.", "")
    hero._second.click()
    assert [type(command) for command in sent] == [Pause, Pause, Resume]


def test_a_failure_can_be_copied(window_told: TellWindow, written: list[AnyEvent], qapp: QApplication) -> None:
    failed = events.EngineFailed(title="Out of memory.", advice="Close something.", detail="line one\nline two")
    window = window_told([*written, failed])
    assert window.pages.of(HomePage).hero._main.text() == "Copy report"
    window.pages.of(HomePage).hero._main.click()
    assert {"Out of memory.", "Close something.", "line two"} <= set(qapp.clipboard().text().splitlines())
    window.redraw()
    assert window.pages.of(HomePage).hero._main.text() == "Copied", "for a moment, whatever is told meanwhile"
    window.pages.of(HomePage).hero._copied.setInterval(0)
    qapp.processEvents()
    assert window.pages.of(HomePage).hero._main.text() == "Copy report"


def test_progress_asks_for_history_once(window_told: TellWindow) -> None:
    window, sent = window_told([]), list[AnyCommand]()
    window.show_page("progress")
    window.commanded.connect(sent.append)
    window._store.take(ready(round=613))
    window._store.take(events.PhaseChanged(phase="contributing", round=613))
    window._store.flush()
    window.redraw()
    assert [type(command) for command in sent] == [QueryHistory]


def test_home_shows_the_curve_of_before_a_restart(window_told: TellWindow, written: list[AnyEvent]) -> None:
    window, sent = window_told([]), list[AnyCommand]()
    window.commanded.connect(sent.append)
    window._store.take(ready(round=12))
    window._store.take(events.PhaseChanged(phase="paused", round=12))
    window._store.flush()
    query_types = [type(command) for command in sent]
    assert query_types.count(QueryHistory) == 1
    score = window.pages.of(HomePage).score
    assert not score.curve.isVisible()
    rounds = tuple(event.summary for event in written if isinstance(event, events.RoundCompleted))
    scores = tuple(events.HeldOutScore(round=number, at=1.0, right=number, total=40) for number in (0, 10))
    window._store.take(events.TrainingHistory(rounds=rounds, held_out=scores))
    window._store.flush()
    assert (score.curve.isVisible(), score.first_round.isVisible()) == (True, False)
    assert score.says.words() == "Your model solves 25 of 100 new questions. It\u00a0began\u00a0at\u00a00."
    window.show_page("progress")  # it has been asked for
    assert [type(command) for command in sent].count(QueryHistory) == 1


def test_progress_asks_again_after_a_hundred_rounds(window_told: TellWindow) -> None:
    window = window_told([])
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    window.show_page("progress")
    window._store.take(ready(round=1))
    window._store.take(events.PhaseChanged(phase="contributing", round=1))
    window.redraw()
    window._store.take(events.PhaseChanged(phase="contributing", round=101))
    window.redraw()
    assert len(sent) == 2


def test_progress_asks_no_engine_that_is_gone(window_told: TellWindow) -> None:
    window = window_told([ready(round=1), events.EngineGone(code=9, restarts=1)])
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    window.show_page("progress")
    assert sent == []


def test_closing_waits_for_the_engine(window_told: TellWindow, written: list[AnyEvent], qtbot: QtBot) -> None:
    window = window_told(written)
    with qtbot.waitSignal(window.closing):
        window.close()
    assert window.isVisible()


def test_a_replay_is_marked_on_every_page(window_told: TellWindow, written: list[AnyEvent]) -> None:
    window = window_told(written)
    window.show_replay(3)
    assert "Replay of a recorded run, 3 unknown lines skipped" in window.windowTitle()
    assert window.status._mark.isVisible()


def test_an_engine_that_no_window_started_is_said_to_go_on_without_this_one(
    window_told: TellWindow, written: list[AnyEvent]
) -> None:
    window = window_told([*written, Snapshot(state=State(phase="contributing", service=True))])
    assert window.status._mark.isVisible()
    window.grab()
    assert "so none stops it" in window.status._mark.toolTip(), "also once it was painted"
    window.show_shutdown()
    assert "keeps running" in window.status._notice.accessibleName()
    window = window_told(written)
    assert not window.status._mark.isVisible()


def test_starting_up_is_shown_in_words(window_told: TellWindow) -> None:
    story = list(Run(rounds=1).all_events())[:3]
    window = window_told(story)
    home = window.pages.of(HomePage)
    assert not home.hero.isVisible()
    assert home.score.start is not None
    assert [step._name.text() for step in home.score.start._steps][2] == "Loading the model", "said once"
    assert window.status._word.words() == "Getting ready", "the bar is not empty"
    assert window.status._word.isVisible()
    window.show_page("live")
    assert "Loading the model" in window.status._says.words()


def test_a_theme_changes_colours_and_no_face(
    window_told: TellWindow, story: list[AnyEvent], theme: Theme, qapp: QApplication
) -> None:
    window = window_told(failed(story), 1024, 640)  # the compact form, with the buttons of another state
    for page in PAGES:
        window.show_page(page)
        qapp.processEvents()
    window.show_page("home")
    assert [
        button for button in window.findChildren(Button) if button.font() not in (theme.font("label"), theme.font("strong"))
    ] == []
    faces = {widget: widget.font() for widget in window.findChildren(QWidget)}
    visible_widgets = (widget for widget in window.pages.of(HomePage).findChildren(QWidget) if widget.isVisible())
    hints = {widget: widget.sizeHint() for widget in visible_widgets}
    theme.use("dark")
    assert [widget for widget, face in faces.items() if widget.font() != face] == []
    assert [widget for widget, hint in hints.items() if widget.sizeHint() != hint] == []
    theme.use("light")


def test_the_sentence_of_a_problem_leads_to_where_it_is_mended(
    window_told: TellWindow, story: list[AnyEvent], qtbot: QtBot
) -> None:
    window = window_told(failed(story))
    (way,) = (button for button in window.status.findChildren(Button) if button.text() == "Go to Home")
    assert not way.isVisible(), "Home has the buttons themselves"
    window.show_page("peers")
    assert way.isVisible()
    way.setFocus()
    qtbot.keyClick(way, Qt.Key.Key_Space)
    assert window.page == "home"
    window.show_page("peers")
    window._store.take(events.PhaseChanged(phase="contributing", round=3))
    window._store.flush()
    assert not way.isVisible(), "there is no problem any more"


@pytest.mark.parametrize("width", [1024, 1440, 1700, 2560])
def test_the_content_of_every_page_begins_at_the_same_place(window_told: TellWindow, written: list[AnyEvent], width: int) -> None:
    window = window_told(written, width, 1000)
    begins = set()
    for page in PAGES:
        window.show_page(page)
        screenshot_when_still(window)
        arranged = window.pages[page]._arranged
        assert arranged is not None
        begins.add(arranged[0])
    assert len(begins) == 1


def test_a_long_word_in_the_rail_keeps_its_beginning(theme: Theme, qapp: QApplication) -> None:
    button = RailButton(theme, "settings", "Einstellungen")
    button.set_compact(True)
    assert button.text().startswith("Einst")
    assert button.text().endswith("…")
    assert (button.toolTip(), button.accessibleName()) == ("Einstellungen", "Einstellungen")
    button.set_compact(False)
    assert (button.text(), button.toolTip()) == ("Einstellungen", "")


@pytest.mark.parametrize("spoken", get_args(Language)[:3])
def test_no_word_of_the_rail_is_cut_in_a_language_that_ships(theme: Theme, qapp: QApplication, spoken: Language) -> None:
    translator.use(spoken)
    try:
        rail = NavigationRail(theme)
        rail.resize(rail.sizeHint().width(), SMALLEST[1] - theme.size["status"])
        for compact in (True, False):
            rail.set_compact(compact)
            assert [button.text() for button in rail.findChildren(RailButton) if "…" in button.text()] == []
    finally:
        translator.use("en")


@pytest.mark.parametrize("size", [(1077, 566), (1008, 732), (1280, 800)])
def test_the_rail_is_whole_in_a_window_that_opens_in_any_size(theme: Theme, qtbot: QtBot, size: tuple[int, int]) -> None:
    window = MainWindow(PageContext(theme))
    qtbot.addWidget(window)
    window.resize(*size)
    window.show()
    screenshot_when_still(window)
    for button in window.rail.findChildren(RailButton):
        assert button.visibleRegion().boundingRect() == button.rect(), button.text()


REFUSAL = (
    "There is not enough room on the disk for this model: 1.4 GB are needed, 0.9 GB are free. "
    "Remove a model that you do not train, or choose a smaller one."
)


def test_whoever_listens_hears_which_page_was_opened(
    window_told: TellWindow, story: list[AnyEvent], announcements: list[str]
) -> None:
    window = window_told(story)
    announcements.clear()
    for name in ("live", "live", "swarms", "home"):
        window.show_page(name)
    assert announcements == ["Live", "Swarms", "Home"]
    assert [page.accessibleName() for page in window.pages.built.values()] == ["Home", "Peers", "Swarms", "You", "Live"]


def test_the_focus_goes_to_the_page_and_to_nothing_else_on_the_way(
    window_told: TellWindow, story: list[AnyEvent], qapp: QApplication, qtbot: QtBot, theme: Theme, announcements: list[str]
) -> None:
    """A screen reader says whatever has the focus, if only for a moment."""
    window = window_told(story)
    window.activateWindow()
    qtbot.waitActive(window)
    focused = list[QWidget]()
    qapp.focusChanged.connect(lambda _before, now: focused.append(now))
    window.cover(WelcomePage(theme))
    announcements.clear()
    focused.clear()
    window.uncover()
    home = window.pages["home"]
    assert [widget for widget in focused if widget is not None] == [home]
    assert announcements == ["Training in First light, round 218."], "the state, which was said before the first questions"
    home.findChild(QPushButton).setFocus()
    focused.clear()
    announcements.clear()
    window.show_page("swarms")
    assert focused == [window.pages["swarms"]]
    assert announcements == [], "the focus says it"
    window.rail._buttons["swarms"].setFocus()
    window.show_page("peers")
    assert announcements == ["Peers"]


def test_two_states_that_are_one_to_a_person_are_said_once(
    window_told: TellWindow, story: list[AnyEvent], announcements: list[str]
) -> None:
    begins = next(place for place, event in enumerate(story) if isinstance(event, events.PhaseChanged))
    window = window_told(story[: begins + 1])
    for reach in ("connecting", "alone"):
        window._store.take(events.ReachChanged(reach=reach, peers=0))
        window._store.flush()
    assert announcements.count("Training in First light begins in a moment.") == 1


def test_the_rail_says_how_it_is_used_and_a_page_its_keys(window_told: TellWindow, story: list[AnyEvent]) -> None:
    rail = window_told(story).rail
    assert rail.accessibleName() == "Pages; arrow keys go up and down"
    assert (rail._buttons["live"].accessibleName(), rail._buttons["live"].accessibleDescription()) == ("Live", "Ctrl+2")
    for page, button in rail._buttons.items():
        interface = QAccessible.queryAccessibleInterface(button)
        assert interface.role() == QAccessible.Role.RadioButton, "one of several"
        assert bool(interface.state().checked) == (page == "home")


def test_a_notice_takes_the_place_of_the_sentence_and_is_read_out(
    window_told: TellWindow, story: list[AnyEvent], qapp: QApplication, announcements: list[str]
) -> None:
    window = window_told(story, 1024, 640)
    window.show_page("peers")  # Home says the sentence itself
    announcements.clear()
    window.notices.show(REFUSAL)
    qapp.processEvents()
    status = window.status
    assert status._notice.width() == status._notice.sizeHint().width(), "all of it is seen in the smallest window"
    assert not status._says.isVisible()
    assert announcements == [REFUSAL]
    assert window.notices._end.interval() > 10_000, "so many words need their time"
    window.notices.show(REFUSAL * 2)
    qapp.processEvents()
    window.grab()
    assert REFUSAL * 2 in status._notice.toolTip(), "what is cut can be read all the same"
    window.notices._hide()
    qapp.processEvents()
    assert status._says.isVisible()
    assert not status._notice.isVisible()


def test_only_what_went_wrong_has_the_sign_of_a_warning(window_told: TellWindow, story: list[AnyEvent], tmp_path: Path) -> None:
    window = window_told(story)
    notice = window.status._notice
    window.show_refusal("This round is the last.", "Pause now instead.")
    assert notice._content[1:] == ("accent", "warn")
    window.pages.of(YouPage).save_card(tmp_path / "card.png")
    assert notice._content == (f"Saved to {tmp_path / 'card.png'}", "plain", "check")
    window.pages.of(YouPage).save_card(tmp_path / "nowhere" / "card.png")
    assert notice._content[1:] == ("accent", "warn")
    window.show_shutdown()
    assert notice._content == ("Finishing this step, then closing.", "plain", "")


class Laid(QObject):
    """Records which widgets were laid out or painted."""

    def __init__(self) -> None:
        super().__init__()
        self.events_seen: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Paint):
            self.events_seen.append(f"{event.type().name} {type(watched).__name__}")
        return False


@pytest.mark.parametrize("page", PAGES)
def test_what_did_not_change_is_neither_laid_out_nor_painted_again(
    window_told: TellWindow, theme: Theme, story: list[AnyEvent], qapp: QApplication, page: str
) -> None:
    theme.less_motion = "on"  # a lesson in flight does change
    window = window_told(story)
    window.show_page(page)
    screenshot_when_still(window)
    window.redraw()
    laid = Laid()
    qapp.installEventFilter(laid)
    for _ in range(20):  # a layout that was asked for goes up one parent a turn
        laid.events_seen.clear()
        qapp.processEvents()
        if not laid.events_seen:
            break
    for _ in range(3):
        window.redraw()
        for _ in range(3):
            qapp.processEvents()
    qapp.removeEventFilter(laid)
    assert laid.events_seen == []


def test_a_minimised_window_costs_nothing_and_catches_up(
    window_told: TellWindow, written: list[AnyEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    window = window_told(written)
    drawn: list[str] = []
    monkeypatch.setattr(window.pages.of(HomePage), "show_state", lambda state, now: drawn.append(state.phase))
    window.showMinimized()
    window.redraw()
    assert drawn == []
    window.showNormal()
    assert drawn


def test_the_keys_that_help_promises_work_whatever_has_the_focus(
    window_told: TellWindow, written: list[AnyEvent], qtbot: QtBot
) -> None:
    window = window_told(written)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    pressed, ctrl = qtbot.keyClick, Qt.KeyboardModifier.ControlModifier
    for place, name in enumerate(PAGES):
        pressed(window, Qt.Key(Qt.Key.Key_0 + (place + 1) % 10), ctrl)
        assert window.page == name
    for key, modifier, name in ((Qt.Key.Key_Comma, ctrl, "settings"), (Qt.Key.Key_F1, Qt.KeyboardModifier.NoModifier, "help")):
        pressed(window, key, modifier)
        assert window.page == name
    for name in ("settings", "help"):
        window.rail._buttons[name].click()
        window.setFocus()
        pressed(window, Qt.Key.Key_F, ctrl)
        field = window.focusWidget()
        assert isinstance(field, QLineEdit)
        assert window.pages[name].isAncestorOf(field)
        assert not field.visibleRegion().isEmpty()
    for signal, key in ((window.commanded, Qt.Key.Key_P), (window.closing, Qt.Key.Key_W), (window.leave_wanted, Qt.Key.Key_Q)):
        with qtbot.waitSignal(signal):
            pressed(window, key, ctrl)
    help_words = " ".join(label.text() for label in window.pages["help"].findChildren(QLabel))
    for promised in (
        shortcuts.QUIT,
        shortcuts.CLOSE,
        shortcuts.PAUSE,
        shortcuts.FIND,
        shortcuts.page(1),
        *shortcuts.USUAL.values(),
        shortcuts.page(len(PAGES)),
        f"{shortcuts.MUTE}, {shortcuts.BLOCK}",
    ):
        assert promised in help_words


@pytest.mark.parametrize("key", [Qt.Key.Key_P, Qt.Key.Key_W, Qt.Key.Key_Q])
def test_a_key_that_is_held_asks_once(window_told: TellWindow, written: list[AnyEvent], qtbot: QtBot, key: Qt.Key) -> None:
    window = window_told(written)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    commands: list[object] = []
    for signal in (window.commanded, window.closing, window.leave_wanted):
        signal.connect(lambda *what: commands.append(what))
    for repeated in (False, True, True):
        QTest.simulateEvent(window, True, key, Qt.KeyboardModifier.ControlModifier, "", repeated, -1)
    assert len(commands) == 1


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of a menu
@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_presses_the_button_that_has_the_focus_and_a_held_key_presses_once(
    window_told: TellWindow, written: list[AnyEvent], qtbot: QtBot, key: Qt.Key
) -> None:
    window = window_told([*written, events.PhaseChanged(phase="contributing", round=9, at=5.0)])
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    hero, pressed = window.pages.of(HomePage).hero, list[bool]()
    hero._main.clicked.connect(lambda: pressed.append(True))
    hero._main.setFocus()
    for repeated in (False, True, True):
        QTest.simulateEvent(window.focusWidget(), True, key, Qt.KeyboardModifier.NoModifier, "\r", repeated, -1)
    assert len(pressed) == 1
    hero._more.setFocus()
    qtbot.keyClick(window.focusWidget(), key)
    qtbot.waitUntil(hero._more.menu().isVisible)
    hero._more.menu().close()


def test_the_key_for_pausing_never_overwrites_what_was_copied(
    window_told: TellWindow, written: list[AnyEvent], qapp: QApplication
) -> None:
    problem = events.EngineFailed(title="Out of memory.", advice="Close something.", detail="line one")
    window = window_told([*written, problem])
    qapp.clipboard().setText("mine")
    window._pause_or_resume()
    assert qapp.clipboard().text() == "mine"


def test_the_report_on_home_is_that_of_help(theme: Theme, qapp: QApplication, qtbot: QtBot, tmp_path: Path) -> None:
    current, journal = StateStore(), EventLog()
    window = MainWindow(PageContext(theme, store=current, event_log=journal, engine=EngineHost(home=Home(tmp_path))))
    qtbot.addWidget(window)
    window.show()
    event = events.EngineFailed(title="The folder cannot be written.", advice="Make room.", detail=f"in {tmp_path}/state", at=1.0)
    current.take(event)
    journal.take(event)
    current.flush()
    window.pages.of(HomePage).hero._main.click()
    copied = qapp.clipboard().text()
    assert "Log, newest first:" in copied
    assert "Failed: The folder cannot be written." in copied
    assert str(tmp_path) not in copied
    window.show_page("help")
    page = window.pages["help"]
    assert isinstance(page, HelpPage)
    assert page._report._text.toPlainText() == copied
