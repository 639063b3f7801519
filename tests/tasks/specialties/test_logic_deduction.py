"""Deductions: their answers are true, balanced, many, and neither a constant nor a copied premise gives them away."""

import re
from collections import Counter
from collections.abc import Callable

import pytest

from waggle.tasks.shipped_swarms import first_swarm
from waggle.tasks.specialties.interface import Difficulty, Entry
from waggle.tasks.specialties.logic_deduction import DATASET
from waggle_lab.truth.oracles.logic_deduction import logic_deduction

SEEDS = 3000
MOST = 0.55  # mean reward of a blind strategy
VALUES = "true|false"


def entries(level: Difficulty) -> list[Entry]:
    return [DATASET.entry(seed, DATASET.levels[level]) for seed in range(SEEDS)]


def last_word(question: str) -> str:
    """The truth value that the last premise names last."""
    return re.findall(VALUES, question.splitlines()[-2])[-1]


def fact(question: str) -> str:
    """The truth value of the premise that is a fact."""
    return re.findall(rf"^[A-Z] is ({VALUES})\.$", question, re.MULTILINE)[0]


def negated_fact(question: str) -> str:
    return "true" if fact(question) == "false" else "false"


def value_beside_the_letter(question: str) -> str:
    """The truth value that a premise gives the letter of the question; the last one named if none does."""
    premises, last = question.rsplit("\n", 1)
    letter = last.split()[1]
    return (re.findall(rf"{letter} is ({VALUES})", premises) or re.findall(VALUES, premises))[-1]


def unknown_without_equivalence(question: str) -> str:
    return last_word(question) if re.search("both|Exactly", question) else "unknown"


@pytest.mark.parametrize("level", DATASET.levels)
def test_every_answer_is_true_and_alone_so(level: Difficulty) -> None:
    for entry in entries(level):
        assert [answer for answer in ("true", "false", "unknown") if logic_deduction(entry.question, answer)] == [entry.answer]


@pytest.mark.parametrize("level", DATASET.levels)
@pytest.mark.parametrize(
    "blind",
    [last_word, fact, negated_fact, value_beside_the_letter, unknown_without_equivalence],
    ids=lambda blind: blind.__name__,
)
def test_a_blind_copy_of_a_premise_does_not_win(level: Difficulty, blind: Callable[[str], str]) -> None:
    assert sum(DATASET.score(blind(entry.question), entry.answer) for entry in entries(level)) < MOST * SEEDS


@pytest.mark.parametrize("level", DATASET.levels)
def test_the_answers_are_balanced_and_the_questions_many(level: Difficulty) -> None:
    drawn = entries(level)
    assert all(0.3 * SEEDS < count < 0.37 * SEEDS for count in Counter(entry.answer for entry in drawn).values())
    assert len({entry.question for entry in drawn}) > 2500


def test_only_the_word_is_paid() -> None:
    assert [DATASET.score(text, "unknown") for text in ("unknown", " Unknown\n", "true", "unknown true", "")] == [1, 1, 0, 0, 0]


def test_it_is_the_logic_of_the_first_swarm() -> None:
    titles = {specialty.dataset: specialty.title for specialty in first_swarm().specialties}
    assert titles["logic_deduction"] == "Logic"
    assert "propositional_logic" not in titles
