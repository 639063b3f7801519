"""Try it: a question is answered by the person first, then by the model of every snapshot, and may be compared blind."""

from collections.abc import Callable
from typing import Literal

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QMenu, QPushButton
from pytestqt.qtbot import QtBot

from gui.answers import answer, refuse
from gui.pages.swarms.test_page import BEGUN, tell
from gui.recorded import ready
from waggle.core.settings import Settings, SwarmSettings
from waggle.gui.application.main_window import MainWindow
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.pages.playground.answer_rows import AnswerRow, verdict_word
from waggle.gui.pages.playground.page import PlaygroundPage
from waggle.gui.pages.playground.question import (
    QuestionView,
    own_answer_outcome,
    shares_answers,
    should_offer_sharing,
)
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.painted_widgets import Chip
from waggle.gui.widgets.text import ElidedLabel
from waggle.gui.widgets.typeset.highlighted_text import HighlightedText
from waggle.protocol import commands, events
from waggle.protocol.commands import AnyCommand
from waggle.protocol.events import UNTAGGED, ShownCompletion
from waggle.protocol.events_playground import QuestionAnswered, QuestionPosed, SnapshotAnswer
from waggle.protocol.state import State

TellWindow = Callable[..., MainWindow]
Page = tuple[MainWindow, list[AnyCommand]]


@pytest.fixture
def page(window_told: TellWindow) -> Page:
    window, sent = window_told(BEGUN), list[AnyCommand]()
    window.commanded.connect(sent.append)
    return window, sent


POSED = QuestionPosed(specialty="simple_fractions", title="Fractions", number=7, question="Simplify 36/84.\n<b>\u202e")
WRONG = ShownCompletion(text="<answer>9</answer>", judged=True, reason="wrong: 9", start=8, length=1)
GOOD = ShownCompletion(text="<answer>3/7</answer>", judged=True, reward=1.0, reason="right", start=8, length=3)
TRIED = QuestionAnswered(
    specialty="simple_fractions", number=7, mine=WRONG,
    answers=tuple(SnapshotAnswer(rounds=rounds, completion=text) for rounds, text in ((0, WRONG), (64, GOOD), (600, GOOD))),
)  # fmt: skip
Playground = tuple[MainWindow, QuestionView, list[AnyCommand]]


@pytest.fixture
def playground(page: Page) -> Playground:
    window, sent = page
    window.show_page("playground")
    assert sent[-1] == commands.PoseQuestion(id=sent[-1].id, specialty="simple_fractions", number=7)
    answer(window, POSED)
    return window, window.pages.of(PlaygroundPage).ask, sent


def test_the_menu_of_specialties_is_filled_anew_and_not_made_anew(playground: Playground, qapp: QApplication) -> None:
    window, view, _ = playground
    for title in ("One", "Two", "Three"):
        tell(window, ready(specialties=(events.SpecialtyInfo(dataset="bf", title=title),)))
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    (menu,) = view.findChildren(QMenu)
    assert [action.text() for action in menu.actions()] == ["Three"]
    assert view._menu.menu() is menu


def test_a_question_is_answered_by_me_first_and_then_by_the_model_of_every_moment(playground: Playground) -> None:
    window, view, sent = playground
    assert view._question.accessibleName() == "Simplify 36/84.\n<b>\ufffd"
    view._mine.setText("9")
    view._go.click()
    assert sent[-1] == commands.AskModel(id=sent[-1].id, specialty="simple_fractions", number=7, mine="9")
    assert not view._go.isEnabled()
    answer(window, TRIED)
    assert view._verdict.text() == "It learned this: wrong before training, right after 64 rounds."
    assert names(view) == ["Before any training", "Now, 600 rounds", "You", "After 64 rounds"]


UNMARKED = replace(WRONG, text="3/7", reason=UNTAGGED, start=0, length=0)


@pytest.mark.parametrize(
    ("before", "verdict"),
    [
        (UNMARKED, "It knew this before training. After 64 rounds it also writes it in the required form."),
        (replace(WRONG, reward=0.3), "It learned this: close before training, right after 64 rounds."),
        (replace(WRONG, reason="cut off"), "It learned this: cut off before training, right after 64 rounds."),
        (replace(WRONG, reason="could not be judged"), "It gets this one right."),
    ],
)
def test_the_verdict_says_of_the_first_answer_what_its_row_says(
    playground: Playground, before: ShownCompletion, verdict: str
) -> None:
    window, view, _ = playground
    view._go.click()
    answer(window, replace(TRIED, answers=(SnapshotAnswer(rounds=0, completion=before), *TRIED.answers[1:])))
    assert view._verdict.text() == verdict
    assert any(chip.accessibleName() == verdict_word(before) for chip in rows(view)[0].findChildren(Chip))


def test_a_question_that_is_awaited_is_said_to_be_fetched(page: Page) -> None:
    window, _ = page
    window.show_page("playground")
    view = window.pages.of(PlaygroundPage).ask
    assert view._about.words() == "Fetching a question"
    answer(window, POSED)
    assert view._about.words() == "Fractions, question 7"


