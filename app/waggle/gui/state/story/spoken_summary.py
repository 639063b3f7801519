"""A summary of the last minute in a sentence, for screen readers and for a quick look."""

from waggle.core.text.round_number import round_number
from waggle.gui.i18n.formatting import figure, percent, plural, tr
from waggle.protocol.events import RoundSummary
from waggle.protocol.state import State

MINUTE = 60.0


def last_minute_rounds(state: State, now: float) -> tuple[RoundSummary, ...]:
    """The rounds that ended within the last whole minute, else the last one; changes at most once a minute."""
    ends = now // MINUTE * MINUTE
    ended = [summary for summary in state.rounds if summary.at < ends]
    within = tuple(summary for summary in ended if summary.at >= ends - MINUTE)
    return within or tuple(ended[-1:])


def summary_text(state: State, now: float) -> str:
    """Rounds, the share of right answers, and examples from peers, in one sentence; empty before the first round has ended."""
    rounds = last_minute_rounds(state, now)
    if not rounds:
        return ""
    answers = sum(summary.completions for summary in rounds)
    right = sum(summary.solved * summary.completions for summary in rounds)
    first, last = (figure(round_number(summary.round)) for summary in (rounds[0], rounds[-1]))
    words = tr("Round %2: %1 right") if len(rounds) == 1 else tr("Rounds %2 to %3: %1 right")
    words = words.replace("%1", percent(right / max(1, answers))).replace("%2", first).replace("%3", last)
    if state.reach == "solo":
        return f"{words}."
    groups = sum(summary.external for summary in rounds)
    theirs = plural(groups, "%n example from peers", "%n examples from peers") if groups else tr("nothing from peers")
    return f"{words}, {theirs}."
