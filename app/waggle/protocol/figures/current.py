"""Figures that several surfaces show, each decided here: the window, `waggle status` and `top`, the status page and its metrics.

Counts of days are in `daily_totals.py`, peers in `State.connected` and `State.members`.
"""

from collections.abc import Iterable

from waggle.core.settings import Settings
from waggle.protocol.events import HeldOutScore
from waggle.protocol.figures.daily_totals import day_on, totals
from waggle.protocol.figures.energy_estimate import kwh, watts
from waggle.protocol.state import State

SPEED_ROUNDS = 10  # whose speed is shown: that of one round jumps


def speed(state: State) -> float | None:
    """Tokens of answers a second over the last rounds; None before the first one."""
    last = tuple({summary.round: summary for summary in (*state.recalled, *state.rounds)}.values())[-SPEED_ROUNDS:]
    seconds = sum(summary.seconds for summary in last)
    return sum(summary.tokens for summary in last) / seconds if seconds else None


def held_out_scores(state: State, earlier: Iterable[HeldOutScore] = ()) -> list[HeldOutScore]:
    """The held-out scores that are known, with `earlier` ones of the history, each once, oldest first."""
    recalled = () if state.recalled_score is None else (state.recalled_score,)
    known = {score.round: score for score in (*earlier, *recalled, *state.history_scores, *state.held_out)}
    return [known[number] for number in sorted(known)]


def newest_score(state: State, earlier: Iterable[HeldOutScore] = ()) -> HeldOutScore | None:
    """The newest held-out score on questions of the present swarm; None before there is one."""
    if state.ready is None:
        return None
    titles = {specialty.title for specialty in state.ready.specialties}
    scores = held_out_scores(state, earlier)
    return next((score for score in reversed(scores) if score.total and titles.issuperset(score.by_specialty)), None)


def kwh_on(state: State, date: str, threads: int) -> float:
    """The estimated energy of contributing on a day of the engine's calendar, as the daily budget counts it.

    Without the engine's own figure for that day: the time of its rounds, at the present power with so many threads.
    """
    if state.energy is not None and state.energy.date == date:
        return state.energy.kwh
    return kwh(day_on(totals(state), date).seconds, power_now(state, threads))


def kwh_ever(state: State, date: str, threads: int) -> float:
    """The same of all days up to this one."""
    days = totals(state)
    before = max(0.0, days.all.seconds - day_on(days, date).seconds)
    return kwh(before, power_now(state, threads)) + kwh_on(state, date, threads)


def power_now(state: State, threads: int) -> float:
    """The estimated watts that contributing takes now."""
    return watts((state.settings or Settings()).computer, threads, state.ready.device if state.ready else "cpu")
