"""Sensors of this computer, from psutil and a small module for each system. None means that the system does not tell."""

import sys
import time
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

import psutil

from waggle.core.settings import ScheduleSettings
from waggle.engine.system.sensors import own_processes
from waggle.protocol.schedule import Readings, plain_name

Value = TypeVar("Value")
NETWORK_SECONDS = 20.0  # between two readings of the network: each starts a process
IDLE_SECONDS = 30.0  # between two readings of idleness that no rule needs: on Wayland, each starts a process
EMPTYING_SECONDS, EMPTYING_PERCENT = 1800.0, 2.0  # a battery that loses that much in this time while plugged in empties
PROCESSORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz", "soc_thermal"})


class SensorReader:
    """Reads the sensors that the rules need. A call blocks for milliseconds, so make it in a thread.

    Idleness that no rule needs is 0, or None if this computer does not tell it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._metered: bool | None = None
        self._metered_at: float | None = None
        self._idle: float | None = None
        self._idle_at: float | None = None
        self._charge: deque[tuple[float, float]] = deque()  # (time, percent) while it was plugged in
        self._used_at: float | None = None  # when input came last, as far as the system told

    def __call__(self, rules: ScheduleSettings, *, until_away: bool = False, reads_power: bool = False) -> Readings:
        """Read the sensors. `until_away`: a pause waits for idleness. `reads_power`: also if no rule needs the plug."""
        if hasattr(time, "tzset"):
            time.tzset()  # for a laptop that travels: a process keeps the time zone that it started in
        return Readings(
            idle_seconds=self._idleness(needed=until_away or bool(rules.idle_minutes)),
            on_power=_read_or_none(self._on_power) if rules.only_on_power or reads_power else None,
            programs=_read_or_none(partial(_programs, rules.not_while)) if rules.not_while else None,
            full_screen=full_screen() if rules.not_full_screen else None,
            metered=self._is_metered() if rules.not_metered else None,
            celsius=celsius() if rules.below_celsius else None,
        )

    def _idleness(self, *, needed: bool) -> float | None:
        """Seconds without input. If the system stops telling, the user has logged out: count on from the last reading."""
        now = self._clock()
        if needed or self._idle_at is None or now - self._idle_at > IDLE_SECONDS:
            self._idle, self._idle_at = idle_seconds(), now
            self._used_at = self._used_at if self._idle is None else now - self._idle
        if needed and self._used_at is not None:
            return now - self._used_at
        return self._idle if needed or self._idle is None else 0.0

    def _on_power(self) -> bool | None:
        """Whether the computer is plugged in, and its battery does not empty all the same, as with a weak charger."""
        if sys.platform == "linux":
            from waggle.engine.system.sensors import linux

            return linux.on_power()
        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
        if battery is None or battery.power_plugged is None:
            return None
        empties = self._is_emptying(float(battery.percent), plugged=bool(battery.power_plugged))
        return bool(battery.power_plugged) and not empties

    def _is_emptying(self, percent: float, *, plugged: bool) -> bool:
        now = self._clock()
        if not plugged:
            self._charge.clear()
        while self._charge and now - self._charge[0][0] > EMPTYING_SECONDS:
            self._charge.popleft()
        self._charge.append((now, percent))
        return max(charge for _, charge in self._charge) - percent >= EMPTYING_PERCENT

    def _is_metered(self) -> bool | None:
        if self._metered_at is None or self._clock() - self._metered_at > NETWORK_SECONDS:
            self._metered, self._metered_at = is_metered(), self._clock()
        return self._metered


def idle_seconds() -> float | None:
    """Seconds since the last input from keyboard or mouse."""
    if sys.platform == "win32":
        from waggle.engine.system.sensors import windows

        return windows.idle_seconds()
    if sys.platform == "darwin":
        from waggle.engine.system.sensors import mac

        return mac.idle_seconds()
    from waggle.engine.system.sensors import linux

    return linux.idle_seconds()


def full_screen() -> bool | None:
    """Whether a program fills the screen that is not Waggle itself. macOS does not tell."""
    if sys.platform == "win32":
        from waggle.engine.system.sensors import windows

        return windows.full_screen()
    if sys.platform == "linux":
        from waggle.engine.system.sensors import linux

        return linux.full_screen()
    return None


def is_metered() -> bool | None:
    """Whether the network is metered. Only Linux tells programs that are not from an app store."""
    if sys.platform == "linux":
        from waggle.engine.system.sensors import linux

        return linux.is_metered()
    return None


def celsius() -> float | None:
    """The temperature of the processor's warmest sensor. Windows and macOS do not tell."""
    return _read_or_none(_celsius)


def _read_or_none(read: Callable[[], Value | None]) -> Value | None:
    try:
        return read()
    except (OSError, psutil.Error):  # a sensor that disappeared during the reading
        return None


def _programs(chosen: Collection[str]) -> frozenset[str]:
    """Which of these programs run, by plain name, apart from Waggle's own processes."""
    names = set(map(plain_name, chosen))
    running = ((process.pid, plain_name(process.info["name"] or "")) for process in psutil.process_iter(["name"]))
    return frozenset(name for pid, name in running if name in names and not own_processes.is_own(pid))


def _celsius() -> float | None:
    if not hasattr(psutil, "sensors_temperatures"):
        return None
    temperatures = psutil.sensors_temperatures()
    warm = [temperature.current for chip, sensors in temperatures.items() if chip in PROCESSORS for temperature in sensors]
    return max(warm, default=None)
