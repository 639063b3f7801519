"""Home asks about a model that changed or is away, or a lost swarm, with two buttons; nothing else answers for a person."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from gui.answers import refuse
from gui.conftest import TellWindow
from waggle.core import settings
from waggle.core.message import Message
from waggle.core.settings import ModelSettings
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.context import EngineHost, PageContext
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.home.status_card import StatusCard, progress_words
from waggle.gui.pages.models.page import ModelsPage
from waggle.gui.pages.swarms.page import SwarmsPage
from waggle.gui.state import chart_series
from waggle.gui.state.day_query import QueryWhileWaiting
from waggle.gui.state.notifications import new_notices
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.protocol import events
from waggle.protocol.commands import AnyCommand, ChangeSettings, ChooseModel, ChooseSwarm, DecideTraining, ListModels, ListSwarms
from waggle.protocol.events_guards import Guard
from waggle.protocol.events_models import ModelChanged, ModelUnavailable
from waggle.protocol.events_swarms import KnownSwarms, StartedAgain, SwarmDetails, SwarmUndecided
from waggle.protocol.state import State, apply

PREPARING = events.Preparing(part="Looking for the model", done=0, parts=5, at=5.0)
CHANGED = ModelChanged(model="mine", rounds=120, fits=True, is_whole=True, at=6.0)


def buttons(card: StatusCard) -> list[str]:
    return [button.text() for button in (card._second, card._main, card._more) if button.isVisible()]


def asking(window_told: TellWindow, changed: ModelChanged) -> tuple[MainWindow, StatusCard, list[AnyCommand]]:
    window, sent = window_told([PREPARING, changed]), list[AnyCommand]()
    window.commanded.connect(sent.append)
    return window, window.pages.of(HomePage).hero, sent


def decisions(sent: list[AnyCommand]) -> list[str]:
    return [command.choice for command in sent if isinstance(command, DecideTraining)]


@pytest.mark.parametrize(("press", "choice"), [("_main", "keep"), ("_second", "anew")])
def test_both_answers_have_a_button_and_go_out_once(press: str, choice: str, window_told: TellWindow) -> None:
    window, card, sent = asking(window_told, CHANGED)
    assert card._says.text() == "mine has changed since you trained it"
    assert "120 rounds" in card._detail.text()
    assert progress_words(window._store.state) == ("", 0, 0), "nothing moves"
    assert buttons(card) == ["Start over", "Keep my training"]
    getattr(card, press).click()
    getattr(card, press).click()
    assert decisions(sent) == [choice]
    refuse(window, "Not now.", "")
    getattr(card, press).click()
    assert decisions(sent) == [choice, choice]


def test_what_cannot_be_kept_offers_to_begin_anew_or_another_model(window_told: TellWindow) -> None:
    window, card, sent = asking(window_told, replace(CHANGED, fits=False))
    assert buttons(card) == ["Choose another model", "Start over"]
    card._second.click()
    assert (window.page, decisions(sent)) == ("models", [])
    models = window.pages.of(ModelsPage)
    models._field.edit.setText("Qwen/Tiny")
    assert (models.isVisible(), models._field._act.isEnabled()) == (True, True), "the engine takes a choice while it waits"
    assert any(isinstance(command, ListModels) for command in sent)
    card._main.click()
    assert decisions(sent) == ["anew"]


def test_the_pause_key_answers_nothing(window_told: TellWindow, qtbot: QtBot) -> None:
    window, _, sent = asking(window_told, CHANGED)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)
    assert decisions(sent) == []


def test_the_question_is_notified_once_and_gone_when_the_engine_restarts() -> None:
    before = apply(State(), PREPARING)
    after = apply(before, CHANGED)
    (notice,) = new_notices(before, after)
    assert notice.title.startswith("mine has changed")
    assert new_notices(after, after) == []
    assert apply(after, StartedAgain(reason="Going on with mine.")).changed is None
    assert apply(after, PREPARING).changed is None


UNDECIDED = SwarmUndecided(why="unknown", known=("Anna's home (private)", "First light"), at=6.0)
ANNAS = SwarmDetails(charter="ab" * 32, name="Anna's home", specialties=(), private=True, known=True)


def test_a_swarm_that_is_not_known_any_more_is_asked_for_with_the_list_and_alone_as_answers(window_told: TellWindow) -> None:
    window, sent = window_told([PREPARING, UNDECIDED]), list[AnyCommand]()
    window.commanded.connect(sent.append)
    card = window.pages.of(HomePage).hero
    assert card._says.text() == "Waggle cannot tell which of your swarms you trained in"
    assert progress_words(window._store.state) == ("", 0, 0), "nothing moves"
    assert buttons(card) == ["Train alone for now", "Choose a swarm"]
    card._second.click()
    card._second.click()
    assert [command.values for command in sent if isinstance(command, ChangeSettings)] == [{"swarm.solo": True}]
    card._main.click()
    assert window.page == "swarms"
    assert [type(command) for command in sent].count(ListSwarms) == 1
    window._store.take(KnownSwarms(swarms=(ANNAS,), seq=9, at=7.0))
    window.redraw()
    swarms = window.pages.of(SwarmsPage)
    assert swarms._line.words() == "Waggle cannot tell which of your swarms you trained in: choose one"
    assert (swarms._alone.isVisible(), swarms._ask_others.isVisible()) == (True, False)
    (go,) = (button for button in swarms._list.findChildren(Button) if button.text() == "Train in Anna's home")
    assert go.property("kind") == "primary"
    sentences = [label.text() for label in swarms._list.findChildren(QLabel)]
    assert sentences.count("Probably this one: you joined it yourself.") == 1
    swarms._alone.click()
    assert [command.values for command in sent if isinstance(command, ChangeSettings)] == [{"swarm.solo": True}] * 2
    swarms.join_view.preview_known(ANNAS.charter)
    swarms.join_view._join(ANNAS.charter, None)
    assert [command.charter for command in sent if isinstance(command, ChooseSwarm)] == [ANNAS.charter]


def test_a_lost_swarm_is_notified_once_and_the_pause_key_answers_nothing(window_told: TellWindow, qtbot: QtBot) -> None:
    before = apply(State(), PREPARING)
    after = apply(before, UNDECIDED)
    (notice,) = new_notices(before, after)
    assert notice.title.startswith("Waggle cannot tell")
    assert new_notices(after, after) == []
    assert apply(after, StartedAgain(reason="Going to Anna's home.")).undecided is None
    window, sent = window_told([PREPARING, UNDECIDED]), list[AnyCommand]()
    window.commanded.connect(sent.append)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)
    assert not [command for command in sent if isinstance(command, ChangeSettings)]
    assert window.page == "home"


AWAY = ModelUnavailable(
    folder="/media/usb/mine", reason="There is no model in /media/usb/mine.", advice="Check its path.", at=6.0
)


def test_a_model_that_is_not_there_is_waited_for_with_the_starter_and_another_one_as_answers(window_told: TellWindow) -> None:
    window, sent = window_told([PREPARING, AWAY]), list[AnyCommand]()
    window.commanded.connect(sent.append)
    card = window.pages.of(HomePage).hero
    assert card._says.text() == "Your model is not available right now"
    assert card._detail.text().startswith("There is no model in /media/usb/mine. Check its path.")
    assert "Waggle looks again every few seconds and continues by itself." in card._detail.text()
    assert card._main.property("kind") == "plain", "what brings the folder back is no button"
    assert buttons(card) == ["Train Waggle's tiny starter", "Choose another model"]
    card._second.click()
    card._second.click()
    assert [(command.name, command.folder) for command in sent if isinstance(command, ChooseModel)] == [("", "")]
    card._main.click()
    assert window.page == "models"
    models = window.pages.of(ModelsPage)
    models._field.edit.setText("Qwen/Tiny")
    assert models._field._act.isEnabled(), "the engine takes a choice while it waits"
    window._store.take(replace(PREPARING, seq=9, at=7.0))
    window.redraw()
    assert window._store.state.unavailable is None, "it was there again"


def test_while_its_model_is_away_home_shows_what_it_reached(window_told: TellWindow) -> None:
    window = window_told([PREPARING, AWAY])
    page, store = window.pages.of(HomePage), window._store
    asks = QueryWhileWaiting()
    assert [asks.now(state) for state in (State(), store.state, store.state)] == [False, True, False], "once"
    assert not page.score.isVisible()
    scores = [
        events.HeldOutScore(round=number, at=1.0, right=number, total=90, by_specialty={"Fractions": (number, 90)})
        for number in (0, 45)
    ]
    store.take(events.TrainingHistory(rounds=(), held_out=tuple(scores), seq=7, at=6.5))
    window.redraw()
    assert (page.score.isVisible(), page.skills.isVisible(), page.sharing.isVisible()) == (True, True, False)
    assert "50 of 100" in page.score.says.words()
    store.take(replace(PREPARING, seq=9, at=7.0))
    assert chart_series.scores(store.state) == [], "another model may have been chosen"


def test_a_model_that_is_not_there_is_notified_once() -> None:
    before = apply(State(), PREPARING)
    after = apply(before, AWAY)
    (notice,) = new_notices(before, after)
    assert notice.words.startswith("There is no model in /media/usb/mine.")
    assert new_notices(after, after) == []
    downloading = events.Downloading(model="bees/tiny", done=1, total=2, at=8.0)
    assert apply(after, downloading).unavailable is None, "the hub answers again"


@pytest.mark.parametrize(
    ("host", "words"), [("bee@hive", ["On bee@hive", "Use of bee@hive"]), ("", ["", "Use of this computer"])]
)
def test_home_names_the_computer_of_an_engine_elsewhere(theme: Theme, qtbot: QtBot, host: str, words: list[str]) -> None:
    card = StatusCard(PageContext(theme, store=StateStore(), engine=EngineHost(name=host)))
    qtbot.addWidget(card)
    assert [card._computer.words(), card._use.text()] == words
    assert card._computer.isHidden() == (not host)


SHORT = events.EngineFailed(title="Training stopped 4 times in a row.", advice="Too little memory.", short_of_memory=True, at=9.0)


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
@pytest.mark.parametrize(
    ("model", "problem", "offered"),
    [
        (ModelSettings(name="bees/large"), SHORT, True),
        (ModelSettings(name="bees/large"), replace(SHORT, short_of_memory=False), False),
        (ModelSettings(), SHORT, False),
    ],
)
def test_where_memory_ran_short_the_starter_is_a_way_on(
    theme: Theme, qtbot: QtBot, tmp_path: Path, model: ModelSettings, problem: events.EngineFailed, offered: bool
) -> None:
    path = tmp_path / "settings.toml"
    settings.change(path, {"model.name": model.name or None})
    store, chosen = StateStore(), SettingsStore(path)
    card = StatusCard(PageContext(theme, store=store, settings=chosen, engine=EngineHost(can_start=lambda: True)))
    qtbot.addWidget(card)
    card.show()
    card.show_state(apply(State(), problem), 10.0)
    assert card._retry.isVisible() is offered
    assert card._main.text() == ("Train Waggle's tiny starter" if offered else "Try again"), "what can help comes first"
    if offered:
        with qtbot.waitSignal(card.start_wanted):
            card._retry.click()
        assert settings.read(path).model == model
        with qtbot.waitSignal(card.start_wanted):
            card._main.click()
        assert settings.read(path).model == ModelSettings(), "no engine was there to take the choice"


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
def test_a_warning_can_be_dismissed_but_not_what_holds_something_back(theme: Theme, qtbot: QtBot) -> None:
    card = StatusCard(PageContext(theme, store=StateStore()))
    qtbot.addWidget(card)
    card.show()
    older, newer = (events.Warned(title=Message(title), at=9.0) for title in ("Older.", "Newer."))
    guard = Guard(name="disk", says=Message("The disk is full."), ends=Message("Make room."), since=1.0)
    state = State(warnings=(newer, older), guards=(guard,))
    for says, dismissed in (("Newer.", True), ("Older.", True), ("The disk is full.", False)):
        card.show_state(state, 10.0)
        assert (card._warning.text(), card._dismiss.isVisible()) == (says, dismissed)
        card._dismiss.click()
