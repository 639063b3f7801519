"""Watches the computer while the engine runs: what the rules of the schedule need, energy, sleep, and the limit of memory."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import structs

from waggle.core import settings
from waggle.core.errors import MemoryShort
from waggle.core.message import Message
from waggle.engine.lifecycle import Lifecycle
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.services.guards import Guards
from waggle.engine.startup.node import PreparedNode
from waggle.engine.system.energy_meter import EnergyMeter
from waggle.engine.system.keep_awake import KeepAwake, wants_awake
from waggle.engine.system.load_meter import LoadMeter
from waggle.engine.system.memory_backoff import MemoryBackoff
from waggle.engine.system.resource_limits import GB, memory_used
from waggle.engine.system.sensors import SensorReader
from waggle.engine.system.settling import Dwell, SettledReadings
from waggle.protocol import events
from waggle.protocol.events_identity import Day

SENSOR_SECONDS = 2.0
SMALLER_PARTS_ADVICE = Message("It continues in smaller parts, which take less memory.")


async def watch_computer(
    lifecycle: Lifecycle, live_settings: LiveSettings, publisher: EventPublisher, backoff: MemoryBackoff,
    days: Callable[[], Iterable[Day]] = tuple, energy: Path | None = None,
    node: Callable[[], PreparedNode | None] = lambda: None, awake: KeepAwake | None = None,
) -> None:  # fmt: skip
    """Read the sensors that the rules need every two seconds, let the lifecycle decide again, and enforce the memory limit."""
    settled, above_cap, guards = SettledReadings(), Dwell(), Guards(publisher)
    read_sensors, is_blocked, meter = SensorReader(), False, EnergyMeter(await asyncio.to_thread(days), path=energy)
    load = LoadMeter()
    while True:
        computer = live_settings.now.computer
        readings = await asyncio.to_thread(
            read_sensors, live_settings.now.when, until_away=lifecycle.until_away, reads_power=computer.keep_awake == "on_power"
        )
        energy_today = meter.read(lifecycle.gate.worked_seconds, publisher.state, live_settings.now.computer, publisher.now())
        readings = settled(readings)
        lifecycle.decide_again(structs.replace(readings, kwh_today=energy_today.kwh))
        if awake is not None:
            await _keep_awake(awake, computer, readings.on_power, publisher)
        _publish_energy(publisher, energy_today)
        if (measured := await asyncio.to_thread(load.read)) is not None:
            publisher.publish(measured)
        cap_gb = live_settings.now.computer.memory_gb
        is_playing = publisher.state.phase in ("contributing", "finishing", "waiting") and not lifecycle.restart_reason
        is_above = bool(cap_gb and is_playing and await asyncio.to_thread(memory_used) > cap_gb * GB)
        stays_blocked = above_cap.holds(is_above) and bool(cap_gb)
        if is_above:
            is_blocked = not _use_less_memory(lifecycle, publisher, backoff, cap_gb)
        elif is_blocked and not stays_blocked:
            is_blocked = False
            lifecycle.report_blocker(None)
        elif publisher.state.phase == "contributing":
            backoff.record_success(SENSOR_SECONDS)
        prepared = node()
        guards.observe(
            parts=backoff.parts if backoff.is_backed_off else 1,
            limit_kb=live_settings.now.computer.traffic_kb if prepared and prepared.swarm.is_limited else 0,
            has_gap=publisher.record_has_gap,
            disk_gb=live_settings.now.computer.disk_gb,
            unmet_bytes=prepared.disk.unmet if prepared else 0,
            is_away=bool(prepared and prepared.swarm.is_away),
        )
        await asyncio.sleep(SENSOR_SECONDS)


def _use_less_memory(lifecycle: Lifecycle, publisher: EventPublisher, backoff: MemoryBackoff, cap_gb: float) -> bool:
    """Restart in smaller parts, as the engine uses more memory than the person allows; return False if there are none."""
    words = Message("Training used more than the %1 GB of memory that you allow", f"{cap_gb:g}")
    if not backoff.back_off():
        lifecycle.report_blocker(
            MemoryShort(Message("%1, also in its smallest parts.", words), "Let Waggle use more memory in Settings.")
        )
        return False
    publisher.publish(events.Warned(title=Message("%1.", words), advice=SMALLER_PARTS_ADVICE))
    lifecycle.restart("Memory is short.")
    return True


async def _keep_awake(
    awake: KeepAwake, computer: settings.ComputerSettings, on_power: bool | None, publisher: EventPublisher
) -> None:
    """Keep the system awake, or let it sleep, and publish each change."""
    state = publisher.state
    await awake.follow(wants_awake(computer, state.phase, on_power, is_loading=state.downloading is not None))
    now = events.KeptAwake(holds=awake.holds, trouble=awake.trouble)
    known = state.awake or events.KeptAwake(holds=False)
    if (known.holds, known.trouble) != (now.holds, now.trouble):
        publisher.publish(now)


def _publish_energy(publisher: EventPublisher, today: events.EnergyCounted) -> None:
    """Publish each Wh."""
    known, now = publisher.state.energy, structs.replace(today, kwh=round(today.kwh, 3))
    if known is None or (known.date, known.kwh) != (now.date, now.kwh):
        publisher.publish(now)
