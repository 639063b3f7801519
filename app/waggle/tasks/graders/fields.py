"""A JSON object with the same fields as the true one; each value is a number, words, true, false or null."""

from typing import Any

from waggle.core.message import Message
from waggle.tasks.answer_text import comparable, json_value, scalar
from waggle.tasks.graders.interface import Grader

MOST_FIELDS = 50


def check(answer: str) -> str:
    fields = _fields(answer)
    if not fields:
        return Message('is not a JSON object like {"name": "Ada", "born": 1815} with plain values')
    return "" if len(fields) <= MOST_FIELDS else Message("has more than %1 fields", MOST_FIELDS)


def score(text: str, answer: str, tolerance: float) -> float:
    """All or nothing: fields that are the same in most answers would pay for a text that fits all questions."""
    fields, truth = _fields(text), _fields(answer)
    if not fields or not truth or fields.keys() != truth.keys():
        return 0.0
    return float(all(_comparable(fields[name]) == _comparable(truth[name]) for name in truth))


def _fields(text: str) -> dict[str, Any] | None:
    """The values by name; None if the text is no object of plain values."""
    try:
        value = json_value(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or any(each is not None and scalar(each) is None for each in value.values()):
        return None
    return value


def _comparable(value: Any) -> str | None:
    return None if value is None else comparable(str(scalar(value)))


GRADER = Grader(title="Fields of a JSON object", check=check, score=score)
