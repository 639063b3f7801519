"""What this computer tells about itself, from psutil and small readers for each system. None wherever it does not tell."""

import sys
import time
from collections.abc import Callable
from typing import TypeVar

import psutil

from waggle.core.settings import ScheduleSettings
from waggle.protocol.schedule import Readings, plain_name

Answer = TypeVar("Answer")
NETWORK_SECONDS = 20.0  # asking about the network costs a process
IDLE_SECONDS = 30.0  # so does asking about idleness, on some screens
PROCESSORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz", "soc_thermal"})


class SensorReader:
    """Looks when it is asked, in milliseconds; call it beside the loop. Reads what the rules ask for.

    Idleness that nobody asks for is 0, or None where this computer does not tell it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._metered: bool | None = None
        self._asked_at: float | None = None
        self._idle: float | None = None
        self._idle_at: float | None = None
        self._used_at: float | None = None  # as far as it was told

    def __call__(self, rules: ScheduleSettings, *, until_away: bool = False) -> Readings:
        """`until_away`: a pause waits for idleness."""
        if hasattr(time, "tzset"):
            time.tzset()  # of a computer that travels: a process keeps the time zone that it began in
        return Readings(
            idle_seconds=self._idleness(needed=until_away or bool(rules.idle_minutes)),
            on_power=_ask(_on_power) if rules.only_on_power else None,
            programs=_ask(_programs) if rules.not_while else None,
            full_screen=full_screen() if rules.not_full_screen else None,
            metered=self._is_metered() if rules.not_metered else None,
            celsius=_ask(_celsius) if rules.below_celsius else None,
        )

    def _idleness(self, *, needed: bool) -> float | None:
        """Seconds without input. If the system no longer says, they count from the last reading: the user has logged out."""
        now = self._clock()
        if needed or self._idle_at is None or now - self._idle_at > IDLE_SECONDS:
            self._idle, self._idle_at = idle_seconds(), now
            self._used_at = self._used_at if self._idle is None else now - self._idle
        if needed and self._used_at is not None:
            return now - self._used_at
        return self._idle if needed or self._idle is None else 0.0

    def _is_metered(self) -> bool | None:
        if self._asked_at is None or self._clock() - self._asked_at > NETWORK_SECONDS:
            self._metered, self._asked_at = metered(), self._clock()
        return self._metered


def idle_seconds() -> float | None:
    """Since keyboard and mouse were used last."""
    if sys.platform == "win32":
        from waggle.engine.system.sensors import windows

        return windows.idle_seconds()
    if sys.platform == "darwin":
        from waggle.engine.system.sensors import mac

        return mac.idle_seconds()
    from waggle.engine.system.sensors import linux

    return linux.idle_seconds()


def full_screen() -> bool | None:
    """Whether a program fills the screen. Macs do not tell."""
    if sys.platform == "win32":
        from waggle.engine.system.sensors import windows

        return windows.full_screen()
    if sys.platform == "linux":
        from waggle.engine.system.sensors import linux

        return linux.full_screen()
    return None


def metered() -> bool | None:
    """Whether the network's traffic is counted. Only Linux tells programs that are not from its shop."""
    if sys.platform == "linux":
        from waggle.engine.system.sensors import linux

        return linux.metered()
    return None


def _ask(ask: Callable[[], Answer | None]) -> Answer | None:
    try:
        return ask()
    except (OSError, psutil.Error):  # a sensor that went away in the middle of the question tells nothing
        return None


def _on_power() -> bool | None:
    if sys.platform == "linux":
        from waggle.engine.system.sensors import linux

        return linux.on_power()
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if battery is None or battery.power_plugged is None:
        return None
    return bool(battery.power_plugged)


def _programs() -> frozenset[str]:
    return frozenset(plain_name(process.info["name"] or "") for process in psutil.process_iter(["name"]))


def _celsius() -> float | None:
    """The warmest of the processor's sensors. Windows and Macs hide them."""
    if not hasattr(psutil, "sensors_temperatures"):
        return None
    temperatures = psutil.sensors_temperatures()
    warm = [temperature.current for chip, sensors in temperatures.items() if chip in PROCESSORS for temperature in sensors]
    return max(warm, default=None)
