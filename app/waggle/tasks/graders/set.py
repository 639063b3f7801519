"""A set: the items of a list in any order, where repeating an item changes nothing."""

from waggle.tasks.answer_text import comparable, items
from waggle.tasks.graders.interface import Grader


def check(answer: str) -> str:
    return "" if items(answer) else "is an empty list"


def score(text: str, answer: str, tolerance: float) -> float:
    return float(frozenset(map(comparable, items(text))) == frozenset(map(comparable, items(answer))))


GRADER = Grader(title="Set", check=check, score=score)
