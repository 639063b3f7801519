"""Guesses how a person's answers are to be graded. The person may choose another grader."""

from collections.abc import Sequence

from waggle.tasks.answer_text import words
from waggle.tasks.graders import graders

MOST_CHOICES = 10
LONGEST_CHOICE = 20  # characters
ANSWERS_PER_CHOICE = 4  # on average at least


def guess(answers: Sequence[str]) -> str:
    """The name of the grader that fits all answers best."""
    if _fit("number", answers):
        return "number"
    if all(answer.startswith("{") for answer in answers) and _fit("fields", answers):
        return "fields"
    if all(answer.startswith("[") for answer in answers) and _fit("list", answers):
        return "list"
    choices = {words(answer) for answer in answers}
    is_choice = len(choices) <= MOST_CHOICES and len(choices) * ANSWERS_PER_CHOICE <= len(answers)
    if is_choice and all(len(choice) <= LONGEST_CHOICE for choice in choices) and _fit("choice", answers):
        return "choice"
    return "text"


def possible(answers: Sequence[str]) -> tuple[str, ...]:
    """The names of all graders that can grade these answers."""
    return tuple(name for name in graders() if _fit(name, answers))


def _fit(name: str, answers: Sequence[str]) -> bool:
    check = graders()[name].check
    return not any(check(answer) for answer in answers)
