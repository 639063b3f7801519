"""The meter: what today took, from the history and from the rounds that end, and nothing of yesterday."""

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
    meter = Meter(days, NOON, time.gmtime)
    state = State(ready=ready(), rounds=(ended(1, NOON - 60, HOUR), ended(2, NOON + 60, HOUR)))
    assert meter.read(State(), COMPUTER, NOON) == pytest.approx(0.1)
    for _ in range(3):
        assert meter.read(state, COMPUTER, NOON + 90) == pytest.approx(0.2), "the history has the round before the start"


def test_a_new_day_begins_at_nothing():
    meter = Meter((Day(date="1970-01-01", rounds=1, answers=1, seconds=HOUR),), NOON, time.gmtime)
    assert meter.read(State(), COMPUTER, NOON + 13 * HOUR) == 0.0
    late = State(rounds=(ended(2, NOON + HOUR, HOUR), ended(3, NOON + 12.5 * HOUR, 0.5 * HOUR)))
    assert meter.read(late, COMPUTER, NOON + 13 * HOUR) == pytest.approx(0.05)