def test_blind_hides_whose_answer_it_is_and_how_it_was_judged(playground: Playground, qapp: QApplication) -> None:
    window, view, _ = playground
    view._blind.setChecked(True)
    answer(window, TRIED)
    assert names(view) == ["Answer A", "Answer B", "Answer C", "You"]
    assert not any(chip.isVisible() for row in rows(view) for chip in row.findChildren(Chip))
    guesses = [button for row in rows(view) for button in row.findChildren(QPushButton) if button.isVisible()]
    assert len(guesses) == 3, "one's own answer is nobody's secret"
    order = [row.findChild(HighlightedText).accessibleName() for row in rows(view)]  # type: ignore[union-attr]
    guesses[next(place for place, words in enumerate(order) if "9" in words)].click()  # that of before, the only wrong one
    qapp.processEvents()
    assert names(view)[0] == "Before any training", "after a guess all is told"
    assert view._verdict.text().startswith("It was another one. It learned this")
    assert not view._blind.isChecked()


def test_answers_are_copied_as_they_are_seen_and_a_hidden_judgement_is_not(playground: Playground, qapp: QApplication) -> None:
    window, view, _ = playground
    answer(window, replace(TRIED, answers=TRIED.answers[:2], truth="3/7\n"))
    view._copy.click()
    assert view._copy.text() == "Copied"
    question = "Simplify 36/84.\n<b>\ufffd"
    assert qapp.clipboard().text().split("\n\n") == [
        question, "Before any training, wrong: 9\n<answer>9</answer>", "Now, 64 rounds, right\n<answer>3/7</answer>",
        "You, wrong: 9\n9", "A right answer: 3/7",
    ]  # fmt: skip
    answer(window, replace(TRIED, answers=TRIED.answers[:2]))
    view._copy.click()
    assert qapp.clipboard().text().endswith("You, wrong: 9\n9"), "none is known"
    view._blind.setChecked(True)
    assert view._copy.text() == "Copy", "it would copy something else now"
    view._copy.click()
    copied = qapp.clipboard().text()
    assert [part.split("\n")[0] for part in copied.split("\n\n")] == ["Simplify 36/84.", "Answer A", "Answer B", "You"]


def test_what_would_have_been_right_is_shown_once_nothing_is_to_be_guessed(playground: Playground) -> None:
    window, view, _ = playground
    answer(window, replace(TRIED, truth="3/7\n"))
    assert (view._truth.text(), view._truth.isHidden()) == ("A right answer: 3/7", False)
    view._blind.setChecked(True)
    assert view._truth.isHidden()
    view._blind.setChecked(False)
    answer(window, TRIED)
    assert view._truth.isHidden(), "an older recording does not say"


def test_another_question_hides_the_answers_of_the_last(playground: Playground) -> None:
    window, view, sent = playground
    answer(window, TRIED)
    view._next.click()
    command = sent[-1]
    assert isinstance(command, commands.PoseQuestion)
    answer(window, replace(POSED, number=command.number))
    assert not view._answers.isVisible()


def test_a_question_that_is_refused_is_asked_for_again_by_a_person_or_of_another_engine(page: Page) -> None:
    window, sent = page
    window.show_page("playground")
    view = window.pages.of(PlaygroundPage).ask
    refuse(window, "The judge does not answer.", "Try again.", sent[-1].id)
    window.redraw()
    assert (len(posed(sent)), view._message.text()) == (1, "The judge does not answer. Try again.")
    assert not view._message.isHidden()
    view._next.click()
    refuse(window, "The judge does not answer.", "Try again.", sent[-1].id)
    window.redraw()
    assert len(posed(sent)) == 2
    tell(window, ready(at=99.0))
    assert len(posed(sent)) == 3


def posed(sent: list[AnyCommand]) -> list[AnyCommand]:
    return [command for command in sent if isinstance(command, commands.PoseQuestion)]


def test_a_window_made_anew_shows_the_question_that_stands_and_asks_that_one(
    playground: Playground, theme: Theme, qtbot: QtBot
) -> None:
    window, _, _ = playground
    other = replace(POSED, specialty="binary_matrix", number=99)
    sent = list[AnyCommand]()
    view = QuestionView(theme, EngineClient(lambda command: sent.append(command) is None))
    qtbot.addWidget(view)
    view.show_state(replace(window._store.state, posed=other))
    assert view._question.accessibleName() == "Simplify 36/84.\n<b>\ufffd"
    view._go.click()
    assert sent == [commands.AskModel(id=sent[0].id, specialty="binary_matrix", number=99)]


def test_a_question_that_is_refused_leaves_the_one_that_is_seen_to_be_asked(playground: Playground) -> None:
    window, view, sent = playground
    view._next.click()
    refuse(window, "The judge does not answer.", "", sent[-1].id)
    view._go.click()
    assert sent[-1] == commands.AskModel(id=sent[-1].id, specialty="simple_fractions", number=7)


def test_what_cannot_be_tried_is_said(playground: Playground) -> None:
    window, view, _ = playground
    view._go.click()
    refuse(window, "This model is too large to be loaded a second time.", "")
    assert (view._message.text(), view._go.isEnabled()) == ("This model is too large to be loaded a second time.", True)


