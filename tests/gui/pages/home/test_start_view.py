"""Home while the engine starts: its progress, why it is slow, a question meanwhile; after a failure, one filled button."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from gui.conftest import TellWindow
from gui.recorded import ready
from waggle.engine.runtime.startup_parts import PARTS
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.home.start_view import PATIENCE, StartView
from waggle.gui.state.story.slow_start import REASONS, SLOW, slow_words
from waggle.gui.state.story.warm_up import is_right, warm_up
from waggle.gui.theme.theme import Theme
from waggle.protocol import events
from waggle.protocol.state import AnyEvent, State

pytestmark = pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
CHECKER = events.Preparing(part="Starting the answer checker", done=1, parts=5, at=100.0)


@pytest.fixture
def view(theme: Theme, qtbot: QtBot) -> StartView:
    start_view = StartView(theme, lambda: start_view.now)
    start_view.now = 100.0  # type: ignore[attr-defined]
    qtbot.addWidget(start_view)
    start_view.show()
    start_view.show_state(State(preparing=CHECKER))
    return start_view


def at(view: StartView, now: float) -> StartView:
    view.now = now  # type: ignore[attr-defined]
    view._show()
    return view


def test_what_takes_long_is_said_for_every_part_and_in_german() -> None:
    assert set(REASONS) == set(PARTS)
    translator.use("de")
    assert [words for words in REASONS.values() if tr(words) == words] == []


def test_a_download_shows_how_much_of_it_is_here(view: StartView) -> None:
    loading = replace(CHECKER, part="Loading the model", done=2)
    download = events.Downloading(model="mine", done=412_000_000, total=980_000_000, seconds_left=360.0)
    view.show_state(State(preparing=loading, downloading=download))
    assert view.why.text() == "The model is downloaded once, and kept. Training begins when it is here."
    assert view._steps[2]._part_done.text() == "412 of 980 MB, about 6 min left"
    assert (view._steps[2]._bar.isVisible(), view._steps[2]._bar.value()) == (True, 420)
    assert view._steps[2].accessibleName() == "Downloading the model: under way"
    view.show_state(State(preparing=loading))
    assert view.why.text() == "This takes a few seconds. Training starts automatically."
    assert view._steps[2].accessibleName() == "Loading the model: under way"
    assert not view._steps[2]._bar.isVisible()


def test_the_reason_comes_after_ten_seconds_and_not_for_what_counts_itself(view: StartView) -> None:
    assert at(view, 100.0 + SLOW - 1).why.text() == "This takes a few seconds. Training starts automatically."
    assert at(view, 134.0).why.text().startswith("This step has taken 34 s so far. The puzzles load in a sandbox.")
    assert slow_words(replace(CHECKER, long=True), 900.0) == ""
    assert slow_words(None, 900.0) == ""


def test_the_question_is_one_that_an_untrained_model_was_asked() -> None:
    puzzle = warm_up()
    assert puzzle is not None
    assert sum(each.count for each in puzzle.tries) == 8
    assert is_right(puzzle, f" {puzzle.truth.upper()} ")
    assert not is_right(puzzle, f"{puzzle.truth}1")


def test_who_answers_reads_how_the_model_did_and_the_question_stays(view: StartView, qtbot: QtBot) -> None:
    assert view.ask.isHidden(), "a quick start asks nothing"
    at(view, 100.0 + PATIENCE)
    puzzle = warm_up()
    assert puzzle is not None
    assert (view.ask.isVisible(), view.has_person) == (True, False)
    qtbot.mouseClick(view._check_button, Qt.MouseButton.LeftButton)
    assert not view._result.isVisible(), "nothing was answered"
    qtbot.keyClicks(view.field, puzzle.truth)
    qtbot.keyClick(view.field, Qt.Key.Key_Return)
    assert view._result.isVisible()
    assert view._verdict.text().startswith("Right!")
    assert "did not mark it as its answer" in view._verdict.text()
    view.field.clear()
    assert view.has_person
    view.field.setText("no")
    view._check()
    assert view._verdict.text().startswith(f"Not quite: it is {puzzle.truth}.")


def test_the_question_stays_while_the_keyboard_is_at_its_field_or_button(view: StartView, qtbot: QtBot) -> None:
    at(view, 100.0 + PATIENCE)
    view.activateWindow()
    qtbot.waitActive(view)
    for place in (view.field, view._check_button):
        place.setFocus()
        assert view.has_person
    view._check_button.clearFocus()
    assert not view.has_person


def test_home_shows_how_much_of_the_first_test_is_done_and_no_bar_after_it(window_told: TellWindow) -> None:
    begun = [ready(round=0, completions=0), events.PhaseChanged(phase="contributing", round=0)]
    window = window_told([*begun, events.HeldOutProgress(done=96, total=270)])
    score = window.pages.of(HomePage).score
    assert score.detail.text() == "96 of 270 questions answered."
    assert (score._test.isVisible(), score._test.value()) == (True, round(1000 * 96 / 270))
    window._store.take(events.HeldOutMeasured(score=events.HeldOutScore(round=0, at=1.0, right=3, total=270)))
    window._store.take(events.HeldOutProgress(done=1, total=270))
    window._store.flush()
    assert not score._test.isVisible(), "later tests stand in the status"


def test_home_at_the_first_start_shows_its_progress_and_nothing_that_is_empty(window_told: TellWindow) -> None:
    window = window_told([CHECKER])
    page = window.pages.of(HomePage)
    cards = (page.score, page.sharing, page.cost, page.next, page.skills)
    assert [card.isVisible() for card in cards] == [True, False, False, False, False]
    start = page.score.start
    assert start is not None
    assert start.isVisible()
    assert not page.hero.isVisible(), "the steps below say all that it would"
    begun: Sequence[AnyEvent] = [ready(round=0, completions=0), events.PhaseChanged(phase="contributing", round=0)]
    start.pose()
    start.field.setText("9")
    for event in begun:
        window._store.take(event)
    window._store.flush()
    assert start.isVisible(), "the person is at the question"
    start.field.clear()
    start.clearFocus()
    window.redraw()
    assert [card.isVisible() for card in (*cards[:3], start)] == [True, True, False, False], "what it costs is not known yet"
    assert page.hero.isVisible()
    assert page.score.first_round.isVisible()


def test_a_failed_first_start_leaves_the_cause_what_is_safe_and_one_filled_button(window_told: TellWindow) -> None:
    failed = events.EngineFailed(title="Waggle couldn't start its answer checker.", advice="This computer may be very busy.")
    page = window_told([CHECKER, failed]).pages.of(HomePage)
    assert [card.isVisible() for card in (page.score, page.sharing, page.cost, page.next)] == [False] * 4
    assert page.hero._says.text() == "Waggle couldn't start its answer checker"
    assert page.hero._main.property("kind") == "plain", "this window cannot start an engine"
