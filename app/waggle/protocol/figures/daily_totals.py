"""This computer's contribution by day: the engine's last totals plus the rounds since, so that no page and no command lags."""

import datetime

from msgspec.structs import replace

from waggle.protocol.events import RoundSummary
from waggle.protocol.events_identity import DailyTotals, Day
from waggle.protocol.state import State


def engine_date(state: State, at: float) -> datetime.date:
    """The date of a time in the engine's calendar, which its days are of, as it may run in another time zone."""
    offset = state.days.utc_offset if state.days else None
    if offset is None:
        return datetime.datetime.fromtimestamp(at, datetime.UTC).astimezone().date()
    return datetime.datetime.fromtimestamp(at + offset, datetime.UTC).date()


def totals(state: State) -> DailyTotals:
    """The days up to now; before the engine has sent any, those of the rounds that this State has seen."""
    stored = state.days or DailyTotals(days=(), all=_empty(""))
    days = {day.date: day for day in stored.days}
    for summary in state.since:
        date = engine_date(state, summary.at).isoformat()
        days[date] = _day_plus_round(days.get(date) or _empty(date), summary)
    everything = stored.all if stored.all.rounds or not state.since else _empty(engine_date(state, state.since[0].at).isoformat())
    for summary in state.since:
        everything = _day_plus_round(everything, summary)
    takers = [peer.groups_pulled for peer in state.peers.values() if peer.groups_pulled]
    trained = sum(bool(peer.groups_pulled or peer.received) for peer in state.peers.values())
    used_by = max(stored.used_by, len(takers))
    return replace(
        stored, days=tuple(days[date] for date in sorted(days)), all=everything, used_by=used_by,
        groups_pulled=max(stored.groups_pulled, sum(takers)), met=max(stored.met, trained, used_by),
    )  # fmt: skip


def day_on(days: DailyTotals, date: str) -> Day:
    """The totals of one day; zeros for a day without work."""
    return next((day for day in days.days if day.date == date), None) or _empty(date)


def _empty(date: str) -> Day:
    return Day(date=date or "1970-01-01", rounds=0, answers=0)


def _day_plus_round(day: Day, summary: RoundSummary) -> Day:
    return replace(
        day,
        rounds=day.rounds + 1,
        answers=day.answers + summary.completions,
        right=day.right + round(summary.solved * summary.completions),
        learned=day.learned + summary.external,
        seconds=day.seconds + summary.seconds,
    )
