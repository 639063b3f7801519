"""Test the decision of the schedule for tables of rules, readings, wishes and times."""

import time

import pytest

from waggle.core.settings import ScheduleSettings
from waggle.protocol.schedule import Readings, ScheduleDecision, Tick, Wishes, decide, in_step, moment

NOW = 10 * 3600.0  # Thursday, ten o'clock
OFF = ScheduleSettings(only_on_power=False, not_full_screen=False, not_metered=False, below_celsius=0)
ALL = ScheduleSettings(idle_minutes=3, week=("#" * 24,) * 7, not_while=("Game.exe",))
GOOD = Readings(idle_seconds=999.0, on_power=True, programs=frozenset(), full_screen=False, metered=False, celsius=40.0)
NOTHING = Wishes()
GAME = Readings(programs=frozenset({"game"}))
NEVER = "." * 24
EVENINGS = (NEVER,) * 3 + ("." * 18 + "#" * 6,) + (NEVER,) * 3
MONDAY_ONLY = ("." * 9 + "#" * 15,) + (NEVER,) * 6


def rules(**named) -> ScheduleSettings:
    return ScheduleSettings(**{name: getattr(OFF, name) for name in OFF.__struct_fields__} | named)


def the_decision(
    rules: ScheduleSettings, readings: Readings, wishes: Wishes = NOTHING, now: float = NOW, before="contributing"
) -> ScheduleDecision:
    return decide(rules, readings, wishes, now, before=before, clock=lambda at: f"{at / 3600:g}h", local=time.gmtime)


WAITING = [
    (rules(idle_minutes=3), Readings(idle_seconds=60.0), "You are using the computer.", "Starts 3 min after you stop."),
    (rules(only_on_power=True), Readings(on_power=False), "The computer runs on battery.", "Starts when you plug it in."),
    (rules(week=EVENINGS), GOOD, "Your week leaves this hour out.", "Starts at 18h."),
    (rules(week=MONDAY_ONLY), GOOD, "Your week leaves this hour out.", "Starts Monday at 105h."),
    (rules(week=(NEVER,) * 7), GOOD, "Your week has no hour for it.", "Mark hours in the week to start."),
    (rules(not_while=("Game.exe", "x")), GAME, "Game.exe is running.", "Starts when it is closed."),
    (
        rules(not_full_screen=True), Readings(full_screen=True), "A program fills the screen.",
        "Starts when it does not any more.",
    ),
    (rules(not_metered=True), Readings(metered=True), "The network is metered.", "Starts on a network that is not."),
    (rules(below_celsius=80), Readings(celsius=80.0), "The processor is too warm: 80 °C.", "Starts below 75 °C."),
    (rules(kwh_a_day=0.5), Readings(kwh_today=0.5), "Today's energy is used up: 0.50 of 0.50 kWh, estimated.",
     "Starts after midnight."),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "readings", "reason", "ends"), WAITING)
def test_a_rule_that_holds_back_says_why_and_what_ends_it(rules, readings, reason, ends):
    decision = the_decision(rules, readings)
    assert (decision.standing, decision.reason, decision.ends) == ("waiting", reason, ends)
    assert decision.why[0].says == reason


@pytest.mark.parametrize("rules", [row[0] for row in WAITING if not row[0].week])
def test_what_a_computer_does_not_tell_holds_nothing_back_and_is_said(rules):
    decision = the_decision(rules, Readings())
    assert decision.standing == "contributing"
    assert [tick.passes for tick in decision.why] == [None]
    assert " tell" in decision.why[0].says or decision.why[0].says == "No battery found."


def test_with_all_rules_kept_every_one_is_ticked():
    decision = the_decision(ALL, GOOD)
    assert decision.standing == "contributing"
    assert [tick.passes for tick in decision.why] == [True] * 7


def test_the_rules_that_hold_back_come_first_and_the_first_is_the_reason():
    readings = Readings(idle_seconds=999.0, on_power=True, programs=frozenset({"game"}), full_screen=True)
    decision = the_decision(ALL, readings)
    assert [tick.rule for tick in decision.why[:2]] == ["program", "full_screen"]
    assert decision.reason == "Game.exe is running."


def test_a_rule_that_is_off_is_not_spoken_of():
    assert the_decision(OFF, Readings(on_power=False, full_screen=True)) == ScheduleDecision(
        standing="contributing", utc_offset=0
    )


