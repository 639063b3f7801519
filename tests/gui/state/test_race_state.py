"""A race is shown as its messages say, judged by its own numbers alone, and ends with the page."""

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from gui.recorded import Run
from waggle.core.message import Message
from waggle.gui.application.main_window import MainWindow
from waggle.gui.charts.painted.race_grid import TOGETHER, RaceGrid
from waggle.gui.i18n import translator
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.playground.page import PlaygroundPage
from waggle.gui.pages.playground.race import RaceView
from waggle.gui.state.race_state import Race, detail, fold, headline, solved_words, transfer_words, verdict
from waggle.gui.theme.theme import Theme
from waggle.protocol import events_race
from waggle.protocol.events_race import Examined, FirstSolved, RaceBegan, RaceEvent, RaceFailed, RoundRaced

Make = Callable[..., MainWindow]
BEGAN = RaceBegan(rounds=4, racers=2, specialties=("Fractions", "Logic"))
STORY: tuple[RaceEvent, ...] = (
    BEGAN,
    RoundRaced(round=1, alone=0.0, sharing=0.0, seconds=1.0),
    FirstSolved(lane="alone", round=1, racer=0, specialty=0),
    FirstSolved(lane="sharing", round=1, racer=0, specialty=0),
    RoundRaced(round=2, alone=0.02, sharing=0.04, seconds=2.0),
    FirstSolved(lane="sharing", round=2, racer=1, specialty=0, learned_from=0),
    RoundRaced(round=3, alone=0.02, sharing=0.11, seconds=3.0),
    RoundRaced(round=4, alone=0.02, sharing=0.19, seconds=4.0),
)
WON = Examined(alone=25, sharing=146, total=864)


def played(*story: RaceEvent) -> Race:
    race = Race(phase="preparing")
    for message in story:
        race = fold(race, message)
    return race


def test_what_a_race_tells_is_read_back_as_it_was() -> None:
    for message in (*STORY, WON):
        assert events_race.read(events_race.line(message).strip()) == message


def test_a_race_is_told_in_words_as_it_goes() -> None:
    assert headline(Race()) == "Does sharing help? See it in about two minutes"
    assert headline(played(*STORY[:7])) == "Sharing leads, 5.0% to 1.3%"
    assert detail(played(*STORY[:7])).startswith("Round 3 of 4, about 1 s left. ")
    assert detail(played(*STORY)) == "Last test: both swarms answer new questions"
    raced = played(*STORY, WON)
    assert headline(raced) == "Sharing won, 16.9% to 2.9%"
    assert detail(raced).startswith("Of 864 new questions, sharing got 146 right and alone 25. 1 first right answer came after")
    assert transfer_words(played(*STORY)) == "Copy 2 learned from copy 1: Fractions"
    assert not transfer_words(raced), "what happened on the way is over"
    assert not transfer_words(played(*STORY, RaceFailed(title="There is too little free memory for the race", advice="")))
    assert solved_words(raced, "sharing") == "2 of 4 first right answers, 1 after sharing"
    assert solved_words(raced, "alone") == "1 of 4 first right answers"


@pytest.mark.parametrize(
    ("alone", "sharing", "words"),
    [
        (25, 146, "Sharing won, 16.9% to 2.9%"),
        (146, 25, "This time alone won, 16.9% to 2.9%"),
        (216, 432, "Sharing won, 50% to 25%"),
        (30, 36, "Too close to call: sharing 4.2%, alone 3.5%"),
        (0, 0, "Too close to call: sharing 0%, alone 0%"),
    ],
)
def test_the_verdict_is_that_of_this_race_alone(alone: int, sharing: int, words: str) -> None:
    assert verdict(Examined(alone=alone, sharing=sharing, total=864)) == words


def test_a_node_or_a_specialty_that_nobody_named_is_passed_over() -> None:
    raced = played(BEGAN, FirstSolved(lane="alone", round=1, racer=2, specialty=0), *STORY[1:2] * 9)
    assert raced.alone.solved == {}
    assert raced.rounds_played == 4


