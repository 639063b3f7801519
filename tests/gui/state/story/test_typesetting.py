"""How questions are set: what is a fraction, what is a grid, and which words are the task."""

import pytest

from waggle.gui.state.story.typesetting import LabelledGrid, Words, fractions_in, set_question

GRIDS = """Find the common rule, given the examples below.

Example 1:
Input:  0 0 1 0
Output: 1 0 0 0

Predict the output. Describe how you derived the rule.

Input:
0 0 9 9
1 0 0 1"""


@pytest.mark.parametrize(
    ("text", "fractions"),
    [
        ("Simplify 45/234.", ["45/234"]),
        ("3 1/2, -3/4 and (5/6)?", ["1/2", "3/4", "5/6"]),
        ("<answer>1/2</answer>", ["1/2"]),
        ("2 - 3/4 * 5", ["3/4"]),
        ("01/18/2022", []),
        ("01/18", []),
        ("1/2/3", []),
        ("5.9/7.0 and 1,234/5 and 3/4.5 and 3/4,5", []),
        ("2^1/2, x1/2, f(2)/3, 1/2^3, 3/4!, 3/4x, 5%/6", []),
        ("https://a.b/1/2 C:\\1/2 @1/2 1/2:30", []),
        ("5/0", []),
        ("1234567/2", []),
        ("km/h and/or", []),
        ("٣/٤", []),
        ("השבר 1/2", []),
    ],
)
def test_only_what_can_be_read_in_one_way_is_a_fraction(text: str, fractions: list[str]) -> None:
    assert [text[part.start : part.end] for part in fractions_in(text)] == fractions
    assert [f"{part.above}/{part.below}" for part in fractions_in(text)] == fractions


def test_grids_stand_with_their_labels_and_the_last_one_is_the_task() -> None:
    blocks = set_question(GRIDS)
    grids = [block for block in blocks if isinstance(block, LabelledGrid)]
    assert [(block.label, len(block.grid), block.task, block.apart) for block in grids] == [
        ("Input:", 1, False, False),
        ("Output:", 1, False, False),
        ("Input:", 2, True, True),
    ]
    assert [block.text for block in blocks if isinstance(block, Words)] == [
        "Find the common rule, given the examples below.",
        "Example 1:",
        "Predict the output. Describe how you derived the rule.",
    ]


@pytest.mark.parametrize(
    ("question", "task"),
    [
        ("Calculate 3 + 6.", ["Calculate 3 + 6."]),
        ("Simplify 3/6. Give only the fraction as your answer.", ["Simplify 3/6."]),
        ("Solve to 4 digits. Only reply with the value.\n5.9/7.0 = ?", ["5.9/7.0 = ?"]),
        ("Two bases.\n\nConvert 103.\n\nReturn the number only.", ["Convert 103."]),
        ("If M then E.\nM is false.\nIs E true? Answer with one word.", ["If M then E.", "M is false.", "Is E true?"]),
        ("", []),
        (" \n\n ", []),
        ("Give it back.", ["Give it back."]),
    ],
)
def test_the_task_is_what_is_asked_without_how_to_answer(question: str, task: list[str]) -> None:
    assert [block.text for block in set_question(question) if isinstance(block, Words) and block.task] == task


def test_no_word_of_a_question_is_lost_and_none_of_it_is_markup() -> None:
    question = "<b>Bold</b>\u202e and\x07 more\n\n    if x:\n        y  =  1\n1 2\nInput:\nthen words\nOutput: 1 2"
    texts = [block.text for block in set_question(question) if isinstance(block, Words)]
    assert texts == [
        "<b>Bold</b>\ufffd and\u2407 more",
        "    if x:",
        "        y  =  1",
        "1 2",
        "Input:",
        "then words",
        "Output: 1 2",
    ]
    assert [block.code for block in set_question(question) if isinstance(block, Words)][1:3] == [True, True]
