"""The pool keeps groups that teach, a fair share of each party, and each group once."""

import msgspec

from network.loopback import EPOCH, judged
from waggle.network.exchange.pool import GroupPool
from waggle.tasks.questions import EPOCH_SECONDS
from waggle.tasks.shipped_swarms import first_swarm

CHARTER = first_swarm()


def pool(capacity: int = 8, now: float = EPOCH * EPOCH_SECONDS) -> GroupPool:
    return GroupPool(CHARTER, capacity, clock=lambda: now)


def test_what_was_added_waits_until_it_is_taken() -> None:
    first, two = judged(1, 1), judged(2, 1)
    waiting_pool = pool()
    assert waiting_pool.add([first, two]) == [first, two]

    waiting_pool.take([first])
    waiting_pool.take([first])

    assert waiting_pool.waiting() == (two,)


def test_a_group_is_kept_once_even_after_it_was_taken() -> None:
    first = judged(1, 1)
    waiting_pool = pool()
    waiting_pool.add([first])
    assert waiting_pool.add([first]) == []

    waiting_pool.take([first])

    assert waiting_pool.add([first]) == []
    assert len(waiting_pool) == 0


def test_one_address_range_fills_a_quarter_at_most_whatever_it_calls_itself() -> None:
    waiting_pool = pool()
    waiting_pool.add([msgspec.structs.replace(judged(origin, 1), source="192.0.2.0/24") for origin in range(1, 9)])
    waiting_pool.add([judged(20, 1)])
    assert len([group for group in waiting_pool.waiting() if group.source]) == 2
    assert waiting_pool.waiting()[-1].group.origin[0] == 20


def test_a_peer_that_is_dropped_leaves_the_pool() -> None:
    waiting_pool = pool()
    waiting_pool.add([judged(1, 1), judged(2, 1)])
    waiting_pool.drop(judged(1, 1).group.origin)
    assert [group.group.origin[0] for group in waiting_pool.waiting()] == [2]


def test_one_peer_fills_a_quarter_at_most() -> None:
    waiting_pool = pool()
    waiting_pool.add([judged(1, index) for index in range(20)])
    assert [each.group.id.number for each in waiting_pool.waiting()] == [18, 19]


def test_what_teaches_nothing_is_told_but_takes_no_room() -> None:
    waiting_pool = pool()
    dull = judged(3, 0, useful=False)
    assert waiting_pool.add([dull]) == [dull]
    assert len(waiting_pool) == 0


def test_whoever_learns_from_crumbs_keeps_them_too() -> None:
    dull = judged(3, 0, useful=False)  # rewards .05 and 0
    waiting_pool = GroupPool(CHARTER, 8, clock=lambda: EPOCH * EPOCH_SECONDS, crumb_span=0.05)
    waiting_pool.add([dull])
    assert waiting_pool.waiting() == (dull,)


def test_a_full_pool_drops_the_oldest() -> None:
    waiting_pool = pool()
    waiting_pool.add([judged(origin, 0) for origin in range(1, 10)])
    assert [each.group.origin[0] for each in waiting_pool.waiting()] == [2, 3, 4, 5, 6, 7, 8, 9]


def test_groups_older_than_the_age_window_are_gone() -> None:
    now = EPOCH * float(EPOCH_SECONDS)
    waiting_pool = GroupPool(CHARTER, 8, clock=lambda: now)
    waiting_pool.add([judged(1, 0), judged(2, 0, epoch=EPOCH - 3)])

    now += 4 * EPOCH_SECONDS

    assert [each.group.origin[0] for each in waiting_pool.waiting()] == [1]
    now += 3 * EPOCH_SECONDS
    assert waiting_pool.waiting() == ()


def test_a_flood_from_many_ranges_pushes_no_honest_peer_out() -> None:
    waiting_pool = pool(capacity=40)
    waiting_pool.add([judged(origin, 1) for origin in range(1, 9)])
    for number in range(5):
        flood = [judged(100 + number, index) for index in range(40)]
        waiting_pool.add([msgspec.structs.replace(group, source=f"192.0.{number}.0/24") for group in flood])
    assert {group.group.origin[0] for group in waiting_pool.waiting()} >= set(range(1, 9))


def test_one_relayed_flooder_leaves_the_other_relayed_peers_their_places() -> None:
    waiting_pool = pool(capacity=64)
    relayed = [judged(origin, index) for origin in range(1, 9) for index in range(1)] + [judged(99, index) for index in range(64)]
    waiting_pool.add([msgspec.structs.replace(group, source="relay") for group in relayed])
    assert {group.group.origin[0] for group in waiting_pool.waiting()} == {*range(1, 9), 99}
