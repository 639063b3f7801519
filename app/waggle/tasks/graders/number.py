"""A number, at most `tolerance` away from the true one."""

from waggle.core.message import Message
from waggle.tasks.answer_text import DECIMALS, number
from waggle.tasks.graders.interface import Grader


def check(answer: str) -> str:
    return "" if number(answer) is not None else Message("is not a number like 1234.5, 1,234.5 or 1.2e6")


def score(text: str, answer: str, tolerance: float) -> float:
    value, truth = number(text), number(answer)
    if value is None or truth is None:
        return 0.0
    distance = DECIMALS.abs(DECIMALS.subtract(value, truth))
    return float(distance <= DECIMALS.create_decimal(repr(tolerance)))  # 0.1, not its nearest binary fraction


GRADER = Grader(title="Number", check=check, score=score, uses_tolerance=True)
