"""Lets a change back wait before it counts: a loose plug, a fan at its limit or a roaming network must not flap.

What stops the work counts at once. What would let it go on counts once it has lasted.
"""

import time
from collections.abc import Callable

from msgspec.structs import replace

from waggle.protocol.schedule import Readings, Rule

DWELL_S = 30.0


class Dwell:
    """One condition that holds back: how long its end has lasted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ended_at: float | None = None
        self._counts = False

    def holds(self, now_true: bool) -> bool:
        """Whether the condition still counts, given whether it is true now. It counts until its end has lasted."""
        if now_true:
            self._counts, self._ended_at = True, None
        elif self._counts:
            now = self._clock()
            self._ended_at = now if self._ended_at is None else self._ended_at
            self._counts = now - self._ended_at < DWELL_S
        return self._counts


class SettledReadings:
    """Readings in which a change for the better waits; they say for what it does."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._power, self._full_screen, self._metered = Dwell(clock), Dwell(clock), Dwell(clock)
        self._programs: dict[str, Dwell] = {}
        self._warmth: list[tuple[float, float]] = []  # (time, celsius) of the last DWELL_S

    def __call__(self, readings: Readings) -> Readings:
        settling: set[Rule] = set()
        on_power, full_screen, metered = readings.on_power, readings.full_screen, readings.metered
        if self._power.holds(on_power is False) and on_power is not False:
            on_power = False
            settling.add("power")
        if self._full_screen.holds(full_screen is True) and full_screen is not True:
            full_screen = True
            settling.add("full_screen")
        if self._metered.holds(metered is True) and metered is not True:
            metered = True
            settling.add("metered")
        programs = self._with_closed_ones(readings.programs)
        return replace(
            readings, on_power=on_power, full_screen=full_screen, metered=metered, programs=programs,
            settling=frozenset(settling), closed=(programs or frozenset()) - (readings.programs or frozenset()),
            warmest=self._warmest(readings.celsius),
        )  # fmt: skip

    def _with_closed_ones(self, running: frozenset[str] | None) -> frozenset[str] | None:
        """The programs that run, and those that were closed just now."""
        for name in running or ():
            self._programs.setdefault(name, Dwell(self._clock))
        counting = {name for name, dwell in self._programs.items() if dwell.holds(name in (running or ()))}
        self._programs = {name: self._programs[name] for name in counting}
        return frozenset(counting) if counting else running

    def _warmest(self, celsius: float | None) -> float | None:
        """The highest temperature of the last while."""
        now = self._clock()
        self._warmth = [(at, value) for at, value in self._warmth if now - at < DWELL_S]
        if celsius is not None:
            self._warmth.append((now, celsius))
        return max((value for _, value in self._warmth), default=None)
