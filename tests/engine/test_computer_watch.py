"""Test the watch over the computer."""

import asyncio

from waggle.core import paths
from waggle.engine.computer_watch import watch_computer
from waggle.engine.lifecycle import Lifecycle
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.system.memory_backoff import MemoryBackoff
from waggle.rl.batch import nothing


async def test_what_is_worked_beside_the_rounds_uses_up_the_energy_of_a_day_too(tmp_path):
    home = paths.Home(tmp_path).prepare()
    publisher, backoff = EventPublisher(home.events), MemoryBackoff(home, "")
    live_settings = LiveSettings(home.settings, ("when.kwh_a_day=0.01", "computer.watts=100"), publisher)
    seconds, decided = [0.0], asyncio.Event()
    lifecycle = Lifecycle(publisher, live_settings.now.when)
    lifecycle.gate = PauseGate(nothing, clock=lambda: seconds[0])
    lifecycle.gate()
    seconds[0] = 400.0
    publisher.attach(lambda line: decided.set())
    watch = asyncio.ensure_future(watch_computer(lifecycle, live_settings, publisher, backoff))
    async with asyncio.timeout(60):
        await decided.wait()
    watch.cancel()
    await asyncio.wait([watch])
    lifecycle.stop()
    assert publisher.state.decision.reason.startswith("Today's energy is used up: 0.01 of 0.01 kWh")
    publisher.close()
