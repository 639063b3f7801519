"""Progress: first right answers beside their pins, and earlier runs beside the present one."""

from collections.abc import Callable, Sequence

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from gui.recorded import Run
from pictures.matrix import example
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.charts.plotted.run_curves import MOST, legend_words, run_curves, run_name
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.progress.page import COMPARED, LINES, ProgressPage
from waggle.gui.state import chart_series
from waggle.protocol import events
from waggle.protocol.commands import AnyCommand, QueryRuns
from waggle.protocol.events import Aha, HeldOutScore, RunsRead, TrainingRun
from waggle.protocol.state import AnyEvent

Make = Callable[..., MainWindow]


def run(model: str, *, exam: str = "", rounds: int = 100) -> TrainingRun:
    scores = tuple(HeldOutScore(round=number, at=1.0, right=number // 10, total=30, exam=exam) for number in range(0, rounds, 25))
    return TrainingRun(model=model, is_starter=not model, rounds=rounds, at=1.0, held_out=scores)


@pytest.fixture
def story() -> Sequence[AnyEvent]:
    return list(Run(rounds=12).all_events())


@pytest.fixture
def page(window_told: Make, story: Sequence[AnyEvent]) -> tuple[MainWindow, ProgressPage]:
    last = max(event.summary.round for event in story if isinstance(event, events.RoundCompleted))
    by_itself = Aha(round=last - 4, at=1_790_000_100.0, specialty="Fractions")
    taught = Aha(round=last - 1, at=1_790_000_160.0, specialty="Chain sum", origin="12D3KooWBriskOtter", name="Brisk Otter")
    window = window_told([*story, *(events.AhaHappened(aha=aha) for aha in (by_itself, taught))])
    window.show_page("progress")
    screenshot_when_still(window)
    return window, window.pages.of(ProgressPage)


def test_first_right_answers_stand_beside_the_charts_newest_first(page: tuple[MainWindow, ProgressPage]) -> None:
    _, progress = page
    count = len(progress._state.ahas)
    lines = progress._ahas.item(0).text().split("\n")
    assert progress._ahas.count() == count
    assert lines[:2] == [f"{count}  Chain sum", "Brisk Otter was right first"]
    assert lines[2].startswith(f"Round {progress._state.ahas[-1].round + 1}, ")
    assert progress._ahas.item(1).text().split("\n")[:2] == [f"{count - 1}  Fractions", "found by itself"]
    assert progress._pins.isVisible()


@pytest.mark.parametrize("start", [(1280, 800), (911, 600)])
def test_the_list_is_beside_the_charts_or_below_them_as_there_is_room(
    window_told: Make, story: Sequence[AnyEvent], start: tuple[int, int]
) -> None:
    aha = Aha(round=3, at=1_790_000_100.0, specialty="Fractions")
    window = window_told([*story, events.AhaHappened(aha=aha)], *start)
    window.show_page("progress")
    progress = window.pages.of(ProgressPage)
    for width, is_beside in ((1280, True), (911, False), (1280, True)):
        window.resize(width, 700)
        screenshot_when_still(window)
        assert (progress._pins.x() > progress._lines.geometry().right()) == is_beside
        assert (progress._pins.y() > progress._lines.geometry().bottom()) != is_beside


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of a window
@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Space])
def test_one_goes_to_its_pin_by_click_and_by_key(page: tuple[MainWindow, ProgressPage], qtbot: QtBot, key: Qt.Key) -> None:
    _, progress = page
    places = chart_series.event_positions(progress._state.ahas, chart_series.rounds(progress._state), "round")
    progress._ahas.itemClicked.emit(progress._ahas.item(0))
    assert progress._part.place == places[-1]
    progress._ahas.setCurrentRow(0)
    qtbot.keyClick(progress._ahas, Qt.Key.Key_Down)
    qtbot.keyClick(progress._ahas, key)
    assert progress._part.place == places[-2]


def test_one_outside_of_the_part_that_is_shown_shows_the_whole_run(page: tuple[MainWindow, ProgressPage]) -> None:
    _, progress = page
    first, last = progress._part.ends
    progress._part.choose(first, first + (last - first) / 20)
    assert not progress._part.is_whole
    progress._ahas.itemClicked.emit(progress._ahas.item(0))
    assert progress._part.is_whole


def test_both_charts_keep_one_axis_beside_the_list(page: tuple[MainWindow, ProgressPage]) -> None:
    _, progress = page
    assert progress._score_chart is not None
    assert progress._reward is not None
    assert progress._score_chart._plot().left() == progress._reward._plot().left()
    assert progress._score_chart._plot().right() == progress._reward._plot().right()


