"""The first start: two steps by mouse and keyboard, each can be skipped, safe defaults, shown once only."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import shiboken6
from msgspec.structs import replace
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

import waggle
from gui.answers import record_commands
from gui.application.test_controller import visible_actions
from gui.pages.swarms.test_page import is_previewing
from waggle.core import login_start, settings
from waggle.core.errors import SwarmError
from waggle.core.paths import Home
from waggle.core.settings import profile_of
from waggle.gui.application.controller import Controller
from waggle.gui.application.main import needs_welcome
from waggle.gui.application.main_window import SMALLEST
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.engine_client.first_model import first_model
from waggle.gui.i18n import translator
from waggle.gui.pages.swarms.page import SwarmsPage
from waggle.gui.pages.welcome.page import ALONE, FIRST_LIGHT, FIRST_STEPS, INVITED, STEPS, SWARM, WelcomePage
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets import system_tray
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.network.messages import invite
from waggle.protocol.commands import ChooseModel, ChooseSwarm, ReadInvite
from waggle.protocol.events import SwarmSuggestion
from waggle.protocol.events_models import ModelOffer
from waggle.tasks.shipped_swarms import first_steps, first_swarm

FAKE = Path(__file__).parents[2] / "fake_engine.py"
pytestmark = pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support")  # the platform without a screen says so


@pytest.fixture
def started(theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Controller]:
    """A controller at its first start, with an engine that answers."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(waggle.__file__).parents[1]}{os.pathsep}{FAKE.parents[1]}")
    home = Home(tmp_path)
    engine = EngineProcess(lambda: [sys.executable, str(FAKE), "well"], farewell=2.0)
    shell = Controller(theme, StateStore(), engine, SettingsStore(home.settings, send=engine.send), home)
    shell.begin(None, first=True)
    yield shell
    with qtbot.waitSignal(shell.finished, timeout=20_000):
        shell.leave()
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


def welcome_of(shell: Controller) -> WelcomePage:
    welcome = shell.window.findChild(WelcomePage)
    assert isinstance(welcome, WelcomePage)
    return welcome


def test_the_first_choice_names_the_swarm_and_says_that_nobody_is_there(theme: Theme, qtbot: QtBot) -> None:
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    first = welcome._choices[0]._button
    assert first.text() == f"{first_swarm().name}, the default swarm"
    assert "you train alone until someone does" in first.accessibleDescription()


def test_continue_start_and_the_first_round_begins(started: Controller, qtbot: QtBot, tmp_path: Path) -> None:
    welcome = welcome_of(started)
    for step in range(len(STEPS)):
        assert welcome._pages.currentIndex() == step
        qtbot.mouseClick(welcome._next, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: started._store.state.phase == "contributing", timeout=20_000)
    chosen = settings.read(tmp_path / "settings.toml")
    assert profile_of(chosen, os.cpu_count() or 1) == "quiet"
    assert chosen.when.only_on_power
    assert not chosen.swarm.solo
    assert not needs_welcome(Home(tmp_path), SettingsStore(tmp_path / "settings.toml"), ())


