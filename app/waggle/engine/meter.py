"""The meter: how much energy contributing took today, as estimated, so that a day's budget can be kept."""

import time
from collections.abc import Callable, Iterable

from waggle.policy.choose import threads_for
from waggle.protocol.footprint import kwh, watts
from waggle.protocol.person import Day
from waggle.protocol.state import State
from waggle.settings import Computer

Local = Callable[[float], time.struct_time]


class Meter:
    """Begins with what the history knows of today, and follows the rounds that end; a new day begins at 0."""

    def __init__(self, days: Iterable[Day], now: float, local: Local = time.localtime) -> None:
        self._local, self._heard = local, now
        self._date = self._date_of(now)
        self._seconds = sum(day.seconds for day in days if day.date == self._date)

    def read(self, state: State, computer: Computer, now: float) -> float:
        """kWh of today."""
        self._follow(state, now)
        threads, device = (state.ready.threads, state.ready.device) if state.ready else (threads_for(computer.threads), "cpu")
        return kwh(self._seconds, watts(computer, threads, device))

    def _follow(self, state: State, now: float) -> None:
        date = self._date_of(now)
        if date != self._date:
            self._date, self._seconds = date, 0.0
        fresh = [one for one in state.rounds if one.at > self._heard]
        self._seconds += sum(one.seconds for one in fresh if self._date_of(one.at) == date)
        self._heard = max([self._heard, *(one.at for one in fresh)])

    def _date_of(self, moment: float) -> str:
        return time.strftime("%Y-%m-%d", self._local(moment))
