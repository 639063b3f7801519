"""Each direction keeps to the limit that the person set."""

import asyncio

import pytest

from network.loopback import SOON, answered, question_ids, share
from waggle.network.limits.bandwidth import DIRECTORY, BandwidthLimiter
from waggle.network.messages.events import GroupsArrived
from waggle.network.messages.rollout_record import MAX_BLOB


def test_in_the_long_run_no_more_goes_out_than_is_allowed_and_single_pieces_may_be_large():
    now = 0.0
    traffic = BandwidthLimiter(clock=lambda: now)
    traffic.count_sent(b"a", 10**9)
    assert traffic.may_send(b"a"), "without a limit"
    traffic.limit = 1000.0
    sent = 0
    for tenth in range(1000):
        now = tenth / 10
        sent += bytes_allowed(traffic, b"a", 5000)
    assert sent == 100 * 1000
    assert traffic.may_receive(), "the other way is paid for by itself"
    traffic.limit = None
    assert traffic.may_send(b"a")


def bytes_allowed(traffic: BandwidthLimiter, to: bytes, size: int) -> int:
    if not traffic.may_send(to):
        return 0
    traffic.count_sent(to, size)
    return size


def test_who_asks_for_payloads_all_the_time_leaves_most_of_them_to_those_who_ask_now_and_then():
    now = 0.0
    traffic = BandwidthLimiter(clock=lambda: now)
    traffic.limit = 1000.0
    greedy = [b"greedy"]
    had = dict.fromkeys([*greedy, *(b"honest %d" % number for number in range(10))], 0)
    for tenth in range(6000):
        now = tenth / 10
        now_and_then = [b"honest %d" % (tenth % 100 // 10)] if tenth % 10 == 5 else []
        for who in (*greedy, *now_and_then):
            had[who] += bytes_allowed(traffic, who, 1000)
    assert had.pop(b"greedy") <= 0.27 * 600_000
    assert min(had.values()) >= 20_000


@pytest.mark.parametrize("sources", [1, 2, 3, 4])
def test_sources_that_all_ask_all_the_time_use_the_whole_limit(sources):
    now = 0.0
    traffic = BandwidthLimiter(clock=lambda: now)
    traffic.limit = 1000.0
    total = 0
    for tenth in range(6000):
        now = tenth / 10
        total += sum(bytes_allowed(traffic, b"%d" % who, 2000) for who in range(sources))
    assert total >= 0.9 * 600_000


def test_a_limit_that_is_lifted_binds_nobody():
    traffic = BandwidthLimiter(clock=lambda: 0.0)
    traffic.limit = 1000.0
    assert [bytes_allowed(traffic, who, 5000) for who in (b"a", b"b")] == [5000, 0]
    traffic.limit = None
    assert bytes_allowed(traffic, b"a", 5000)


def test_a_payload_that_another_quota_holds_back_takes_nothing_of_the_limit():
    traffic = BandwidthLimiter(clock=lambda: 0.0)
    traffic.limit = 1000.0
    assert [traffic.may_send(who) for who in (b"a", b"a", b"b")] == [True] * 3
    traffic.count_sent(b"b", 1)
    assert [traffic.may_send(who) for who in (b"a", b"b")] == [False, False]


def test_what_came_in_is_paid_for_to_the_last_byte_however_many_came_at_once():
    now = 0.0
    traffic = BandwidthLimiter(clock=lambda: now)
    traffic.charge_received(10**9)
    traffic.limit = 1000.0
    came = 0
    for tenth in range(1000):
        now = tenth / 10
        if traffic.may_receive() and traffic.may_receive():  # asking costs nothing
            for _ in range(3):
                traffic.charge_received(5000)
            came += 3 * 5000
    assert came == pytest.approx(100 * 1000, abs=15_000)


def test_the_directory_takes_a_quarter_of_what_is_allowed_and_the_rest_is_left_for_groups():
    now = 0.0
    traffic = BandwidthLimiter(clock=lambda: now)
    assert traffic.may_send_directory(b"a", 10**9), "without a limit"
    traffic.charge_directory(10**9)
    traffic.limit = 1000.0
    askers = [bytes([number]) for number in range(5)]
    news = read = sent = came = 0
    for hundredth in range(10_000):
        now = hundredth / 100
        news += 100 * any(traffic.may_send_directory(who, 100) for who in askers)
        sent += bytes_allowed(traffic, b"f", 100)
        if traffic.may_read_directory():
            traffic.charge_directory(100)
            read += 100
        if traffic.may_receive():
            traffic.charge_received(100)
            came += 100
    assert 20_000 < news <= 25_000 >= read > 20_000
    assert 90_000 < news + sent <= 100_100 >= read + came > 90_000


def test_of_what_the_directory_sends_one_source_has_a_quarter_at_most():
    now = 0.0
    traffic = BandwidthLimiter(clock=lambda: now)
    traffic.limit = 1000.0
    news = {b"greedy": 0, b"other": 0}
    for hundredth in range(10_000):
        now = hundredth / 100
        for who in news:
            news[who] += 100 * traffic.may_send_directory(who, 100)
    assert 5_000 < min(news.values()) <= max(news.values()) <= 6_350
    assert len(traffic._directory_debts) <= 2


def test_light_clients_leave_a_quarter_of_what_may_come_at_most_and_it_is_paid_for():
    now = 0.0
    traffic = BandwidthLimiter(clock=lambda: now)
    assert traffic.may_accept_upload(b"somebody", 10**9), "without a limit"
    traffic.limit = 1000.0
    remaining = came = 0
    for hundredth in range(10_000):
        now = hundredth / 100
        remaining += 100 * any(traffic.may_accept_upload(who, 100) for who in (b"one", b"other"))
        if traffic.may_receive():
            traffic.charge_received(100)
            came += 100
    assert 20_000 < remaining <= 25_000
    assert 90_000 < remaining + came <= 100_100


def test_of_clients_that_leave_as_much_as_they_can_each_goes_before_another_once_at_most():
    now, asked_at = 0.0, 0.0
    traffic = BandwidthLimiter(clock=lambda: now)
    traffic.limit = 100_000.0
    waits = []
    for second in range(20_000):
        now = float(second)
        for greedy in (b"first", b"second", b"third"):
            traffic.may_accept_upload(greedy, MAX_BLOB)
        if asked_at <= now and traffic.may_accept_upload(b"honest", 24_000):
            waits.append(now - asked_at)
            asked_at = now + 75.0
    assert len(waits) > 100
    assert max(waits) <= 3 * MAX_BLOB / (DIRECTORY * traffic.limit) + 1.0


async def test_a_node_under_a_limit_looks_into_the_directory_less_often(start, seed_address, charter, verifier):
    node, other = await start("one", seeds=(seed_address,)), await start("other", seeds=(seed_address,))
    other.node.limit(2000.0)
    share(
        node.node, answered(charter, verifier, node.identity.peer_id, question_ids(charter, verifier, node.identity.peer_id, 1))
    )
    await other.ear.hear(GroupsArrived)
    async with asyncio.timeout(SOON):
        while other.node._bandwidth.may_read_directory():
            await asyncio.sleep(0.01)