def test_what_is_chosen_is_kept(started: Controller, qtbot: QtBot, tmp_path: Path) -> None:
    welcome = welcome_of(started)
    qtbot.keyClick(welcome._next, Qt.Key.Key_Return)
    assert welcome._much.text().startswith("Uses a quarter of the processor's cores")
    welcome._profile.choose(2)
    assert welcome._much.text().startswith("Everything this computer has.")
    qtbot.mouseClick(welcome._power, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(welcome._choices[1], Qt.MouseButton.LeftButton)
    qtbot.mouseClick(welcome._back, Qt.MouseButton.LeftButton)
    for _ in STEPS:
        qtbot.mouseClick(welcome._next, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: started._store.state.phase == "contributing", timeout=20_000)
    chosen = settings.read(tmp_path / "settings.toml")
    assert chosen.computer.priority == "normal"
    assert not chosen.when.only_on_power
    assert chosen.swarm.solo


def test_enter_goes_on_from_the_first_question_on(started: Controller, qtbot: QtBot) -> None:
    welcome = welcome_of(started)
    for step in range(len(STEPS) - 1):
        focused = started.window.focusWidget()
        assert focused is not None
        qtbot.keyClick(focused, Qt.Key.Key_Return)
        assert welcome._pages.currentIndex() == step + 1


def test_skipping_takes_the_safe_defaults(started: Controller, qtbot: QtBot, tmp_path: Path) -> None:
    qtbot.mouseClick(welcome_of(started)._skip, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: started._store.state.phase == "contributing", timeout=20_000)
    chosen = settings.read(tmp_path / "settings.toml")
    assert chosen.window.welcomed
    assert chosen.when == settings.ScheduleSettings()


def test_the_tray_says_what_is_waited_for_until_the_questions_are_answered(started: Controller, qtbot: QtBot) -> None:
    started._store.flush()
    assert visible_actions(started.tray) == ["A few questions come first, in the window.", "Open Waggle", "Quit"]
    assert started.tray.icon.toolTip() == "Waggle: A few questions come first, in the window."
    qtbot.mouseClick(welcome_of(started)._skip, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "Pause" in visible_actions(started.tray), timeout=20_000)


def test_an_invite_is_looked_at_not_joined(started: Controller, qtbot: QtBot) -> None:
    welcome, commands = welcome_of(started), record_commands(started._client)
    welcome._choose(2)
    welcome._link.setText(" waggle://join?charter=ab ")
    for _ in STEPS:
        welcome._next.click()
    assert started.window.page == "swarms"
    assert started.window.pages.of(SwarmsPage).join_view._link.text() == "waggle://join?charter=ab"
    qtbot.waitUntil(lambda: is_previewing(started.window.pages.of(SwarmsPage)), timeout=20_000)
    assert not any(isinstance(command, ChooseSwarm) for command in commands)


OFFER = ModelOffer(name="bees/small", title="Small", licence="Apache-2.0", bytes=273_000_000)


@pytest.mark.parametrize("chosen", [True, False])
def test_a_real_model_is_offered_and_downloaded_only_if_it_is_chosen(
    started: Controller, qtbot: QtBot, tmp_path: Path, chosen: bool
) -> None:
    welcome, sent = welcome_of(started), record_commands(started._client)
    assert welcome._trained.isHidden(), "not before this computer was measured"
    welcome.offer_model(OFFER)
    words = [label.text() for label in welcome._trained.findChildren(QLabel)]
    assert words == [
        "Train a bigger model: Small",
        "It already knows language. 273 MB to download; until it is here, Waggle trains its tiny starter.",
    ]
    assert not welcome.train_real.isChecked()
    if chosen:
        welcome.train_real.click()
    for _ in STEPS:
        welcome._next.click()
    qtbot.waitUntil(lambda: started._shown_state.ready is not None, timeout=20_000)
    names = [command.name for command in sent if isinstance(command, ChooseModel)]
    assert names == (["bees/small"] if chosen else [])
    assert settings.read(tmp_path / "settings.toml").model.name == "", "the starter trains until the other model is here"


BETTER = SwarmSuggestion(charter=first_steps().digest.hex(), name=first_steps().name)
REAL = replace(OFFER, swarm=BETTER)


def choose_model(welcome: WelcomePage, *, real: bool) -> None:
    if welcome.train_real.isChecked() != real:
        welcome.train_real.click()


def offered_swarms(welcome: WelcomePage) -> list[str]:
    """The titles of what is offered under "With whom?", from top to bottom."""
    choices = [choice for choice in welcome._choices if not choice.isHidden()]
    return [choice._button.text() for choice in sorted(choices, key=lambda choice: choice.y())]


def test_with_the_real_model_first_steps_is_the_first_choice_and_with_the_starter_first_light(theme: Theme, qtbot: QtBot) -> None:
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    welcome.show()
    welcome.offer_model(REAL)
    welcome._go(SWARM)
    assert (offered_swarms(welcome)[0], welcome._swarm_chosen) == ("First light, the default swarm", FIRST_LIGHT)
    choose_model(welcome, real=True)
    screenshot_when_still(welcome)
    assert (offered_swarms(welcome)[0], welcome._swarm_chosen) == ("First steps, suited to Small", FIRST_STEPS)
    assert offered_swarms(welcome)[1] == "First light", "the default is another one then"
    assert len(offered_swarms(welcome)) == 4
    choose_model(welcome, real=False)
    assert (len(offered_swarms(welcome)), welcome._swarm_chosen) == (3, FIRST_LIGHT)


def test_its_words_are_those_of_its_charter(theme: Theme, qtbot: QtBot) -> None:
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    button = welcome._choices[FIRST_STEPS]._button
    assert button.text() == first_steps().name
    assert ("Five easier kinds of question" in button.accessibleDescription(), len(first_steps().specialties)) == (True, 5)


@pytest.mark.parametrize("place", [ALONE, INVITED])
def test_a_swarm_that_the_person_chose_stays_chosen(theme: Theme, qtbot: QtBot, place: int) -> None:
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    welcome.offer_model(REAL)
    welcome._choose(place)
    for real in (True, False):
        choose_model(welcome, real=real)
        assert welcome._swarm_chosen == place


def test_a_model_for_which_first_light_is_right_gets_no_other_choice(theme: Theme, qtbot: QtBot) -> None:
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    welcome.offer_model(OFFER)
    choose_model(welcome, real=True)
    assert (len(offered_swarms(welcome)), welcome._swarm_chosen) == (3, FIRST_LIGHT)


@pytest.mark.parametrize(
    ("place", "goes"), [(FIRST_STEPS, True), (ALONE, True), (FIRST_LIGHT, False), (INVITED, False)],
)  # fmt: skip
def test_the_engine_goes_to_first_steps_at_once_and_the_model_is_downloaded_there(
    started: Controller, qtbot: QtBot, place: int, goes: bool
) -> None:
    """Alone, too, the model practises what suits it."""
    welcome, sent = welcome_of(started), record_commands(started._client)
    welcome.offer_model(REAL)
    choose_model(welcome, real=True)
    welcome._choose(place)
    welcome._link.setText("waggle://join?charter=ab")
    for _ in STEPS:
        welcome._next.click()
    qtbot.waitUntil(lambda: any(isinstance(command, ChooseModel) for command in sent), timeout=20_000)
    choices = [command for command in sent if isinstance(command, ChooseModel | ChooseSwarm)]
    assert [type(command) for command in choices] == ([ChooseSwarm] if goes else []) + [ChooseModel]
    assert not goes or choices[0] == ChooseSwarm(id=choices[0].id, charter=first_steps().digest.hex())


@pytest.mark.parametrize("spoken", ["en", "de"])
@pytest.mark.parametrize("place", [FIRST_STEPS, INVITED])
def test_four_choices_fit_into_the_smallest_window(theme: Theme, qtbot: QtBot, spoken: translator.Language, place: int) -> None:
    translator.use(spoken)
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    welcome.resize(*SMALLEST)
    welcome.show()
    welcome.offer_model(REAL)
    choose_model(welcome, real=True)
    welcome._choose(place)
    welcome._go(SWARM)
    screenshot_when_still(welcome)
    page = welcome._pages.currentWidget()
    assert isinstance(page, ScrollArea)
    lowest = max(choice.mapTo(page, choice.rect().bottomLeft()).y() for choice in welcome._choices if choice.isVisible())
    assert lowest <= page.height(), "the rest has good defaults, and scrolls"


def test_what_the_first_start_offers_is_measured_in_a_process(qtbot: QtBot) -> None:
    search = asyncio.get_running_loop().create_task(first_model())
    qtbot.waitUntil(search.done, timeout=60_000)
    offer = search.result()
    assert offer is None or (offer.fits and not offer.gated), "none on a slow computer"


def test_what_is_pasted_around_an_invite_is_left(started: Controller, qtbot: QtBot) -> None:
    pasted, asked_for = "Join us: waggle://join?charter=ab. Yours, Anna", ["waggle://join?charter=ab. Yours, Anna"]
    welcome, commands = welcome_of(started), record_commands(started._client)
    welcome._choose(2)
    welcome._link.setText(pasted)
    for _ in STEPS:
        welcome._next.click()
    assert started.window.pages.of(SwarmsPage).join_view._link.text() == pasted
    qtbot.waitUntil(
        lambda: [command.link for command in commands if isinstance(command, ReadInvite)] == asked_for, timeout=20_000
    )


def test_whoever_listens_hears_which_step_this_is(theme: Theme, qtbot: QtBot, announcements: list[str]) -> None:
    """And what stands on it: the focus is on a button behind all that."""
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    assert announcements == [], "nobody sees it yet"
    welcome.show()
    announcements.clear()
    welcome._next.click()
    welcome._back.click()
    welcome._next.click()
    second, first, second_anew = announcements
    assert first.startswith("Step 1 of 2: What it does. Let your computer learn with others. Waggle trains ")
    assert "Stays on this computer. Your files. " in first
    assert second.startswith("Step 2 of 2: With whom. A swarm is a group of computers ")
    chosen = "First light, the default swarm. Nine specialties. Anyone may join; you train alone until someone does."
    assert second.endswith(chosen)
    assert second_anew == second
    welcome._choose(ALONE)
    announcements.clear()
    QApplication.sendEvent(welcome, QEvent(QEvent.Type.WindowActivate))
    (returned,) = announcements
    assert returned.endswith("Only this computer. No answers are shared. You can join a swarm later.")


def test_tab_reaches_every_choice_also_with_an_offered_model(theme: Theme, qtbot: QtBot) -> None:
    """Once, the switch of the offer was the last stop, from which Tab led back to the button before it."""
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    welcome.show()
    welcome.activateWindow()
    qtbot.waitActive(welcome)
    welcome.offer_model(REAL)
    welcome._next.click()
    names = list[str]()
    while (focused := welcome.focusWidget()) is not None and focused.accessibleName() not in names:
        names.append(focused.accessibleName())
        qtbot.keyClick(focused, Qt.Key.Key_Tab)
    choices = ["First light, the default swarm", "Only this computer", "I was invited"]
    use = [name for name in names if name.startswith("Use of this computer")]  # one stop, or three if the platform tells no focus
    assert use
    assert [name for name in names if name not in (*use, "Start when I log in", "Stay in the tray when closed")] == [
        "Start", "Train a bigger model: Small", *choices, "Pause on battery", "Skip set-up", "Back",
    ]  # fmt: skip


def test_a_screen_reader_calls_each_choice_one_of_several(theme: Theme, qtbot: QtBot) -> None:
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    for chosen in (ALONE, FIRST_LIGHT):
        welcome._choose(chosen)
        assert [choice._button.isChecked() for choice in welcome._choices] == [place == chosen for place in range(4)]
    buttons = [*(choice._button for choice in welcome._choices), *welcome._profile.parts()]
    roles = {QAccessible.queryAccessibleInterface(button).role() for button in buttons}
    assert roles == {QAccessible.Role.RadioButton}


@pytest.mark.parametrize("pasted", ["tomorrow", "waggle:hello", "https://example.org/?waggle://join"])
def test_what_is_no_invite_is_refused_where_it_is_pasted(theme: Theme, qtbot: QtBot, pasted: str) -> None:
    welcome, done = WelcomePage(theme), list[object]()
    qtbot.addWidget(welcome)
    welcome.done.connect(done.append)
    welcome._go(SWARM)
    welcome._choose(2)
    welcome._link.setText(pasted)
    welcome._next.click()
    assert (welcome._pages.currentIndex(), done) == (SWARM, [])
    with pytest.raises(SwarmError) as refused:
        invite.read(pasted)
    assert welcome._refused.text() == f"{refused.value.title} {refused.value.advice}", "what the engine would say"
    assert not welcome._refused.isHidden()
    welcome._link.setText("waggle://join?charter=ab")
    assert welcome._refused.isHidden()
    welcome._next.click()
    assert len(done) == 1


def test_who_was_invited_goes_on_with_a_link(theme: Theme, qtbot: QtBot) -> None:
    welcome, done = WelcomePage(theme), list[object]()
    qtbot.addWidget(welcome)
    welcome.done.connect(done.append)
    welcome._next.click()
    welcome._choose(2)
    assert (welcome._next.isEnabled(), welcome._hint.text()) == (False, "Paste the link first.")
    welcome._link.setText("waggle://join?charter=ab")
    assert welcome._next.isEnabled()
    welcome._link.clear()
    assert not welcome._next.isEnabled()
    welcome._choose(0)
    assert (welcome._next.isEnabled(), welcome._hint.text(), done) == (True, "", [])


def test_enter_starts_once_from_the_link_however_long_it_is_held(theme: Theme, qtbot: QtBot) -> None:
    welcome, done = WelcomePage(theme), list[object]()
    qtbot.addWidget(welcome)
    welcome.done.connect(done.append)
    welcome.show()
    welcome._next.click()
    welcome._choose(2)
    qtbot.keyClick(welcome.focusWidget(), Qt.Key.Key_Return)
    assert done == [], "there is no link yet"
    welcome._link.setText("waggle://join?charter=ab")
    for repeated in (False, True, True):
        QTest.simulateEvent(welcome.focusWidget(), True, Qt.Key.Key_Return, Qt.KeyboardModifier.NoModifier, "\r", repeated, -1)
    assert len(done) == 1


def labels(widget: QWidget) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel)]


