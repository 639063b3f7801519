"""A rate limit bounds what one peer may ask, whatever others do."""

import pytest

from waggle.network.limits import rate_limits
from waggle.network.limits.address_ranges import HIDDEN, RELAYED
from waggle.network.limits.rate_limits import (
    FRIENDS,
    WORK_BURST,
    AddressRangeRateLimit,
    JointRateLimit,
    PeerRateLimits,
    RateLimit,
    all_allow,
)
from waggle.tasks.rollout_group import NEWCOMERS

FIRST, OTHER = b"one", b"other"


def test_a_burst_is_allowed_and_then_the_rate() -> None:
    now = 0.0
    bounded = RateLimit(rate=2.0, burst=5.0, clock=lambda: now)
    assert [bounded.allows(FIRST) for _ in range(6)] == [True] * 5 + [False]
    now = 1.0
    assert [bounded.allows(FIRST) for _ in range(3)] == [True, True, False]


def test_nobody_pays_for_another() -> None:
    bounded = RateLimit(rate=0.0, burst=1.0, clock=lambda: 0.0)
    assert bounded.allows(FIRST)
    assert not bounded.allows(FIRST)
    assert bounded.allows(OTHER)


def test_what_is_refused_costs_nothing() -> None:
    bounded = RateLimit(rate=0.0, burst=10.0, clock=lambda: 0.0)
    assert not bounded.allows(FIRST, 11.0)
    assert bounded.allows(FIRST, 10.0)


def test_what_came_unasked_is_paid_off_before_there_is_more() -> None:
    now = 0.0
    bounded = RateLimit(rate=2.0, burst=10.0, clock=lambda: now)
    bounded.charge(FIRST, 14.0)
    now = 2.5
    assert not bounded.allows(FIRST, 2.0)
    now = 3.0
    assert bounded.allows(FIRST, 2.0)
    assert bounded.allows(OTHER, 10.0)


def test_what_one_of_two_quotas_refuses_is_counted_in_neither() -> None:
    own, of_range = RateLimit(rate=0.0, burst=10.0, clock=lambda: 0.0), RateLimit(rate=0.0, burst=15.0, clock=lambda: 0.0)
    assert all_allow((own, FIRST, 8.0), (of_range, b"range", 8.0))
    assert not all_allow((own, OTHER, 8.0), (of_range, b"range", 8.0))
    assert not all_allow((own, FIRST, 7.0), (of_range, b"range", 7.0))
    assert all_allow((own, OTHER, 7.0), (of_range, b"range", 7.0))


def test_whoever_had_too_much_rests_by_itself_and_a_crowd_as_a_whole_until_it_is_paid_off() -> None:
    now = 0.0
    joint = JointRateLimit(rate=1.0, burst=2.0, times=4.0, clock=lambda: now)
    joint.charge((FIRST, "all"), 7.0)
    assert [joint.has(payers) for payers in ((FIRST, "all"), (OTHER, "all"))] == [False, True]
    joint.charge((OTHER, "all"), 7.0)
    assert [joint.has(payers) for payers in ((b"new", "all"), (b"new", "others"))] == [False, True]
    now = 1.5
    assert joint.has((b"new", "all"))
    now = 4.5
    assert not joint.has((FIRST, "all"))
    now = 5.0
    assert joint.has((FIRST, "all"))


@pytest.mark.parametrize(
    ("crowd", "share"),
    [("", 0.05), (NEWCOMERS, 0.2), ("gone", 0.2), ("trusted gone", 0.2), *((friends, 0.5) for friends in sorted(FRIENDS))],
)
def test_ever_new_names_have_a_fifth_of_the_verifiers_time_or_half_once_trusted_and_one_name_a_twentieth(
    crowd: str, share: float
) -> None:
    now, worked = 0.0, 0.0
    accounts = PeerRateLimits(clock=lambda: now)
    while now < 10_000.0:
        now += 1.0
        payers = str(now) if crowd else FIRST, crowd
        if not accounts.used_up(payers):
            accounts.work.charge(payers, 5.0)
            worked += 5.0
    assert worked / now == pytest.approx(share, rel=0.02)


def test_honest_records_never_make_anybody_rest() -> None:
    now = 0.0
    accounts = PeerRateLimits(clock=lambda: now)
    for _ in range(1000):
        accounts.work.charge((FIRST, FIRST), WORK_BURST / 50)  # of 128 groups
        accounts.pulls.charge((FIRST, FIRST), 400e3)  # ten times as much as those come to
        now += 1.0
        assert not accounts.used_up((FIRST, FIRST))


def test_an_address_range_has_one_share_and_of_all_that_are_relayed_a_peer_has_a_quarter() -> None:
    shares = AddressRangeRateLimit(rate=0.0, burst=8.0, clock=lambda: 0.0)
    assert shares.allows(FIRST, "8.8.4.0/24", 8.0)
    assert not shares.allows(OTHER, "8.8.4.0/24", 1.0)
    assert [shares.allows(FIRST, RELAYED, 1.0) for _ in range(3)] == [True, True, False]
    assert shares.allows(OTHER, RELAYED, 2.0)
    assert shares.allows(FIRST, "", 8.0)
    assert shares.allows(OTHER, "", 8.0)


def test_those_that_are_hidden_leave_those_that_are_relayed_their_share() -> None:
    shares = AddressRangeRateLimit(rate=0.0, burst=8.0, clock=lambda: 0.0)
    crowd = [bytes([number]) for number in range(5)]
    assert not shares.allows(crowd[0], HIDDEN, 3.0)
    assert [shares.allows(each, HIDDEN, 2.0) for each in crowd] == [*[True] * 2, *[False] * 3], (
        "half is for those who want little"
    )
    assert shares.allows(OTHER, HIDDEN, 0.1)
    assert shares.allows(FIRST, RELAYED, 2.0)


def test_memory_is_bounded() -> None:
    bounded = RateLimit(rate=0.0, burst=1.0, clock=lambda: 0.0)
    for number in range(rate_limits.REMEMBERED + 10):
        bounded.allows(number.to_bytes(4, "big"))
    assert len(bounded._buckets) == rate_limits.REMEMBERED


@pytest.mark.parametrize("crowd", [RELAYED, HIDDEN])
def test_of_a_crowd_a_few_greedy_ones_leave_half_to_all_who_had_little(crowd: str) -> None:
    now = 0.0
    shares = AddressRangeRateLimit(rate=640.0, burst=6400.0, clock=lambda: now)
    greedy, modest, news = [bytes([number]) for number in range(8)], b"modest", 0
    while now < 100.0:
        now += 0.5
        for each in greedy:
            while shares.allows(each, crowd, 20.0):
                pass
        news += shares.allows(modest, crowd, 5.0)
    assert news == 200
