"""The oracle of logic_deduction: every row of the truth table of its letters."""

import itertools
import re
from collections.abc import Callable, Mapping

from waggle_lab.truth.interface import Oracle, UnreadableQuestion

Row = Mapping[str, bool]
QUESTION = re.compile(r"(?P<premises>(?:[^\n]+\.\n)+)Is (?P<letter>[A-Z]) true, false or unknown\? Answer with one word\.")
WORDINGS: dict[str, Callable[[list[str], Row], bool]] = {  # of a premise; the first letters and truth values it names
    r"([A-Z]) is (true|false)": lambda parts, row: _holds(parts, row),
    r"([A-Z]) and ([A-Z]) are both true or both false": lambda parts, row: row[parts[0]] == row[parts[1]],
    r"Exactly one of ([A-Z]) and ([A-Z]) is true": lambda parts, row: row[parts[0]] != row[parts[1]],
    r"At least one of ([A-Z]) and ([A-Z]) is (true|false)": lambda parts, row: (
        (parts[2] == "true") in (row[parts[0]], row[parts[1]])
    ),
    r"If ([A-Z]) is (true|false), then ([A-Z]) is (true|false)": lambda parts, row: (
        not _holds(parts[:2], row) or _holds(parts[2:], row)
    ),
}


def logic_deduction(question: str, key: str) -> bool:
    """Compare the key with the values that the letter has in the rows in which every premise holds."""
    text = QUESTION.fullmatch(question)
    if text is None:
        raise UnreadableQuestion(question)
    premises = [_read(premise.removesuffix(".")) for premise in text["premises"].splitlines()]
    letters = sorted(set(re.findall(r"\b[A-Z]\b", question)))
    rows = [dict(zip(letters, row, strict=True)) for row in itertools.product((False, True), repeat=len(letters))]
    values = {row[text["letter"]] for row in rows if all(premise(row) for premise in premises)}
    if not values:
        raise UnreadableQuestion("the premises contradict each other")
    return key == ("unknown" if len(values) == 2 else "true" if True in values else "false")


def _read(premise: str) -> Callable[[Row], bool]:
    for wording, holds in WORDINGS.items():
        if match := re.fullmatch(wording, premise):
            parts = list(match.groups())
            return lambda row: holds(parts, row)
    raise UnreadableQuestion(premise)


def _holds(parts: list[str], row: Row) -> bool:
    letter, value = parts
    return row[letter] == (value == "true")


ORACLES: dict[str, Oracle] = {"logic_deduction": logic_deduction}
