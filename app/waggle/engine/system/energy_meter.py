"""Estimates the energy that contributing used today, for a daily budget.

It misses what an earlier engine worked outside of rounds, which the history does not have.
"""

import time
from collections.abc import Callable, Iterable

from waggle.core.settings import ComputerSettings
from waggle.models.backend import threads_for
from waggle.protocol.energy_estimate import kwh, watts
from waggle.protocol.events_identity import Day
from waggle.protocol.state import State

Local = Callable[[float], time.struct_time]


class EnergyMeter:
    """Adds the work of this run to the history's days, whatever the clock is set to meanwhile."""

    def __init__(self, days: Iterable[Day], local: Local = time.localtime) -> None:
        self._local = local
        self._seconds = {day.date: day.seconds for day in days}
        self._worked = 0.0

    def read(self, worked: float, state: State, computer: ComputerSettings, now: float) -> float:
        """The kWh of today. `worked` are the seconds of work since this meter was created."""
        today = time.strftime("%Y-%m-%d", self._local(now))
        self._seconds[today] = self._seconds.get(today, 0.0) + worked - self._worked
        self._worked = worked
        device = state.ready.device if state.ready else "cpu"
        return kwh(self._seconds[today], watts(computer, threads_for(computer.threads), device))
