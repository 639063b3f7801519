"""The load of this computer: measured every ten seconds, and published only if it changed."""

import time

from waggle.core.system.machine import usable_cores
from waggle.engine.system.load_meter import EVERY_SECONDS, LoadMeter


class Computer:
    """Two clocks and a thermometer."""

    def __init__(self) -> None:
        self.now, self.worked, self.degrees = 100.0, 5.0, 61.4

    def meter(self) -> LoadMeter:
        return LoadMeter(lambda: self.now, lambda: self.worked, lambda: self.degrees)


def test_the_share_of_all_cores_since_the_last_reading() -> None:
    computer = Computer()
    meter = computer.meter()
    computer.now += EVERY_SECONDS - 1
    assert meter.read() is None, "too early"
    computer.now += 1
    computer.worked += 0.5 * EVERY_SECONDS * usable_cores()
    load = meter.read()
    assert load is not None
    assert (load.cpu, load.celsius) == (0.5, 61.0)
    computer.now += EVERY_SECONDS
    computer.degrees = 70.0
    load = meter.read()
    assert load is not None
    assert (load.cpu, load.celsius) == (0.0, 70.0)
    computer.now += EVERY_SECONDS
    assert meter.read() is None, "nothing changed"


def test_what_this_process_works_counts() -> None:
    now, fast, began = [0.0], 20, time.process_time()
    meter = LoadMeter(lambda: now[0], lambda: fast * time.process_time(), lambda: None)
    while time.process_time() - began < 0.1:
        sum(range(1000))
    now[0] = EVERY_SECONDS
    load = meter.read()
    assert load is not None
    assert load.celsius is None
    assert 0.19 / usable_cores() <= load.cpu <= 1.0
