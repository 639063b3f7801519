"""The meter: what today took, from the history and from the rounds that end, and nothing of yesterday."""

import os
import time

import pytest

from gui.recorded import ready
from waggle.engine.meter import Meter
from waggle.protocol.events import RoundSummary
from waggle.protocol.person import Day
from waggle.protocol.state import State
from waggle.settings import Computer

NOON = 12 * 3600.0  # of the first of January 1970
COMPUTER = Computer(watts=100.0)
HOUR = 3600.0


def ended(number: int, at: float, seconds: float) -> RoundSummary:
    return RoundSummary(round=number, at=at, reward=0.0, solved=0.0, seconds=seconds)


def test_today_is_what_the_history_knows_and_each_round_once():
    days = (
        Day(date="1969-12-31", rounds=1, answers=1, seconds=9 * HOUR),
        Day(date="1970-01-01", rounds=1, answers=1, seconds=HOUR),
    )
    before = State(ready=ready(), rounds=(ended(1, NOON - 60, HOUR),))
    meter = Meter(days, before, time.gmtime)
    state = State(ready=ready(), rounds=(*before.rounds, ended(2, NOON + 60, HOUR)))
    assert meter.read(before, COMPUTER, NOON) == pytest.approx(0.1), "the history has the round before the start"
    for _ in range(3):
        assert meter.read(state, COMPUTER, NOON + 90) == pytest.approx(0.2)


def test_a_new_day_begins_at_nothing():
    meter = Meter((Day(date="1970-01-01", rounds=1, answers=1, seconds=HOUR),), State(), time.gmtime)
    assert meter.read(State(), COMPUTER, NOON + 13 * HOUR) == 0.0
    late = State(rounds=(ended(2, NOON + HOUR, HOUR), ended(3, NOON + 12.5 * HOUR, 0.5 * HOUR)))
    assert meter.read(late, COMPUTER, NOON + 13 * HOUR) == pytest.approx(0.05)


def test_a_clock_that_is_set_back_loses_no_round():
    meter = Meter((), State(), time.gmtime)
    first = State(rounds=(ended(1, NOON, HOUR),))
    assert meter.read(first, COMPUTER, NOON) == pytest.approx(0.1)
    then = State(rounds=(*first.rounds, ended(2, NOON - 2 * HOUR, HOUR)))
    assert meter.read(then, COMPUTER, NOON - 2 * HOUR) == pytest.approx(0.2)


def test_cores_that_are_chosen_later_count_from_then_on():
    meter = Meter((Day(date="1970-01-01", rounds=1, answers=1, seconds=HOUR),), State(), time.gmtime)
    cores = os.cpu_count() or 1
    for chosen in {1, cores}:
        read = meter.read(State(ready=ready(threads=99, device="cpu")), Computer(threads=chosen), NOON)
        assert read == pytest.approx(0.006 * chosen)
