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
    """Begins with what the history knows of each day, and follows the rounds that end, whatever the clock is set to meanwhile."""

    def __init__(self, days: Iterable[Day], state: State, local: Local = time.localtime) -> None:
        self._local = local
        self._seconds = {day.date: day.seconds for day in days}
        self._heard = _ended(state)  # the history has them

    def read(self, state: State, computer: Computer, now: float) -> float:
        """kWh of today."""
        ended = _ended(state)
        for number, at in ended.keys() - self._heard.keys():
            date = self._date_of(at)
            self._seconds[date] = self._seconds.get(date, 0.0) + ended[number, at]
        self._heard = ended
        device = state.ready.device if state.ready else "cpu"
        return kwh(self._seconds.get(self._date_of(now), 0.0), watts(computer, threads_for(computer.threads), device))

    def _date_of(self, moment: float) -> str:
        return time.strftime("%Y-%m-%d", self._local(moment))


def _ended(state: State) -> dict[tuple[int, float], float]:
    """The seconds that each of the rounds took which are remembered."""
    return {(one.round, one.at): one.seconds for one in state.rounds}
