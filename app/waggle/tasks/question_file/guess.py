"""Guesses how a person's answers are to be graded. The person may choose another grader."""

from collections.abc import Sequence

from waggle.tasks.answer_text import words
from waggle.tasks.graders import graders

NEARLY_ALL = 0.9  # of the answers: the others look like slips
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


def nearly_fitting(answers: Sequence[str]) -> tuple[str, list[int]]:
    """The name of a grader that fits nearly all answers but not all, and the positions of the others; ("", []) if none does."""
    for name, beginning in (("number", ""), ("fields", "{"), ("list", "[")):
        check = graders()[name].check
        misfits = [i for i, answer in enumerate(answers) if not answer.startswith(beginning) or check(answer)]
        if misfits and len(answers) - len(misfits) >= NEARLY_ALL * len(answers):
            return name, misfits
    return "", []


def possible(answers: Sequence[str]) -> tuple[str, ...]:
    """The names of all graders that can grade these answers."""
    return tuple(name for name in graders() if _fit(name, answers))


def _fit(name: str, answers: Sequence[str]) -> bool:
    check = graders()[name].check
    return not any(check(answer) for answer in answers)
