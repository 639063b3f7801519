"""A question on one line: its gist, with the whole question in the tooltip."""

import re

from waggle.gui.i18n.formatting import one_line
from waggle.gui.widgets.text import ElidedLabel, set_tip
from waggle.protocol.json_lines import LONGEST_SHOWN

ASKED_FOR = re.compile(r"(?:Respond|Provide|Return|Give|Reply|Specify)\b[^:]*\Z")  # a last paragraph that only says how to answer


def gist(question: str) -> str:
    """The part that identifies a question, on one line: the end, because questions of a specialty begin alike.

    A last paragraph about the form of the answer is skipped.
    """
    parts = [part.strip() for part in re.split(r"\n\s*\n", question[:LONGEST_SHOWN]) if part.strip()] or [""]
    while len(parts) > 1 and ASKED_FOR.match(parts[-1]):
        parts.pop()
    first, _, second = parts[-1].partition("\n")
    task = second if first.endswith(".") and second and "\n" not in second and not second.endswith(".") else parts[-1]
    summary = one_line(task)
    return summary if one_line(question).startswith(summary) else f"…{summary}"


def say_question(line: ElidedLabel, question: str) -> None:
    """Show the gist; tooltip and screen reader have the whole question."""
    line.say(gist(question))
    line.setAccessibleName(one_line(question))
    if line.words() != one_line(question):
        set_tip(line, one_line(question))
