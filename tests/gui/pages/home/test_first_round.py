"""Test the first rounds on Home."""

from msgspec.structs import replace
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from gui.recorded import ready
from waggle.gui.pages.home.first_round import FirstRound
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import UNLIMITED
from waggle.protocol import events
from waggle.protocol.events import ShownCompletion
from waggle.protocol.state import Card, State

IN_ITS_TEST = State(ready=ready(round=0), phase="contributing", test=events.HeldOutProgress(done=3, total=90))
HIGH, LOW = 1400, 300  # pixels: room for all questions, and for one or two


def state_of(number: int) -> State:
    """Eight judged questions of a round."""
    answers = tuple(ShownCompletion(text=str(value), judged=True, reason="no answer tag") for value in range(3))
    cards = (
        Card(key=f"{number}/{i}", round=number, at=1.0, specialty="Arithmetic", question=f"{i} + {number}?", completions=answers)
        for i in range(8)
    )
    return State(cards=tuple(cards))


def test_only_questions_that_have_room_are_set(theme: Theme, qtbot: QtBot) -> None:
    room = QWidget()
    qtbot.addWidget(room)
    first = FirstRound(theme)
    first.setParent(room)
    room.show()
    first.show()
    first.resize(900, HIGH)
    first.show_state(state_of(1))
    assert all(question.isVisible() for question in first._questions)
    before = [question._card for question in first._questions]
    assert len(before) > 4
    first.resize(900, LOW)
    first.show_state(state_of(2))
    visible = [question.isVisible() for question in first._questions]
    assert 0 < sum(visible) < len(visible)
    assert all(question._card is not None and question._card.round == 2 for question in first._questions[: sum(visible)])
    assert [question._card for question in first._questions[sum(visible) + 1 :]] == before[sum(visible) + 1 :], "nobody sees them"
    first.resize(900, HIGH)
    assert all(question.isVisible() and question._card.round == 2 for question in first._questions)


def test_outlines_are_no_higher_than_three_questions_and_questions_take_what_there_is(theme: Theme, qtbot: QtBot) -> None:
    first = FirstRound(theme)
    qtbot.addWidget(first)
    first.resize(700, 900)
    first.show_state(IN_ITS_TEST)
    assert first.highest() < 600
    answer = ShownCompletion(text="7", judged=True, reason="wrong: 7")
    card = Card(key="k", round=0, at=0.0, specialty="Fractions", question="Which?", completions=(answer,))
    first.show_state(replace(IN_ITS_TEST, test=None, cards=(card,)))
    assert first.highest() == UNLIMITED
