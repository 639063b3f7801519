"""A change for the worse counts at once, a change back once it has lasted: work that flaps helps nobody."""

import time

import pytest

from waggle.core.settings import ScheduleSettings
from waggle.engine.system.settling import DWELL_S, Dwell, SettledReadings
from waggle.protocol.schedule import Readings, Wishes, decide

RULES = ScheduleSettings(
    only_on_power=True, not_full_screen=True, not_metered=True, not_while=("game",), below_celsius=80, idle_minutes=0
)
GOOD = Readings(on_power=True, full_screen=False, metered=False, programs=frozenset(), celsius=50.0)
WORSE = {
    "power": {"on_power": False}, "full_screen": {"full_screen": True}, "metered": {"metered": True},
    "program": {"programs": frozenset({"game"})}, "temperature": {"celsius": 90.0},
}  # fmt: skip


class Computer:
    """Settled readings of a computer, and the decisions that follow from them, by a clock of its own."""

    def __init__(self):
        self.now, self.standing = 0.0, "contributing"
        self.settled = SettledReadings(lambda: self.now)

    def reads(self, after=2.0, **changed):
        self.now += after
        readings = self.settled(Readings(**{**{name: getattr(GOOD, name) for name in GOOD.__struct_fields__}, **changed}))
        decision = decide(RULES, readings, Wishes(), 1e9 + self.now, before=self.standing, local=time.gmtime)
        self.standing = decision.standing
        return decision


@pytest.mark.parametrize("rule", WORSE)
def test_the_worse_counts_at_once_and_the_better_after_a_while(rule):
    computer = Computer()
    assert computer.reads().standing == "contributing"
    assert computer.reads(**WORSE[rule]).standing == "waiting"
    back = computer.reads()
    assert (back.standing, back.ends) == ("waiting", "Starts within a minute, if it stays so.")
    assert computer.reads(DWELL_S / 2).standing == "waiting"
    assert computer.reads(DWELL_S).standing == "contributing"


@pytest.mark.parametrize("rule", WORSE)
def test_a_flutter_is_one_wait(rule):
    computer = Computer()
    standings = [computer.reads(2.0, **(WORSE[rule] if step % 3 == 0 else {})).standing for step in range(60)]
    assert set(standings) == {"waiting"}


@pytest.mark.parametrize("rule", WORSE)
def test_what_is_still_true_is_not_said_to_be_over(rule):
    computer = Computer()
    for _ in range(3):
        decision = computer.reads(**WORSE[rule])
    assert decision.standing == "waiting"
    assert "if it stays so" not in decision.ends


def test_a_sensor_that_disappears_is_a_change_back_too():
    computer = Computer()
    computer.reads(on_power=False)
    assert computer.reads(on_power=None).standing == "waiting"
    assert computer.reads(DWELL_S, on_power=None).standing == "contributing"


def test_of_two_programs_the_one_that_runs_is_named_as_running():
    computer = Computer()
    rules = ScheduleSettings(not_while=("game", "film"))
    computer.settled(Readings(programs=frozenset({"game", "film"})))
    readings = computer.settled(Readings(programs=frozenset({"film"})))
    says = [tick.says for tick in decide(rules, readings, Wishes(), 1e9).why if tick.rule == "program"]
    assert says == ["game was closed just now.", "film is running."]


def test_memory_below_the_cap_counts_once_it_has_lasted():
    now = [0.0]
    above = Dwell(lambda: now[0])
    assert [above.holds(True), above.holds(False)] == [True, True]
    now[0] += DWELL_S
    assert not above.holds(False)
    assert not above.holds(False), "and is not remembered for ever"


def test_nothing_held_back_at_a_start_waits_for_nothing():
    assert Computer().reads().standing == "contributing"
