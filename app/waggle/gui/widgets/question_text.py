"""A question in one line: its gist, with the whole in the tooltip."""

import re

from waggle.gui.i18n.formatting import one_line
from waggle.gui.widgets.text import ElidedLabel, set_tip
from waggle.protocol.json_lines import LONGEST_SHOWN

ASKED_FOR = re.compile(r"(?:Respond|Provide|Return|Give|Reply|Specify)\b[^:]*\Z")  # a paragraph on how to answer, and no more


def gist(question: str) -> str:
    """What makes it this question, on one line: its end, for all of a kind begin alike, and may say at last how to answer."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", question[:LONGEST_SHOWN]) if part.strip()] or [""]
    while len(parts) > 1 and ASKED_FOR.match(parts[-1]):
        parts.pop()
    first, _, second = parts[-1].partition("\n")
    task = second if first.endswith(".") and second and "\n" not in second and not second.endswith(".") else parts[-1]
    summary = one_line(task)
    return summary if one_line(question).startswith(summary) else f"…{summary}"


def say_question(line: ElidedLabel, question: str) -> None:
    """Its gist, with the whole in the tooltip and for whoever hears it."""
    line.say(gist(question))
    line.setAccessibleName(one_line(question))
    if line.words() != one_line(question):
        set_tip(line, one_line(question))
