"""A question on one line: its gist, with the whole question in the tooltip."""

from waggle.gui.i18n.formatting import one_line
from waggle.gui.state.story.typesetting import task_lines
from waggle.gui.widgets.text import ElidedLabel, set_tip
from waggle.protocol.json_lines import LONGEST_SHOWN


def gist(question: str) -> str:
    """The part that identifies a question, on one line."""
    lines = question[:LONGEST_SHOWN].splitlines()
    summary = one_line(" ".join(lines[i] for i in task_lines(lines)))
    return summary if one_line(question).startswith(summary) else f"…{summary}"


def say_question(line: ElidedLabel, question: str) -> None:
    """Show the gist; tooltip and screen reader have the whole question."""
    line.say(gist(question))
    line.setAccessibleName(one_line(question))
    if line.words() != one_line(question):
        set_tip(line, one_line(question))
