"""A set: the items of a list in any order, where repeating an item changes nothing."""

from waggle.core.message import Message
from waggle.tasks.answer_text import comparable, items
from waggle.tasks.graders.interface import Grader

MOST_ITEMS = 1000  # different ones in a text; a true answer has room for half as many


def check(answer: str) -> str:
    return "" if items(answer) else Message("is an empty list")


def score(text: str, answer: str, tolerance: float) -> float:
    text_items = frozenset(items(text))
    if len(text_items) > MOST_ITEMS:
        return 0.0
    return float(frozenset(map(comparable, text_items)) == frozenset(map(comparable, items(answer))))


GRADER = Grader(title="Set", check=check, score=score)
