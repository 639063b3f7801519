"""Bytes per second over the last five seconds, and what a new limit changes."""

from waggle.network.limits.bandwidth import REMEMBERED, BandwidthLimiter, _FairTurns


def test_rates_follow_the_last_five_seconds() -> None:
    now = 0.0
    traffic = BandwidthLimiter(clock=lambda: now)
    traffic.count_sent(b"a", 1000)
    now = 3.0
    traffic.count_received(500)
    assert traffic.rates() == (200.0, 100.0)

    now = 6.0
    assert traffic.rates() == (0.0, 100.0)

    now = 9.0
    assert traffic.rates() == (0.0, 0.0)


def test_another_limit_holds_at_once_whatever_went_over_the_one_before() -> None:
    traffic = BandwidthLimiter(clock=lambda: 0.0)
    traffic.limit = 5000.0
    traffic.charge_received(2_000_000)
    traffic.charge_directory(2_000_000)
    traffic.count_sent(b"a", 2_000_000)
    assert not any(may_go_on(traffic))

    traffic.limit = 5000.0
    assert not any(may_go_on(traffic)), "nothing has changed"

    traffic.limit = 1_000_000.0
    assert all(may_go_on(traffic))
    traffic.charge_received(2_000_000)
    assert not traffic.may_receive(), "the new one holds"


def may_go_on(traffic: BandwidthLimiter) -> tuple[bool, ...]:
    return traffic.may_receive(), traffic.may_read_directory(), traffic.may_send(b"a")


def test_a_crowd_that_waits_under_ever_new_names_is_bounded_and_pushes_out_the_oldest() -> None:
    turns = _FairTurns()
    for number in range(3 * REMEMBERED):
        turns.wait(number.to_bytes(4, "big"), 0.0)
    assert len(turns._waiting) == REMEMBERED
    assert (3 * REMEMBERED - 1).to_bytes(4, "big") in turns._waiting