@pytest.mark.parametrize(
    ("wishes", "readings", "reason", "ends"),
    [
        (Wishes(paused=True), GOOD, "Paused.", "Continues when you resume."),
        (Wishes(paused=True, until=NOW + 3600), GOOD, "Paused until 11h.", "Continues then, or when you resume."),
        (Wishes(paused=True, until=NOW + 86400), GOOD, "Paused until Friday 34h.", "Continues then, or when you resume."),
        (
            Wishes(paused=True, until_away=True), Readings(idle_seconds=0.0), "Paused until you are away.",
            "Continues 3 min after you stop using the computer.",
        ),
        (
            Wishes(paused=True, until_away=True), Readings(), "Paused until you are away.",
            "Continues when you resume: this computer does not tell whether you are using it.",
        ),
        (Wishes(paused=True, anyway_until=NOW + 9), GOOD, "Paused.", "Continues when you resume."),
    ],
)  # fmt: skip
def test_a_pause_goes_before_every_rule(wishes, readings, reason, ends):
    decision = the_decision(rules(only_on_power=True), readings, wishes)
    assert (decision.standing, decision.reason, decision.ends) == ("paused", reason, ends)


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        (0, "10:00"),
        (13.5, "23:30"),
        (14.5, "Friday 00:30"),
        (24, "Friday 10:00"),
        (143, "Wednesday 09:00"),
        (7 * 24, "8 Jan 1970 10:00"),
        (365 * 24, "1 Jan 1971 10:00"),
        (-11, "Wednesday 23:00"),
    ],
)
def test_a_moment_names_the_day_where_it_is_not_today(hours, words):
    text = moment(NOW + hours * 3600, NOW, lambda at: time.strftime("%H:%M", time.gmtime(at)), time.gmtime)
    assert text == words


@pytest.mark.parametrize("wishes", [Wishes(paused=True, until=NOW), Wishes(paused=True, until_away=True)])
def test_a_pause_that_is_over_leaves_it_to_the_rules(wishes):
    assert the_decision(OFF, GOOD, wishes).standing == "contributing"
    assert the_decision(rules(not_metered=True), Readings(idle_seconds=999.0, metered=True), wishes).standing == "waiting"


def test_contributing_anyway_holds_until_its_moment_and_still_says_what_the_rules_say():
    battery, on_battery = rules(only_on_power=True), Readings(on_power=False)
    decision = the_decision(battery, on_battery, Wishes(anyway_until=NOW + 1))
    assert (decision.standing, decision.anyway_until, decision.why[0].passes) == ("contributing", NOW + 1, False)
    assert the_decision(battery, on_battery, Wishes(anyway_until=NOW)).standing == "waiting"


@pytest.mark.parametrize(
    ("celsius", "before", "standing"),
    [(79.0, "contributing", "contributing"), (79.0, "waiting", "waiting"), (74.9, "waiting", "contributing")],
)
def test_a_warm_computer_cools_down_before_it_goes_on(celsius, before, standing):
    assert the_decision(rules(below_celsius=80), Readings(celsius=celsius), before=before).standing == standing


def test_a_days_energy_that_lasts_holds_nothing_back_and_is_said():
    decision = the_decision(rules(kwh_a_day=0.5), Readings(kwh_today=0.214))
    assert (decision.standing, decision.why[0].says) == ("contributing", "Today's energy lasts: 0.21 of 0.50 kWh, estimated.")
    assert the_decision(OFF, Readings(kwh_today=9.0)).why == (), "without a budget it is no rule"
    waits = the_decision(rules(kwh_a_day=0.5), Readings(kwh_today=0.7), Wishes(anyway_until=NOW + 60))
    assert waits.standing == "contributing", "a person's word goes before it, as before every rule"


def test_nothing_goes_on_against_a_full_disk_but_a_pause_is_still_a_pause():
    full = Tick(rule="disk", passes=False, says="Round 3 could not be saved.", ends="Make room on the disk.")
    for wishes in (NOTHING, Wishes(anyway_until=NOW + 9)):
        decision = decide(OFF, GOOD, wishes, NOW, blocker=full)
        assert (decision.standing, decision.reason, decision.ends) == ("waiting", full.says, full.ends)
    assert decide(OFF, GOOD, Wishes(paused=True), NOW, blocker=full).standing == "paused"


@pytest.mark.parametrize("later", [0.0, 9.0])
def test_wishes_move_with_a_clock_that_is_set_back_and_with_no_other(later):
    wishes = Wishes(paused=True, until=NOW + 60, anyway_until=NOW + 9, asked_at=NOW)
    assert in_step(wishes, NOW + later) == wishes
    assert in_step(wishes, NOW - 50) == Wishes(paused=True, until=NOW + 10, anyway_until=NOW - 41, asked_at=NOW - 50)
    assert in_step(wishes, 0.0) == Wishes(paused=True, until=60.0, anyway_until=9.0, asked_at=0.0)
    assert in_step(Wishes(paused=True), 0.0) == Wishes(paused=True)
