"""Test the energy estimate and its explanation."""

import pytest

from waggle.core.settings import ComputerSettings
from waggle.protocol.figures.energy_estimate import formula, kwh, watts

TABLE = [
    (ComputerSettings(), 2, "cpu", 12.0, "2 cores of 6 W each"),
    (ComputerSettings(), 1, "cpu", 6.0, "1 core of 6 W"),
    (ComputerSettings(cpu_percent=50), 4, "cpu", 12.0, "4 cores of 6 W each, at 50% of the time"),
    (ComputerSettings(gpu_percent=50), 4, "cuda", 60.0, "120 W for the graphics processor, at 50% of the time"),
    (ComputerSettings(gpu_percent=100), 4, "metal", 20.0, "20 W for the graphics processor, at 100% of the time"),
    (ComputerSettings(watts=35.0, cpu_percent=50), 4, "cpu", 35.0, "as you set it"),
]


@pytest.mark.parametrize(("computer", "threads", "device", "power", "words"), TABLE)
def test_watts_follow_from_what_is_busy_or_are_ones_own(computer, threads, device, power, words):
    assert watts(computer, threads, device) == power
    assert formula(computer, threads, device) == words


def test_a_hundred_watts_for_ten_hours_are_one_kwh():
    assert kwh(36_000, 100.0) == pytest.approx(1.0)
