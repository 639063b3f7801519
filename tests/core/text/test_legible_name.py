"""A name keeps the letters of every script, and loses what has no picture of its own."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waggle.core.text.legible_name import legible


@pytest.mark.parametrize(
    "name",
    [
        "", "Qwen2.5-0.5B-Instruct", "starter 🐝", "Müller & Søn", "Việt", "模型", "모델", "モデル", "модель", "हिन्दी", "தமிழ்",
        "ภาษาไทย ก็ที่",
        "עִבְרִית", "العَرَبِيَّة", "ქართული", "a+b (2)",
    ],
)  # fmt: skip
def test_names_in_every_script_are_names(name: str) -> None:
    assert legible(name) == name


@pytest.mark.parametrize(
    ("character", "why"),
    [
        ("\u200b", "Cf"), ("\u200d", "Cf"), ("\u202e", "Cf"), ("\u2066", "Cf"), ("\xad", "Cf"), ("\ufeff", "Cf"),
        ("\U000e0041", "Cf"),
        ("\0", "Cc"), ("\x1b", "Cc"), ("\ue000", "Co"), ("\u0378", "Cn"), ("\ud800", "Cs"), ("\u0489", "Me"), ("\u20dd", "Me"),
        ("\u0336\u0353", "Mn"), ("\u0338", "Mn"), ("\ufe0f", "Mn"), ("\U000e0100", "Mn"), ("\u034f", "Mn"), ("\u17b4", "Mn"),
        ("\u180b", "Mn"), ("\u0e34", "Mn"), ("\u093e", "Mc"), ("\u115f", "Lo"), ("\u1160", "Lo"),
        ("\u3164", "Lo"), ("\uffa0", "Lo"),
        ("\u2800", "So"), ("\U0001d159", "So"), ("\ufffd", "So"), ("\ufffc", "So"),
    ],
)  # fmt: skip
def test_what_has_no_picture_of_its_own_is_left_out(character: str, why: str) -> None:
    assert unicodedata.category(character[0]) == why
    assert legible(f"Qw{character}en") == "Qwen"
    assert legible(character) == ""


@pytest.mark.parametrize("character", ["\U00013441", "\U00013442", "\u2d31\u2d7f"])
def test_nor_is_what_newer_tables_of_unicode_call_letters_or_what_joins_invisibly(character: str) -> None:
    assert legible(f"Qw{character}en") in ("Qwen", "Qw\u2d31en")


@pytest.mark.parametrize("space", ["  ", "\u00a0", "\u2003", "\u3000", "\u2028", "\u2029", "\t", "\n", "\u205f"])
def test_every_space_is_a_single_plain_one(space: str) -> None:
    assert legible(f"{space}Brisk{space}Otter{space}") == "Brisk Otter"


def test_an_accent_stays_in_its_letter_and_a_pile_of_them_does_not() -> None:
    assert legible("Mode\u0300le") == "Modèle"
    assert legible("Z\u0351\u0343\u036b") == "Z"
    assert legible("\u05d0" + "\u05b8" * 9) == "\u05d0" + "\u05b8" * 2


@given(st.text(st.characters()))
def test_a_legible_name_stays_as_it_is(name: str) -> None:
    once = legible(name)
    assert legible(once) == once
    assert once.isprintable()


def test_of_all_characters_only_those_with_a_picture_stand_alone() -> None:
    for code in range(sys.maxunicode + 1):
        if name := legible(chr(code)):
            kinds = {unicodedata.category(character)[0] for character in name}
            assert kinds <= set("LNPS") or unicodedata.decomposition(chr(code)), hex(code)
