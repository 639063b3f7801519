"""How answers are read: words, numbers, items and JSON, by hand and for any text."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waggle.tasks.answer_text import MOST_MARKS, comparable, items, json_value, number, words


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("Paris", "paris"),
        ("  New\n York\t", "new york"),
        ("Paris.", "paris"),
        ("Paris .", "paris"),
        ("ＡＢＣ", "abc"),
        ("ﬁre", "fire"),
        ("Cafe\u0301", "café"),
        ("STRASSE", "straße"),
        ("a\u00a0b", "a b"),
        (".", ""),
    ],
)
def test_words_are_the_same_whatever_their_case_white_space_and_form(text, same_as):
    assert words(text) == words(same_as)


def test_different_words_stay_different():
    assert len({words(text) for text in ("Paris", "Pari", "Pa ris", "Paris!", "-Paris", "café", "cafe")}) == 7


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", "42"), (" 42 ", "42"), ("42.", "42"), ("+42", "42"), ("-42", "-42"), ("\u221242", "-42"), ("007", "7"),
        ("= 42", "42"), ("=-42", "-42"),
        ("1,234,567.5", "1234567.5"), ("1 234 567", "1234567"), ("1\u202f234", "1234"), ("1'234", "1234"), ("1_000", "1000"),
        ("$1,234.50", "1234.5"), ("-$5", "-5"), ("$-5", "-5"), ("5 €", "5"), ("£ 5", "5"), ("50%", "50"), ("50 %", "50"),
        (".5", "0.5"), ("5.", "5"), ("1.50", "1.5"), ("1e3", "1000"), ("1.5E-3", "0.0015"), ("٤٢", None), ("４２", "42"),
    ],
)  # fmt: skip
def test_a_number_is_read_however_people_write_it(text, value):
    assert number(text) == (None if value is None else Decimal(value))


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ".", "-", "$", "%", "=", "e5", "abc", "4 2", "1,23", "12,34", "1,2345", "1234,567", "3,14", "1.234,5", "1/2",
        "½", "10²", "0x10", "1e999999", "1e9999", "1e401", "inf", "nan", "-Infinity", "--5", "5 apples", "1" * 65, "9" * 20_000,
        "$ $5", "0,125", "00,125", "000,005", "0 125",
    ],
)  # fmt: skip
def test_what_is_no_plain_number_is_none(text):
    assert number(text) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a, b, c", ["a", "b", "c"]),
        ("a; b, c; d", ["a", "b, c", "d"]),
        ("a\nb\n", ["a", "b"]),
        ("[1, 2.5, true]", ["1", "2.5", "true"]),
        ('["a, b", "c"]', ["a, b", "c"]),
        ("['a', 'b']", ["a", "b"]),
        ("{1, 2}", ["1", "2"]),
        ("(1, 2)", ["1", "2"]),
        ("[[1], 2]", ["[1]", "2"]),
        ("[1, 2", ["[1", "2"]),
        ("[]", []),
        ("", []),
        (", ,", []),
    ],
)
def test_items_are_found_with_and_without_brackets(text, parts):
    assert items(text) == parts


def test_numbers_compare_by_value_and_never_with_words():
    assert comparable("1,000.0") == comparable("1e3") == comparable("$1000")
    assert comparable("-0") == comparable("0")
    assert len({comparable(text) for text in ("1", "one", "-1", "1.1", "1e1", "1e-1")}) == 6


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', "NaN", "[1e5, -Infinity]", "[" * 100_000, '{"a":' * 100_000, "", "{", "'a'"]
)
def test_json_that_is_ambiguous_endless_or_none_is_a_value_error(text):
    with pytest.raises(ValueError, match=r".*"):
        json_value(text)


def test_a_huge_number_in_json_stays_text():
    digits = "9" * 100_000
    assert json_value(f"[{digits}, 1e999999]") == [digits, "1e999999"]


HARD = st.text(
    st.sampled_from([*"0123456789.,;'_ eE+-=$%€[](){}\"\\:\n\0aA", "\u0301", "\u0323", "\u2212", "\ufdfa", "²", "\ud800"])
)


@given(st.text() | HARD | HARD.map(lambda text: text * 50))
def test_any_text_can_be_read(text):
    number(text)
    comparable(text)
    assert all(item.strip() for item in items(text))
    assert "  " not in words(text)


def test_a_long_row_of_combining_marks_is_compared_as_it_is():
    marks = "\u0301\u0323" * MOST_MARKS
    assert words("a" + marks) == "a" + marks
