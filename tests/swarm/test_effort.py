"""Whoever made the verifier work rests for twenty times as long, and nobody else does."""

from waggle.swarm.effort import Effort

ONE, OTHER = b"one", "8.8.4.0/24"


def test_after_two_seconds_of_work_at_once_a_party_rests_for_twenty_times_what_more_it_took() -> None:
    now = 1000.0
    effort = Effort(clock=lambda: now)
    effort.spent(ONE, 1.9)
    assert not effort.rests(ONE)

    effort.spent(ONE, 1.1)

    assert effort.rests(ONE)
    assert not effort.rests(OTHER)
    now += 19.9
    assert effort.rests(ONE)
    now += 0.2
    assert not effort.rests(ONE)


def test_in_the_long_run_a_party_has_a_twentieth_of_the_time() -> None:
    now, worked = 1000.0, 0.0
    effort = Effort(clock=lambda: now)
    while now < 11_000.0:
        if not effort.rests(ONE):
            effort.spent(ONE, 5.0)
            worked += 5.0
        now += 1.0
    assert worked == 505.0


def test_honest_records_never_make_anybody_rest() -> None:
    now = 1000.0
    effort = Effort(clock=lambda: now)
    for _ in range(1000):
        effort.spent(OTHER, 0.04)  # of 128 groups
        now += 1.0
        assert not effort.rests(OTHER)


def test_whoever_has_long_paid_is_forgotten() -> None:
    now = 1000.0
    effort = Effort(clock=lambda: now)
    for number in range(100):
        effort.spent(bytes([number]), 0.1)
        now += 1.0
    assert len(effort._free_at) < 50
