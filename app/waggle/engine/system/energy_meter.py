"""Estimates the energy that contributing used today, for a daily budget. What was counted once never falls on the same day.

Today's figure is stored about once a minute, because the history has rounds only: it knows nothing of a round that a crash
ended, nor of the work before the first one, and a budget that forgets them is no budget.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from waggle.core import paths
from waggle.core.errors import UNREADABLE
from waggle.core.settings import ComputerSettings
from waggle.models.backend import threads_for
from waggle.protocol.events import EnergyCounted
from waggle.protocol.events_identity import Day
from waggle.protocol.figures.energy_estimate import kwh, watts
from waggle.protocol.state import State

Local = Callable[[float], time.struct_time]
NAME = "energy.json"  # of its home
STORE_S = 60.0
MOST_BYTES = 4096


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    date: str
    kwh: Annotated[float, msgspec.Meta(ge=0.0, le=1e4)]


class EnergyMeter:
    """Adds the work of this run to the history's days, whatever the clock is set to meanwhile, or the power is from now on.

    `path`: where today's figure is stored; None: nowhere.
    """

    def __init__(self, days: Iterable[Day], local: Local = time.localtime, path: Path | None = None) -> None:
        self._local, self._path = local, path
        self._seconds = {day.date: day.seconds for day in days}
        self._kwh: dict[str, float] = {}
        self._stored = _read(path)
        self._worked = self._stored_at = 0.0

    def read(self, worked: float, state: State, computer: ComputerSettings, now: float) -> EnergyCounted:
        """The energy of today. `worked` are the seconds of work since this meter was created."""
        today = time.strftime("%Y-%m-%d", self._local(now))
        power = watts(computer, threads_for(computer.threads), state.ready.device if state.ready else "cpu")
        if today not in self._kwh:
            before = self._stored.kwh if self._stored and self._stored.date == today else 0.0
            self._kwh[today] = max(before, kwh(self._seconds.get(today, 0.0), power))
        self._kwh[today] += kwh(worked - self._worked, power)
        self._worked = worked
        if worked - self._stored_at >= STORE_S:
            self._stored_at = worked
            self._store(_Stored(date=today, kwh=self._kwh[today]))
        return EnergyCounted(date=today, kwh=self._kwh[today])

    def _store(self, now: _Stored) -> None:
        if self._path is not None:
            with suppress(OSError):  # a full disk holds the engine elsewhere; here a minute is lost
                paths.write_atomically(self._path, msgspec.json.encode(now))


def _read(path: Path | None) -> _Stored | None:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(MOST_BYTES), type=_Stored)
    except (OSError, *UNREADABLE):  # the first start, or damaged: the history's rounds count
        return None
