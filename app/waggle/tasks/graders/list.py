"""A list whose items have to be right in number and order; each is a number or words."""

from waggle.core.message import Message
from waggle.tasks.answer_text import comparable, items
from waggle.tasks.graders.interface import Grader


def check(answer: str) -> str:
    return "" if items(answer) else Message("is an empty list")


def score(text: str, answer: str, tolerance: float) -> float:
    text_items, true_items = items(text), items(answer)
    return float(len(text_items) == len(true_items) and [*map(comparable, text_items)] == [*map(comparable, true_items)])


GRADER = Grader(title="List", check=check, score=score)
