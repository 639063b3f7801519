"""Exact text, apart from case, white space, forms of the same character (NFKC) and a period at the end."""

from waggle.core.message import Message
from waggle.tasks.answer_text import words
from waggle.tasks.graders.interface import Grader


def check(answer: str) -> str:
    return "" if words(answer) else Message("has no words")


def score(text: str, answer: str, tolerance: float) -> float:
    return float(words(text) == words(answer))


GRADER = Grader(title="Exact text", check=check, score=score)
