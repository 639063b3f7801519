"""What this computer tells about itself: battery, programs, temperature. None wherever it does not tell."""

import asyncio

import psutil

from waggle.protocol.rules import Readings, plain_name
from waggle.settings import When


def read(rules: When) -> Readings:
    """Look at what these rules ask for. Takes milliseconds; call it beside the loop."""
    return Readings(
        on_power=_on_power() if rules.only_on_power else None,
        programs=_programs() if rules.not_while else None,
        celsius=_celsius() if rules.below_celsius else None,
    )


async def read_soon(rules: When) -> Readings:
    """The same, beside the loop."""
    return await asyncio.to_thread(read, rules)


def _on_power() -> bool | None:
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if battery is None or battery.power_plugged is None:
        return None
    return bool(battery.power_plugged)


def _programs() -> frozenset[str]:
    return frozenset(plain_name(process.info["name"] or "") for process in psutil.process_iter(["name"]))


def _celsius() -> float | None:
    """The warmest of the processor's sensors."""
    if not hasattr(psutil, "sensors_temperatures"):  # Windows and Macs hide them
        return None
    found = psutil.sensors_temperatures()
    warm = [one.current for chip, sensors in found.items() if chip in PROCESSORS for one in sensors]
    return max(warm, default=None)


PROCESSORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz", "soc_thermal"})