CONNECTED = events.ReachChanged(reach="connected", peers=2, at=1.0)


def sharing(choice: Literal["ask", "no", "yes"]) -> events.SettingsChanged:
    return events.SettingsChanged(settings=Settings(swarm=SwarmSettings(my_answers=choice)))


def test_whether_to_share_is_asked_once_and_only_after_an_answer_of_ones_own(playground: Playground) -> None:
    window, view, sent = playground
    tell(window, CONNECTED)
    tell(window, sharing("ask"))
    answer(window, replace(TRIED, mine=None))
    assert view._asking.isHidden()
    answer(window, TRIED)
    assert not view._asking.isHidden()
    keep = next(button for button in view._asking.findChildren(Button) if button.text() == "Keep them here")
    keep.click()
    assert sent[-1] == commands.ChangeSettings(id=sent[-1].id, values={"swarm.my_answers": "no"})
    tell(window, sharing("no"))
    assert view._asking.isHidden()
    assert view._sharing.isHidden()


def test_whoever_shares_gets_a_question_that_others_take_and_is_told_so_before_and_after(playground: Playground) -> None:
    window, view, sent = playground
    tell(window, CONNECTED)
    tell(window, sharing("yes"))
    command = sent[-1]
    assert isinstance(command, commands.PoseQuestion)
    assert command.to_share
    posed = replace(POSED, number=command.number, epoch=2_983_333)
    answer(window, posed)
    assert (view._title.words(), view._sharing.isHidden()) == ("A question for the swarm", False)
    view._mine.setText("3/7")
    view._go.click()
    answered = sent[-1]
    assert isinstance(answered, commands.AskModel)
    assert (answered.mine, answered.epoch) == ("3/7", posed.epoch)
    answer(window, replace(TRIED, number=command.number, mine=GOOD, shared=True))
    assert view._outcome.text().startswith("Your answer goes to the swarm, labelled as human.")
    tell(window, sharing("no"))
    assert (sent[-1], view._answers.isHidden()) == (answered, False), "what is read stays"
    assert view._outcome.text().startswith("Your answer goes to the swarm")
    view._next.click()
    assert not sent[-1].to_share  # type: ignore[union-attr]


def test_what_was_typed_stays_when_it_is_to_be_shared_no_more_and_is_judged_without_being_shared(
    playground: Playground,
) -> None:
    window, view, sent = playground
    tell(window, CONNECTED, sharing("yes"))
    answer(window, replace(POSED, number=sent[-1].number, epoch=2_983_333))  # type: ignore[union-attr]
    view._mine.setText("3/7")
    sent_before = len(sent)
    tell(window, sharing("no"))
    assert (view._mine.text(), sent[sent_before:]) == ("3/7", [])
    assert (view._title.words(), view._sharing.isHidden()) == ("A question for the swarm", True)
    assert view._mine.placeholderText().endswith("It stays on this computer.")
    view._go.click()
    answer(window, replace(TRIED, number=sent[-1].number, mine=GOOD))  # type: ignore[union-attr]
    assert view._outcome.isHidden(), "that it stays here was chosen"


def test_an_answer_to_a_question_that_no_model_trains_on_is_not_said_to_be_shared(playground: Playground) -> None:
    window, view, sent = playground
    view._mine.setText("3/7")
    tell(window, CONNECTED, sharing("yes"))
    assert (view._mine.text(), view._title.words()) == ("3/7", "A question it never trains on")
    assert (view._sharing.isHidden(), view._mine.placeholderText().endswith("It stays on this computer.")) == (True, True)
    view._next.click()
    assert sent[-1].to_share  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("state", "shared", "may_ask"),
    [
        (State(tried=TRIED), False, False),
        (State(tried=TRIED, settings=Settings()), False, True),
        (State(settings=Settings()), False, False),
        (State(tried=TRIED, settings=Settings(swarm=SwarmSettings(my_answers="no"))), False, False),
        (State(tried=TRIED, settings=Settings(swarm=SwarmSettings(my_answers="yes"))), True, False),
        (State(tried=TRIED, reach="solo", settings=Settings(swarm=SwarmSettings(my_answers="yes"))), False, False),
    ],
)
def test_nothing_is_shared_without_a_yes_and_nobody_is_asked_where_nobody_is(state: State, shared: bool, may_ask: bool) -> None:
    assert (shares_answers(state), should_offer_sharing(state)) == (shared, may_ask)


def test_an_answer_that_did_not_travel_is_said() -> None:
    assert own_answer_outcome(TRIED, 0) == own_answer_outcome(replace(TRIED, mine=None), 5) == ""
    assert "was not shared" in own_answer_outcome(TRIED, 5)


def rows(view: QuestionView) -> list[AnswerRow]:
    return [row for row in view.findChildren(AnswerRow) if not row.isHidden()]


def names(view: QuestionView) -> list[str]:
    return [row.findChild(ElidedLabel).words() for row in rows(view)]  # type: ignore[union-attr]
