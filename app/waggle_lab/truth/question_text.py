"""Reads the text of a question by its whole wording, so that a changed wording is noticed instead of misread."""

import re

from waggle_lab.truth.interface import UnreadableQuestion

FIELD = re.compile("«(.+?)»")


class Wording:
    """The whole text of a dataset's questions. «name» stands for a part that varies; its regular expression is a keyword."""

    def __init__(self, text: str, /, **fields: str) -> None:
        literals = FIELD.split(text)  # literal text and names of fields by turns
        parts = (f"(?P<{part}>{fields[part]})" if number % 2 else re.escape(part) for number, part in enumerate(literals))
        self._pattern = re.compile("".join(parts))

    def read(self, question: str) -> dict[str, str]:
        """The parts of a question that vary, by name. Raises UnreadableQuestion for any other text."""
        match = self._pattern.fullmatch(question)
        if match is None:
            raise UnreadableQuestion(question[:80])
        return match.groupdict()


def read(pattern: re.Pattern[str], question: str) -> re.Match[str]:
    """The match of a whole question. Raises UnreadableQuestion."""
    if match := pattern.fullmatch(question):
        return match
    raise UnreadableQuestion(f"not of the known form: {question[:80]!r}")
