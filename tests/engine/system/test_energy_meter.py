"""Test that the meter adds today's work to the history's day, and nothing of yesterday."""

import time

import pytest

from gui.recorded import ready
from waggle.core.settings import ComputerSettings
from waggle.core.system.machine import usable_cores
from waggle.engine.system.energy_meter import EnergyMeter
from waggle.protocol.events_identity import Day
from waggle.protocol.state import State

NOON = 12 * 3600.0  # of the first of January 1970
COMPUTER = ComputerSettings(watts=100.0)
HOUR = 3600.0
STATE = State(ready=ready())


def test_today_is_what_the_history_knows_and_each_second_that_was_worked_since_once():
    days = (
        Day(date="1969-12-31", rounds=1, answers=1, seconds=9 * HOUR),
        Day(date="1970-01-01", rounds=1, answers=1, seconds=HOUR),
    )
    meter = EnergyMeter(days, time.gmtime)
    assert meter.read(0.0, STATE, COMPUTER, NOON).kwh == pytest.approx(0.1)
    for _ in range(3):
        assert meter.read(HOUR, STATE, COMPUTER, NOON + HOUR).kwh == pytest.approx(0.2)


def test_a_new_day_begins_at_nothing():
    meter = EnergyMeter((Day(date="1970-01-01", rounds=1, answers=1, seconds=HOUR),), time.gmtime)
    assert meter.read(HOUR, STATE, COMPUTER, NOON + 11 * HOUR).kwh == pytest.approx(0.2)
    assert meter.read(HOUR, STATE, COMPUTER, NOON + 13 * HOUR).kwh == 0.0
    assert meter.read(1.5 * HOUR, STATE, COMPUTER, NOON + 13.5 * HOUR).kwh == pytest.approx(0.05)


def test_a_clock_that_is_set_back_loses_no_work():
    meter = EnergyMeter((), time.gmtime)
    assert meter.read(HOUR, STATE, COMPUTER, NOON).kwh == pytest.approx(0.1)
    assert meter.read(2 * HOUR, STATE, COMPUTER, NOON - 2 * HOUR).kwh == pytest.approx(0.2)


def test_cores_that_are_chosen_later_count_from_then_on():
    meter = EnergyMeter((Day(date="1970-01-01", rounds=1, answers=1, seconds=HOUR),), time.gmtime)
    cores, expected = usable_cores(), 0.0
    for place, chosen in enumerate((cores, 1)):
        expected += 0.006 * chosen * (2 - place)  # the history's hour by what is chosen now
        read = meter.read(
            (place + 1) * HOUR, State(ready=ready(threads=99, device="cpu")), ComputerSettings(threads=chosen), NOON
        )
        assert read.kwh == pytest.approx(expected)


def test_what_was_counted_before_a_crash_counts_after_it_and_fewer_watts_take_none_of_it_back(tmp_path):
    """A round that a crash ended is in no history: the day's figure fell, and the budget began anew."""
    path, days = tmp_path / "energy.json", (Day(date="1970-01-01", rounds=1, answers=1, seconds=HOUR),)
    before = EnergyMeter(days, time.gmtime, path).read(HOUR, STATE, COMPUTER, NOON).kwh
    after = EnergyMeter(days, time.gmtime, path)
    assert after.read(0.0, STATE, COMPUTER, NOON).kwh == pytest.approx(before)
    assert after.read(0.0, STATE, ComputerSettings(watts=1.0), NOON).kwh == pytest.approx(before)
    assert EnergyMeter((), time.gmtime, path).read(0.0, STATE, COMPUTER, NOON + 24 * HOUR).kwh == 0.0


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"date":"1970-01-01","kwh":-5}', b'{"date":"1970-01-01","kwh":1e300}', b"[" * 9000]
)
def test_a_damaged_figure_leaves_that_of_the_history(tmp_path, content):
    path = tmp_path / "energy.json"
    path.write_bytes(content)
    meter = EnergyMeter((Day(date="1970-01-01", rounds=1, answers=1, seconds=HOUR),), time.gmtime, path)
    assert meter.read(0.0, STATE, COMPUTER, NOON).kwh == pytest.approx(0.1)
