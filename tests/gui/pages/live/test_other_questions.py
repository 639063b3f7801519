"""The other questions of a round: as many as there is room for, with their tries as large as there is room for."""

import pytest
from pytestqt.qtbot import QtBot

from waggle.gui.pages.live.other_questions import OtherQuestions
from waggle.gui.theme.theme import Theme
from waggle.protocol.events import ShownCompletion
from waggle.protocol.state import Card

pytestmark = pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
WIDE, HIGH = 700, 2000  # pixels


def card(key: str, *texts: str, right: str = "") -> Card:
    answers = tuple(
        ShownCompletion(text=text, judged=True, reward=float(text == right), reason="right" if text == right else "wrong")
        for text in texts
    )
    return Card(key=key, round=1, at=0.0, specialty="Fractions", question=f"{key}?", completions=answers)


@pytest.fixture
def questions(theme: Theme, qtbot: QtBot) -> OtherQuestions:
    others = OtherQuestions(theme)
    qtbot.addWidget(others)
    others.resize(WIDE, HIGH)
    return others


def opened(questions: OtherQuestions) -> list[bool]:
    return [not line.tries.isHidden() for line in questions._lines[: len(questions._cards)]]


def test_tries_are_larger_where_there_is_room_and_usual_again_where_there_is_none(questions: OtherQuestions) -> None:
    questions.show_cards([card(key, "1", "2", right="1") for key in "abc"])
    heights = {}
    for height in (HIGH, 250):
        questions.fit(height)
        assert opened(questions) == [True] * 3
        heights[height] = questions._lines[0]._tries.height()
    assert heights[HIGH] > 1.3 * heights[250]


def test_without_room_for_all_only_those_that_were_solved_are_open_and_new_ones_are_measured_anew(
    questions: OtherQuestions,
) -> None:
    questions.show_cards([card("a", "1", "2", right="1"), card("b", "1", "2"), card("c", "1", "2")])
    questions.fit(190)
    assert opened(questions) == [True, False, False]
    questions.show_cards([card("a", *map(str, range(99)), right="1"), card("b", "1", "2"), card("c", "1", "2")])
    questions.fit(190)
    assert opened(questions) == [False] * 3, "its tries take many lines"