def test_home_and_help_lead_to_the_race(window_told: Make) -> None:
    window = window_told(list(Run(rounds=3).all_events()))
    link = window.pages.of(HomePage).sharing.link
    assert link.text() == "Compare with training alone"
    link.click()
    assert (window.page, window.pages.of(PlaygroundPage).race.isVisible()) == ("playground", True)
    window.show_page("help")
    next(button for button in window.pages["help"].findChildren(QPushButton) if button.text() == "Watch the race").click()
    assert (window.page, window.pages.of(PlaygroundPage).race.isVisible()) == ("playground", True)


def test_the_page_shows_a_race_and_offers_another_one(window_told: Make, qtbot: QtBot) -> None:
    window = window_told(list(Run(rounds=1).all_events()), 1024, 640)
    window.show_page("playground", "race")
    view = window.pages.of(PlaygroundPage).race
    assert view.isVisible()
    assert view.button.text() == "Start the race"
    for message in STORY:
        view.take(message)
    assert view.button.text() == "Stop"
    comb = view._lanes["sharing"].comb
    assert comb.accessibleName() == "2 of 4 first right answers, 1 after sharing"
    assert comb.cell_words(1, 0) == "Copy 2, Fractions: learned from copy 1"
    assert comb.frames.isActive()
    assert not view._lanes["alone"].comb.frames.isActive()
    view.take(WON)
    assert view.button.text() == "Race again"
    window.show_page("home")
    assert not comb.frames.isActive()


def test_where_many_cells_come_at_once_a_few_move_and_the_rest_stand_where_they_belong(theme: Theme, qtbot: QtBot) -> None:
    names = tuple(f"Specialty {number}" for number in range(9))
    story: list[RaceEvent] = [RaceBegan(rounds=4, racers=2, specialties=names)]
    for number in range(9):
        story.append(FirstSolved(lane="sharing", round=1, racer=0, specialty=number))
        story.append(FirstSolved(lane="sharing", round=2, racer=1, specialty=number, learned_from=0))
    grid = RaceGrid(theme, "sharing")
    qtbot.addWidget(grid)
    grid.resize(260, 80)
    grid.show()
    race = Race(phase="preparing")
    for message in story:
        race = fold(race, message)
        grid.show_race(race)
    assert 0 < len(grid._jumps) <= TOGETHER
    assert grid.frames.isActive()


def test_a_race_that_ends_by_itself_says_why(theme: Theme, qtbot: QtBot) -> None:
    view = RaceView(theme)
    qtbot.addWidget(view)
    view.take(BEGAN)
    view._show_end("The verifier <b>\u202ewas gone")
    assert view._says.text() == "The race stopped by itself"
    assert "\u202e" not in view._more.text()
    assert (view.button.text(), view.button.property("kind")) == ("Race again", "plain")


def test_a_race_that_cannot_go_on_says_why_in_the_language_of_the_window(theme: Theme, qtbot: QtBot) -> None:
    problem = RaceFailed(title=Message("There is too little free memory for the race."), advice=Message("Install Waggle again."))
    message = events_race.read(events_race.line(problem).strip())
    translator.use("de")
    try:
        view = RaceView(theme)
        qtbot.addWidget(view)
        for each in (*STORY[:2], message):
            view.take(each)
        view._show_end("code 1")
        assert view._says.text() == "Für den Wettlauf ist zu wenig Speicher frei"
        assert view._more.text() == (
            "Installiere Waggle neu. Es waren 1 von 4 Runden gespielt. Dein eigenes Modell ist nicht betroffen."
        )
        assert view.button.property("kind") == "primary"
        assert view._about.words() == "als Trend, abgebrochen nach Runde 1"
    finally:
        translator.use("en")


def test_every_phase_is_told_in_german(qapp: object) -> None:
    english = {phase: headline(Race(phase=phase)) for phase in ("idle", "preparing", "running", "stopped", "failed")}  # type: ignore[arg-type]
    translator.use("de")
    try:
        for phase, words in english.items():
            assert headline(Race(phase=phase)) != words  # type: ignore[arg-type]
    finally:
        translator.use("en")