@pytest.mark.parametrize("text_percent", [100, 200])
@pytest.mark.parametrize("spoken", ["en", "de"])
def test_no_words_are_cut_in_the_smallest_window(
    theme: Theme, qtbot: QtBot, spoken: translator.Language, text_percent: int
) -> None:
    translator.use(spoken)
    theme.set_text(text_percent)
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    welcome.resize(*SMALLEST)
    welcome.show()
    welcome._choose(2)
    for step in range(len(STEPS)):
        welcome._go(step)
        screenshot_when_still(welcome)
        page = welcome._pages.currentWidget()
        assert isinstance(page, ScrollArea)
        wrapped = [label for label in page.findChildren(QLabel) if label.isVisible() and label.wordWrap()]
        assert [label.text() for label in wrapped if label.height() < label.heightForWidth(label.width())] == []
        assert text_percent > 100 or page.verticalScrollBar().maximum() == 0


@pytest.mark.parametrize(
    ("system", "has_tray", "where"),
    [
        ("linux", True, "on Home, in the tray, or"),
        ("darwin", True, "on Home, in the menu bar, or"),
        ("linux", False, "on Home or with"),
    ],
)
def test_where_one_pauses_has_the_name_that_the_system_gives_it_and_is_there(
    theme: Theme, monkeypatch: pytest.MonkeyPatch, system: str, has_tray: bool, where: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(system_tray, "available", lambda: has_tray)
    words = labels(WelcomePage(theme))
    assert any(where in label for label in words)
    assert any("continues while the window is closed" in label for label in words) == has_tray, "else closing it ends all"


def test_what_one_types_is_not_said_to_stay_where_it_may_be_shared(theme: Theme) -> None:
    assert "What you type, unless you share it" in labels(WelcomePage(theme))


def test_closing_the_questions_ends_all_and_they_are_asked_again(
    theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    """This holds with a tray, too: nothing would continue in the background."""
    monkeypatch.setattr(system_tray, "available", lambda: True)  # no test can have a system's tray come and go
    home = Home(tmp_path)
    engine = EngineProcess(lambda: [sys.executable, str(FAKE), "well"])
    shell = Controller(theme, StateStore(), engine, SettingsStore(home.settings, send=engine.send), home)
    shell.begin(None, first=True)
    with qtbot.waitSignal(shell.finished):
        shell.window.close()
    assert needs_welcome(home, SettingsStore(home.settings), ())
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


def test_only_a_new_home_is_asked(tmp_path: Path) -> None:
    fresh, known, chosen = (Home(tmp_path / name) for name in ("fresh", "known", "chosen"))
    for home in (fresh, known, chosen):
        home.prepare()
    known.identity.touch()
    chosen.settings.touch()
    assert needs_welcome(fresh, SettingsStore(fresh.settings), ())
    assert not needs_welcome(fresh, SettingsStore(fresh.settings), ("swarm.solo=true",))
    assert not needs_welcome(known, SettingsStore(known.settings), ())
    assert not needs_welcome(chosen, SettingsStore(chosen.settings), ())


def test_everything_in_the_first_start_has_a_name(theme: Theme, qtbot: QtBot) -> None:
    welcome = WelcomePage(theme)
    qtbot.addWidget(welcome)
    focusable = [each for each in welcome.findChildren(QWidget) if each.focusPolicy() & Qt.FocusPolicy.TabFocus]
    assert [each for each in focusable if not each.accessibleName()] == []


def test_the_key_that_pauses_starts_nothing_before_the_questions_are_answered(started: Controller) -> None:
    QTest.keyClick(started.window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)
    assert not started._source.is_running  # type: ignore[union-attr]


def test_nothing_starts_at_a_login_unless_the_person_says_so_where_the_system_can(
    theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    for has_login, has_tray in ((True, True), (False, False)):
        monkeypatch.setattr(login_start, "is_offered", lambda has_login=has_login: has_login)
        monkeypatch.setattr(system_tray, "available", lambda has_tray=has_tray: has_tray)
        page = WelcomePage(theme)
        rows = page._at_login.parentWidget(), page._in_tray.parentWidget()
        assert [row.isHidden() for row in rows] == [not has_login, not has_tray]
        assert (page.values()["window.at_login"], page.values()["window.close_to_tray"]) == ("nothing", True)
        page._at_login.click()
        page._in_tray.click()
        assert (page.values()["window.at_login"], page.values()["window.close_to_tray"]) == ("window", False)
        page.deleteLater()
