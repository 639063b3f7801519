"""The ways to pause: what each says, and when it ends."""

import time

import pytest

from waggle.protocol.schedule import time_of_day
from waggle.protocol.text.pauses import at_once, for_a_while, tomorrow_morning

EVENING = time.mktime((2026, 3, 4, 22, 30, 0, 0, 0, -1))


def test_tomorrow_morning_is_the_next_eight_o_clock():
    night = time.mktime((2026, 3, 5, 2, 30, 0, 0, 0, -1))
    morning = time.mktime((2026, 3, 5, 8, 0, 0, 0, 0, -1))
    assert tomorrow_morning(EVENING) == tomorrow_morning(night) == morning


def test_each_way_does_what_it_says():
    (hour, first), (_, second), (_, third), (_, fourth) = for_a_while(EVENING)
    assert hour == f"For 1 hour, until {time_of_day(EVENING + 3600)}"
    assert (first.seconds, third.until_away, fourth.after_round) == (3600.0, True, True)
    assert second.seconds == pytest.approx(9.5 * 3600)
    assert (at_once().seconds, at_once().until_away, at_once().after_round) == (None, False, False)
