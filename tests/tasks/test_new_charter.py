"""Charters of new swarms: made from a choice of levels, or refused in words."""

import pytest

from waggle.core.errors import CharterError
from waggle.tasks import charter
from waggle.tasks.new_charter import COMPLETION_CHARACTERS, new_charter


def test_a_charter_is_made_and_read_again() -> None:
    own_charter = new_charter("  Two\tlaptops ", {"bf": ["easy", "standard"], "chain_sum": ["hard"]})
    assert own_charter.name == "Two laptops"
    assert [(specialty.dataset, specialty.levels) for specialty in own_charter.specialties] == [
        ("bf", ("easy", "standard")), ("chain_sum", ("hard",)),
    ]  # fmt: skip
    assert own_charter.specialties[0].title == "Tiny programs"
    assert charter.decode(charter.encode(own_charter), expected=own_charter.digest) == own_charter
    assert "model_hint" not in charter.encode(own_charter).decode(), "as older versions wrote it, so that its hash is the same"


def test_a_hint_of_a_model_is_one_line_and_leaves_room_to_think_as_without_one() -> None:
    own_charter = new_charter("Lab", {"bf": ["easy"]}, model_hint=" Qwen2.5\n0.5B ")
    assert own_charter.model_hint == "Qwen2.5 0.5B"
    assert (
        own_charter.completion_characters == new_charter("Lab", {"bf": ["easy"]}).completion_characters == COMPLETION_CHARACTERS
    )


def test_what_nobody_sees_in_words_is_left_out_of_them() -> None:
    own_charter = new_charter("\u202eSums \u2764\ufe0f\u3164", {"bf": ["easy"]}, model_hint="Qw\u034fen\u200b")
    assert (own_charter.name, own_charter.model_hint) == ("Sums \u2764", "Qwen")


def test_the_order_of_levels_makes_another_swarm_because_messages_name_their_place() -> None:
    first, other = (new_charter("Lab", {"bf": levels}) for levels in (["easy", "standard"], ["standard", "easy"]))
    assert first.digest != other.digest


@pytest.mark.parametrize(
    ("name", "chosen", "refusal"),
    [
        ("", {"bf": ["easy"]}, "needs a name"),
        ("x" * 61, {"bf": ["easy"]}, "cannot be made"),
        ("Nothing", {}, "cannot be made"),
        ("Nothing", {"bf": []}, "cannot be made"),
        ("Odd", {"codeio": ["easy"]}, "names codeio, which it may not"),
        ("Odd", {"bf": ["fiendish"]}, "cannot be made"),
        ("Odd", {"bf": ["hard"]}, "a level of bf that does not exist"),
        ("Twice", {"bf": ["easy", "easy"]}, "each level of a specialty once"),
        ("\u3164\u2800\u202e", {"bf": ["easy"]}, "needs a name"),
    ],
)
def test_what_cannot_be_a_swarm_is_refused_in_words(name: str, chosen: dict, refusal: str) -> None:
    with pytest.raises(CharterError, match=refusal):
        new_charter(name, chosen)
