"""A summary of the last minute in two or three sentences, for screen readers and for a quick look."""

from collections.abc import Sequence

from waggle.gui.i18n.formatting import decimal, figure, listed, one_line, plural, tr
from waggle.protocol.events import RoundSummary
from waggle.protocol.state import State

MINUTE = 60.0
BEFORE = 20  # rounds that the reward is compared with
NOTEWORTHY = 0.02  # of reward
NAMED = 3  # specialties


def last_minute_rounds(state: State, now: float) -> tuple[RoundSummary, ...]:
    """The rounds that ended within the last whole minute, else the last one; changes at most once a minute."""
    ends = now // MINUTE * MINUTE
    ended = [summary for summary in state.rounds if summary.at < ends]
    within = tuple(summary for summary in ended if summary.at >= ends - MINUTE)
    return within or tuple(ended[-1:])


def summary_text(state: State, now: float) -> str:
    """Questions, right answers, groups from peers and change of reward; empty before the first round has ended."""
    rounds = last_minute_rounds(state, now)
    if not rounds:
        return ""
    parts = (_question_words(rounds), _from_peers(rounds, state), _reward_text(rounds, state.rounds), _aha_words(rounds, state))
    return " ".join(part for part in parts if part)


def _question_words(rounds: Sequence[RoundSummary]) -> str:
    answers = sum(summary.completions for summary in rounds)
    right = sum(round(summary.solved * summary.completions) for summary in rounds)
    titles = _specialties(rounds)
    if len(rounds) == 1:
        words = tr("Round %1: %3 of %4 right in %2.") if titles else tr("Round %1: %3 of %4 right.")
        words = words.replace("%1", figure(rounds[0].round))
    else:
        count = len(rounds)
        words = plural(count, "Last minute: %n round, %3 of %4 right.", "Last minute: %n rounds, %3 of %4 right.")
        if titles:
            words = plural(count, "Last minute: %n round, %3 of %4 right in %2.", "Last minute: %n rounds, %3 of %4 right in %2.")
    return words.replace("%2", titles).replace("%3", figure(right)).replace("%4", figure(answers))


def _specialties(rounds: Sequence[RoundSummary]) -> str:
    titles = dict.fromkeys(tr(one_line(title)) for summary in rounds for title in summary.by_specialty)
    return listed(list(titles), NAMED)


def _from_peers(rounds: Sequence[RoundSummary], state: State) -> str:
    groups = sum(summary.external for summary in rounds)
    if state.reach == "solo":
        return ""
    if not groups:
        return tr("Nothing learned from peers.")
    return plural(groups, "%n example learned from peers.", "%n examples learned from peers.")


def _reward_text(rounds: Sequence[RoundSummary], all_rounds: Sequence[RoundSummary]) -> str:
    earlier = [summary for summary in all_rounds if summary.round < rounds[0].round][-BEFORE:]
    reward = _mean_reward(rounds)
    if not earlier:
        return tr("The reward is %1.").replace("%1", decimal(reward, 2))
    before = _mean_reward(earlier)
    if abs(reward - before) < NOTEWORTHY:
        return tr("The reward stays near %1.").replace("%1", decimal(reward, 2))
    words = tr("The reward is %1, up from %2.") if reward > before else tr("The reward is %1, down from %2.")
    return words.replace("%1", decimal(reward, 2)).replace("%2", decimal(before, 2))


def _mean_reward(rounds: Sequence[RoundSummary]) -> float:
    return sum(summary.reward for summary in rounds) / len(rounds)


def _aha_words(rounds: Sequence[RoundSummary], state: State) -> str:
    numbers = {summary.round for summary in rounds}
    titles = [tr(one_line(aha.specialty)) for aha in state.ahas if aha.round in numbers]
    return tr("A first right answer in %1.").replace("%1", ", ".join(titles)) if titles else ""
