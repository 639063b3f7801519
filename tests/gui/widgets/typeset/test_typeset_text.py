"""Typeset questions: fractions are stacked, a text without room ends with an ellipsis, and the task is what stays."""

import pytest

from waggle.gui.state.story.typesetting import LabelledGrid, Words
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.typeset.typeset_lines import TypesetLines
from waggle.gui.widgets.typeset.typeset_text import TypesetText

INSTRUCTION = "This sentence only tells how to go about it, at great length. " * 6
QUESTION = f"{INSTRUCTION}\n\nExample 1:\nInput:  0 0 1 0\nOutput: 1 0 0 0\n\n{INSTRUCTION}\n\nInput:\n0 0 9 9"


def lines_of(theme: Theme, text: str, width: float, most: int = 99) -> TypesetLines:
    lines = TypesetLines(theme, text, theme.font("display"))
    lines.lay_out(width, most)
    return lines


def test_a_fraction_takes_the_height_of_two_numbers_and_the_width_of_one(theme: Theme) -> None:
    stacked, flat = lines_of(theme, "Add 12345/6789 now", 900), lines_of(theme, "Add 12345 / 6789 now", 900)
    assert stacked.height > flat.height
    assert stacked.width < flat.width
    assert [place for _, place in stacked._fractions] == [4]


def test_only_a_line_with_a_fraction_is_tall(theme: Theme) -> None:
    text = "words and words and words and words " * 3
    plain, mixed = lines_of(theme, text, 300), lines_of(theme, f"1/2 {text}", 300)
    assert mixed.height < plain.height * 1.6
    assert plain.height == plain.leading * plain._layout.lineCount()


@pytest.mark.parametrize("text", ["words and words " * 40, "1/2 and 3/4 " * 40, "\U0001f41d bees " * 40, "x" * 900])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_text_without_room_ends_with_an_ellipsis(theme: Theme, text: str, most: int) -> None:
    lines = lines_of(theme, text, 320, most)
    assert lines._layout.text().endswith("…")
    assert lines._layout.lineCount() == most
    assert lines.width <= 320


def test_the_width_of_one_letter_is_enough_to_end(theme: Theme) -> None:
    assert lines_of(theme, "1/2 words", 1, 1).height > 0


def test_without_room_the_instructions_go_first_and_then_the_examples(theme: Theme) -> None:
    question = TypesetText(theme)
    question.resize(700, 10)
    question.say(QUESTION)
    whole = question.height()
    assert not question.is_cut
    question.set_limit(whole - 1)
    assert question.is_cut
    assert [type(each.block) for each in question._placed] == [Words, LabelledGrid, LabelledGrid, LabelledGrid]
    question.set_limit(60)
    assert [each.block.task for each in question._placed] == [True]
    assert question.height() <= 61
    question.set_limit(whole)
    assert (question.is_cut, question.height()) == (False, whole)
    assert question.accessibleName() == QUESTION, "whoever listens hears all of it"


def test_grids_of_a_paragraph_stand_side_by_side_where_there_is_room(theme: Theme) -> None:
    question = TypesetText(theme)
    question.say("Input:  0 0 1 0\nOutput: 1 0 0 0")
    tops = []
    for width in (700, 160):
        question.resize(width, 10)
        question.fit()
        tops.append(len({each.place.top() for each in question._placed}))
        assert all(each.place.right() <= width for each in question._placed)
    assert tops == [1, 2]
