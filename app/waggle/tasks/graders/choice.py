"""One of several choices, such as B, yes or Paris: a text may put it in brackets or quotes, or add words after "B)" or "B."."""

from waggle.core.message import Message
from waggle.tasks.answer_text import words
from waggle.tasks.graders.interface import Grader

LONGEST_CHOICE = 40  # characters
AROUND = " .:,;!*\"'`()[]{}"
AFTER_LABEL = (") ", ". ", ": ")


def check(answer: str) -> str:
    if len(answer) > LONGEST_CHOICE:
        return Message("is longer than %1 characters, too long for a choice", LONGEST_CHOICE)
    return "" if _choice(answer) else Message("has no words")


def score(text: str, answer: str, tolerance: float) -> float:
    choice, truth = _choice(text), _choice(answer)
    if len(truth) == 1 and choice[:1] == truth and choice[1:3] in AFTER_LABEL:
        return 1.0
    return float(choice == truth)


def _choice(text: str) -> str:
    return words(text).strip(AROUND)


GRADER = Grader(title="One of several choices", check=check, score=score)