def test_the_home_page_names_who_taught_what_and_leads_to_all(window_told: Make) -> None:
    window = window_told(example(), 1440, 900)
    skills = window.pages.of(HomePage).skills
    lines = [(line._name.words(), line._skills.text()) for line in skills._teachers if line.isVisible()]
    assert lines == [("Woolly Marmot", "Tiny programs, Calendar, Decimals, Base conversion"), ("Silver Falcon", "Arithmetic")]
    assert not skills.all_ahas.isVisible(), "all are named beside the comb"
    window.resize(1024, 600)
    screenshot_when_still(window)
    assert not any(line.isVisible() for line in skills._teachers)
    assert skills.all_ahas.isVisible()
    skills.all_ahas.click()
    assert window.page == "progress"


def test_earlier_runs_are_asked_for_when_the_menu_opens_and_drawn_when_chosen(page: tuple[MainWindow, ProgressPage]) -> None:
    window, progress = page
    sent = list[AnyCommand]()
    window.commanded.connect(sent.append)
    menu = progress._runs._menu
    entries = [(action.text(), action.isEnabled()) for action in menu.actions() if not action.isSeparator()]
    assert entries == [("Looking for earlier runs.", False), ("Models of other computers", True)]
    menu.aboutToShow.emit()
    assert [type(command) for command in sent] == [QueryRuns]
    window._store.take(RunsRead(runs=(run("bees/small", rounds=2000), run(""))))
    window._store.flush()
    assert [action.text() for action in progress._runs._actions] == ["small, 2,000 rounds", "Starter, 100 rounds"]
    menu.actions()[0].trigger()
    screenshot_when_still(window)
    assert progress._score_chart is not None
    assert {curve.label for curve in progress._score_chart._runs} == {"small"}
    assert "Earlier run, small: " in progress._score_chart.accessibleName()
    assert progress._runs_legend.isVisible()
    progress._axis.choose(1)
    screenshot_when_still(window)
    assert progress._score_chart._runs == []
    assert not any(action.isEnabled() for action in progress._runs._actions), "times mean nothing beside each other"
    assert not progress._runs_legend.isVisible()


def test_where_nothing_else_was_trained_the_menu_says_so(page: tuple[MainWindow, ProgressPage]) -> None:
    window, progress = page
    window._store.take(RunsRead(runs=()))
    window._store.flush()
    first = progress._runs._menu.actions()[0]
    assert (first.text(), first.isEnabled()) == ("No other model has scores on this computer.", False)


def test_only_as_many_runs_are_chosen_as_can_be_told_apart(page: tuple[MainWindow, ProgressPage]) -> None:
    window, progress = page
    window._store.take(RunsRead(runs=tuple(run(f"bees/{number}") for number in range(MOST + 1))))
    window._store.flush()
    actions = progress._runs._actions
    for action in actions:
        action.trigger()
    assert [chosen.model for chosen in progress._runs.chosen] == [f"bees/{number}" for number in range(1, MOST + 1)]
    assert [action.isChecked() for action in actions] == [False, *[True] * MOST]


def test_a_run_is_drawn_by_its_own_rounds_and_breaks_where_its_questions_changed() -> None:
    first, second = run("a/b", exam="x", rounds=100), run("a/b", exam="y", rounds=200)
    mixed = TrainingRun(model="a/b", rounds=200, at=1.0, held_out=(*first.held_out[:2], *second.held_out[2:]))
    curves = run_curves([mixed], 160.0)
    assert [curve.x for curve in curves] == [[0.0, 25.0], [50.0, 75.0, 100.0, 125.0, 150.0, 160.0]]
    assert curves[0].line == curves[1].line


def test_a_legend_says_whether_the_questions_are_the_same() -> None:
    own = [HeldOutScore(round=9, at=1.0, right=3, total=30, exam="x")]
    assert legend_words(run("bees/small", exam="x"), own) == "small, 100 rounds"
    assert legend_words(run("bees/small", exam="y"), own) == "small, 100 rounds, other questions"
    assert run_name(TrainingRun(model="", rounds=1, at=1.0, held_out=())) == "A model from a folder"


def test_the_menu_leads_to_the_models_of_others_and_a_button_back(page: tuple[MainWindow, ProgressPage]) -> None:
    _, progress = page

    def buttons() -> list[str]:
        return [button.text() for button in progress.findChildren(QPushButton) if button.isVisible()]

    assert "Compare" in buttons()
    assert "Own charts" not in buttons()
    progress._runs._menu.actions()[-1].trigger()
    assert progress._pages.currentIndex() == COMPARED
    assert "Compare" not in buttons()
    progress._compared.click()
    assert progress._pages.currentIndex() == LINES
    assert "Compare" in buttons()
