"""Every grader: hand-worked scores, what it refuses to grade, and that any text gets a score in little time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waggle.tasks.graders import grader_names, graders

NAMES = ("choice", "fields", "list", "number", "set", "text")
TRUTHS = {
    "choice": "B",
    "fields": '{"name": "Ada", "born": 1815}',
    "list": "[3, 1, 2]",
    "number": "1234.5",
    "set": "red, green",
    "text": "New York",
}


def test_the_graders_of_waggle_are_found_by_their_files():
    assert grader_names() == tuple(graders()) == NAMES


def score(name: str, text: str, answer: str, tolerance: float = 0.0) -> float:
    assert graders()[name].check(answer) == ""
    return graders()[name].score(text, answer, tolerance)


@pytest.mark.parametrize(
    ("name", "answer", "text"),
    [
        ("text", "New York", "new  york."),
        ("text", "x = 5", "X = 5"),
        ("number", "1234.5", "$1,234.50"),
        ("number", "50%", "50"),
        ("number", "-3", "= \u22123"),
        ("choice", "B", "(b)"),
        ("choice", "B", "B."),
        ("choice", "B", "**B**"),
        ("choice", "B", "B) Berlin"),
        ("choice", "(B)", "b: Berlin"),
        ("choice", "yes", "Yes!"),
        ("list", "[3, 1, 2]", "3, 1.0, 2"),
        ("list", "red; green", '["Red", "green"]'),
        ("set", "red, green", "green; red; red"),
        ("set", "[1, 2]", "{2, 1.0}"),
        ("fields", '{"name": "Ada", "born": 1815}', '{"born": "1,815", "name": " ada "}'),
        ("fields", '{"a": null, "b": true}', '{"b": true, "a": null}'),
    ],
)
def test_a_right_answer_pays_one(name, answer, text):
    assert score(name, text, answer) == 1.0
    assert score(name, answer, answer) == 1.0


@pytest.mark.parametrize(
    ("name", "answer", "text"),
    [
        ("text", "New York", "New York City"),
        ("text", "New York", "The answer is New York"),
        ("number", "1234.5", "1234.6"),
        ("number", "125", "0,125"),
        ("text", "102", "10²"),
        ("choice", "22", "2²"),
        ("list", "[102, 3]", "10², 3"),
        ("set", "[102, 3]", "3, 10²"),
        ("fields", '{"a": 102}', '{"a": "10²"}'),
        ("number", "3", "3 or 4"),
        ("number", "3", "3\n4"),
        ("number", "1", "nan"),
        ("choice", "B", "A or B"),
        ("choice", "B", "A) Not B"),
        ("choice", "B", "Berlin"),
        ("choice", "B", "B C D"),
        ("choice", "3", "3.5"),
        ("list", "[3, 1, 2]", "[1, 2, 3]"),
        ("list", "[3, 1, 2]", "[3, 1]"),
        ("list", "[3, 1, 2]", "[3, 1, 2, 2]"),
        ("set", "red, green", "red"),
        ("set", "red, green", "red, green, blue"),
        ("fields", '{"name": "Ada", "born": 1815}', '{"name": "Ada"}'),
        ("fields", '{"name": "Ada", "born": 1815}', '{"name": "Ada", "born": 1815, "died": 1852}'),
        ("fields", '{"name": "Ada", "born": 1815}', '{"name": "Ada", "born": 1815} {"name": "Bob"}'),
        ("fields", '{"a": null}', '{"a": "null"}'),
        ("fields", '{"a": "1"}', '{"a": "2", "a": "1"}'),
    ],
)
def test_a_wrong_answer_pays_nothing(name, answer, text):
    assert score(name, text, answer) == 0.0


@pytest.mark.parametrize(
    ("text", "answer", "tolerance", "reward"),
    [
        ("3.14", "3.14159", 0.01, 1.0),
        ("3.1", "3.14159", 0.01, 0.0),
        ("0.4", "0.3", 0.1, 1.0),  # as people count, not as floats do
        ("0.41", "0.3", 0.1, 0.0),
        ("1e400", "0", 1e9, 0.0),
        ("1e-400", "0", 0.0, 0.0),
        ("1e-400", "0", 1e-9, 1.0),
        ("12345678901234567891", "12345678901234567890", 0.0, 0.0),
    ],
)
def test_the_tolerance_of_a_number_is_exact(text, answer, tolerance, reward):
    assert score("number", text, answer, tolerance) == reward


@pytest.mark.parametrize(
    ("name", "answer", "says"),
    [
        ("text", " . ", "no words"),
        ("number", "1e999999", "not a number"),
        ("number", "three", "not a number"),
        ("choice", "x" * 41, "longer than 40"),
        ("choice", "()", "no words"),
        ("list", "[]", "empty list"),
        ("set", ",", "empty list"),
        ("fields", "{}", "not a JSON object"),
        ("fields", '{"a": {"b": 1}}', "not a JSON object"),
        ("fields", '{"a": [1]}', "not a JSON object"),
        ("fields", '{"a": 1, "a": 2}', "not a JSON object"),
        ("fields", "[1]", "not a JSON object"),
        ("fields", "{" + ", ".join(f'"{i}": 1' for i in range(51)) + "}", "more than 50 fields"),
    ],
)
def test_what_a_grader_cannot_grade_is_said_in_words(name, answer, says):
    assert says in graders()[name].check(answer)


SIGNS = [*"0123456789.,;'_ eE+-=$%€[](){}\"\\:\n\0aAB", "\u0301", "\u0323", "\ufdfa", "²", "\ud800", "true", "null", '{"a": ']
HARD = st.lists(st.sampled_from(SIGNS), max_size=40).map("".join)


@pytest.mark.parametrize("name", NAMES)
@given(text=st.text() | HARD, answer=st.text(min_size=1) | HARD, tolerance=st.floats(0, 1e9))
def test_any_text_gets_a_score_and_a_true_answer_is_right(name, text, answer, tolerance):
    grader = graders()[name]
    assert 0.0 <= grader.score(text, answer, tolerance) <= 1.0
    if not grader.check(answer):
        assert grader.score(answer, answer, 0.0) == 1.0
        assert grader.score("", answer, 0.0) == 0.0


HOSTILE = {
    "marks": "a" + "\u0301\u0323" * 5000,
    "ligatures": "\ufdfa" * 10_000,
    "digits": "9" * 20_000,
    "numbers with equal hashes": ",".join(str(i * ((1 << 61) - 1)) for i in range(1, 1000)),
    "JSON numbers with equal hashes": str([i * ((1 << 61) - 1) for i in range(1, 1000)]),
    "brackets": "[" * 20_000,
    "objects": '{"a":' * 4000,
    "fields": "{" + ",".join(f'"{i}":{i}' for i in range(1800)) + "}",
    "quotes": "\"'" * 10_000,
    "commas": "," * 20_000,
    "spaces": " " * 20_000,
    "separators": "1," * 10_000,
    "thousands": "1" + ",000" * 5000,
    "periods": "." * 20_000,
    "signs": "$-=+%" * 4000,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", HOSTILE)
def test_ten_times_the_text_takes_about_ten_times_as_long(name, kind):
    long = HOSTILE[kind]
    seconds = [min(_seconds(name, text) for _ in range(3)) for text in (long[: len(long) // 10], long)]
    assert seconds[1] < 40 * seconds[0] + 0.01, seconds  # quadratic time would be a hundred times


def _seconds(name: str, text: str) -> float:
    began = time.process_time()
    graders()[name].score(text, TRUTHS[name], 0.0)
    return time.process_time() - began
