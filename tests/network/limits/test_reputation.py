"""A peer's reputation counts what this node has experienced itself."""

import pytest

from network.loopback import be_of_use, judged
from waggle.network.identity.keys import name_of
from waggle.network.limits.address_ranges import Route
from waggle.network.limits.rate_limits import Payers
from waggle.network.limits.reputation import (
    DOUBT_S,
    FORGIVEN_S,
    KNOWN_FROM,
    MAX_ABSENT,
    MAX_PEERS,
    MAX_STRIKES,
    TRUSTED_FROM,
    TRUSTED_PART,
    PeerReputation,
    ReputationTable,
    trusted_peers,
)
from waggle.network.limits.reputation_changes import ReputationChanges
from waggle.tasks.rollout_group import NEWCOMERS

PEER = bytes([1]) * 38


def test_everything_a_peer_does_is_counted() -> None:
    trust = ReputationTable(clock=lambda: 50.0)
    trust.record_groups(PEER, 3, "starter", [judged(1, 0), judged(1, 1, useful=False)])
    trust.record_groups(PEER, 4, "larger", [judged(1, 2)])
    trust.record_training(PEER, used=2)
    trust.record_pull(PEER, 5)
    trust.record_rejection(PEER, "too long")
    trust.record_ping(PEER, 12.5)
    trust.update_connections({PEER: ("relay", "relay")})

    (peer,) = trust

    assert (peer.received, peer.useful, peer.used, peer.taken, peer.rejected) == (3, 2, 2, 5, 1)
    assert (peer.round, peer.model, peer.delay_ms, peer.connection, peer.seen_at) == (4, "larger", 12.5, "relay", 50.0)
    assert peer.mean_reward == pytest.approx((0.5 + 0.025 + 0.5) / 3)
    assert peer.name == name_of(PEER)


def test_changes_are_told_once() -> None:
    trust = ReputationTable()
    changes = ReputationChanges(trust)
    trust.update_connections({PEER: ("direct", "")})
    trust.update_connections({PEER: ("direct", "")})
    assert [peer.connection for peer in changes.since_last()] == ["direct"]
    assert changes.since_last() == []

    trust.update_connections({})

    assert [peer.connection for peer in changes.since_last()] == ["gone"]


def test_the_longest_unseen_is_forgotten_first() -> None:
    now = 0.0
    trust = ReputationTable(clock=lambda: now)
    peers = [i.to_bytes(38, "big") for i in range(MAX_PEERS + 1)]
    for now, peer in enumerate(peers):  # noqa: B007 - the clock reads it
        trust.record_ping(peer, 1.0)

    assert {peer.id for peer in trust} == set(peers[1:])


def test_more_peers_than_there_are_places_for_push_nobody_out_who_is_here() -> None:
    trust = ReputationTable(clock=lambda: 1.0)
    crowd = [i.to_bytes(38, "big") for i in range(MAX_PEERS + 200)]
    gone, here = crowd[:100], crowd[100:]
    for peer in gone:
        trust.record_ping(peer, 1.0)
    be_of_use(trust, gone[0])
    ways = dict.fromkeys(here, ("direct", ""))
    trust.update_connections(ways)
    changes = ReputationChanges(trust)
    known = {peer.id for peer in trust}
    assert known == {gone[0], *here[: MAX_PEERS - 1]}, "whoever was of use stays; of the others those who are gone make room"
    for _ in range(3):
        trust.update_connections(ways)
        assert changes.since_last() == []
    assert {peer.id for peer in trust} == known

    trust.update_connections({here[-1]: ("relay", "relay")})

    assert {peer.id for peer in trust if peer.connection != "gone"} == {here[-1]}


def absent_friends() -> ReputationTable:
    """A table whose places are all taken by trusted peers that were never seen again."""
    now = 0.0
    trust = ReputationTable(clock=lambda: now)
    for i in range(MAX_PEERS):
        now = float(i)
        be_of_use(trust, i.to_bytes(38, "big"))
    assert len(trusted_peers(trust)) == MAX_PEERS
    now += 365 * 86_400
    return trust


def test_trusted_peers_that_never_return_keep_half_of_the_places_and_newcomers_are_trusted_in_the_others() -> None:
    trust = absent_friends()
    newcomers = [(1000 + i).to_bytes(38, "big") for i in range(20)]
    for number in range(KNOWN_FROM):
        for peer in newcomers:  # whether or not they are connected, one after the other
            trust.record_groups(peer, number, "m", [judged(1, index) for index in range(TRUSTED_FROM)])
    assert trusted_peers(trust) > set(newcomers)
    crowd = [(2000 + i).to_bytes(38, "big") for i in range(MAX_PEERS)]
    trust.update_connections(dict.fromkeys(crowd, ("direct", "")))
    assert {peer.id for peer in trust if peer.connection != "gone"} == set(crowd[: MAX_PEERS - MAX_ABSENT])
    longest_seen = {i.to_bytes(38, "big") for i in range(MAX_PEERS - MAX_ABSENT + 20, MAX_PEERS)}
    assert trusted_peers(trust) == longest_seen | set(newcomers)


def test_the_next_newcomer_does_not_lift_the_doubt_about_the_one_before_where_trusted_peers_never_return() -> None:
    trust = absent_friends()
    newcomers = [(1000 + i).to_bytes(38, "big") for i in range(20)]
    for peer in newcomers:
        trust.record_rejection(peer, "too long")
        trust.record_rejection(peer, "too long")
    assert trust.avoided() == set(newcomers)
    assert {trust.of(peer).strikes for peer in newcomers} == {2}


def test_who_is_connected_is_forgotten_after_who_is_gone() -> None:
    now = 0.0
    trust = ReputationTable(clock=lambda: now)
    trust.update_connections({PEER: ("direct", "")})
    for i in range(MAX_PEERS):
        now = i + 1.0
        trust.record_ping((1000 + i).to_bytes(38, "big"), 1.0)
    assert trust.of(PEER).connection == "direct"


def test_a_person_finds_whom_they_chose_about_however_many_strangers_come() -> None:
    trust = ReputationTable(clock=lambda: 1.0)
    trust.set_choice(PEER, "blocked")
    for i in range(MAX_PEERS + 5):
        trust.record_ping((1000 + i).to_bytes(38, "big"), 1.0)
    assert trust.of(PEER).choice == "blocked"
    assert trust.of(PEER).blocked


def test_each_offence_doubles_the_time_in_doubt_and_a_quiet_day_forgives() -> None:
    now = 1000.0
    trust = ReputationTable(clock=lambda: now)
    waits = []
    for _ in range(3):
        trust.record_rejection(PEER, "too long")
        waits.append(trust.of(PEER).doubted_until - now)
        assert PEER in trust.avoided()
        now = trust.of(PEER).doubted_until + 1
        assert PEER not in trust.avoided()
    assert waits == [DOUBT_S, 2 * DOUBT_S, 4 * DOUBT_S]

    now += FORGIVEN_S
    trust.record_rejection(PEER, "too long")

    assert trust.of(PEER).doubted_until - now == DOUBT_S


def test_trust_is_earned_by_groups_of_use_and_lost_by_refused_ones() -> None:
    trust = ReputationTable()
    for number in range(KNOWN_FROM):
        trust.record_groups(PEER, number, "m", [judged(1, 0), judged(1, 1)])
    assert trusted_peers(trust) == set(), "not enough of use yet"
    trust.record_groups(PEER, 9, "m", [judged(1, index) for index in range(40)])
    assert trusted_peers(trust) == {PEER}
    trust.record_rejection(PEER, "malformed", 3)
    assert trusted_peers(trust) == set()


def test_one_flood_of_groups_makes_nobody_known_or_trusted() -> None:
    trust = ReputationTable()
    trust.record_groups(PEER, 1, "m", [judged(1, index) for index in range(128)])
    assert (trust.of(PEER).known, trusted_peers(trust)) == (False, set())
    for number in range(2, KNOWN_FROM + 1):
        trust.record_groups(PEER, number, "m", [judged(1, 128 + number)])
    assert (trust.of(PEER).known, trusted_peers(trust)) == (True, {PEER})


def test_a_peer_under_another_charter_is_not_asked_until_it_says_otherwise() -> None:
    trust = ReputationTable()
    trust.record_handshake(PEER, "trains under another charter")
    assert trust.avoided() == {PEER}
    trust.record_handshake(PEER, "")
    assert trust.avoided() == set()


def test_whoever_sends_what_is_of_no_use_loses_trust_again() -> None:
    trust = ReputationTable()
    be_of_use(trust, PEER)
    assert trusted_peers(trust) == {PEER}
    trust.record_groups(PEER, 9, "m", [judged(1, index, useful=False) for index in range(2 * TRUSTED_FROM * TRUSTED_PART)])
    assert trusted_peers(trust) == set()


def test_whose_groups_turn_out_to_teach_nothing_is_barren_until_more_were_trained_on() -> None:
    trust = ReputationTable()
    trust.record_training(PEER, idle=TRUSTED_FROM - 1)
    assert not trust.of(PEER).barren
    trust.record_training(PEER, idle=1)
    assert trust.of(PEER).barren
    trust.record_training(PEER, used=TRUSTED_FROM)
    assert not trust.of(PEER).barren


def test_whose_groups_turn_out_to_teach_nothing_loses_trust_until_more_were_trained_on() -> None:
    trust = ReputationTable()
    trust.update_connections({PEER: ("direct", "8.8.4.0/24")})
    be_of_use(trust, PEER)
    trust.record_training(PEER, idle=TRUSTED_FROM - 1)
    assert (trusted_peers(trust), trust.of(PEER).payers) == ({PEER}, (PEER, "8.8.4.0/24"))
    trust.record_training(PEER, idle=1)
    assert (trusted_peers(trust), trust.of(PEER).payers) == (set(), ("8.8.4.0/24", "8.8.4.0/24"))
    trust.record_training(PEER, used=TRUSTED_FROM)
    assert trusted_peers(trust) == {PEER}


@pytest.mark.parametrize(
    ("route", "source", "trusted", "payers"),
    [
        ("direct", "8.8.4.0/24", False, ("8.8.4.0/24", "8.8.4.0/24")),
        ("direct", "8.8.4.0/24", True, (PEER, "8.8.4.0/24")),
        ("relay", "relay", False, (PEER, "relay")),
        ("relay", "relay", True, (PEER, "trusted relay")),
        ("lan", "", False, (PEER, NEWCOMERS)),
        ("lan", "", True, (PEER, "trusted newcomers")),
        ("gone", "", True, (PEER, "trusted newcomers")),
        ("gone", "relay", False, (PEER, "gone")),
        ("gone", "relay", True, (PEER, "trusted gone")),
    ],
)
def test_a_range_answers_for_its_strangers_and_any_other_stranger_for_itself_and_both_with_all_from_there(
    route: Route, source: str, trusted: bool, payers: Payers
) -> None:
    trust = ReputationTable()
    trust.update_connections({PEER: (route, source)})
    if trusted:
        be_of_use(trust, PEER)
    assert trust.of(PEER).payers == payers


def test_an_unknown_way_counts_as_relayed_until_it_is_seen() -> None:
    trust = ReputationTable()
    assert trust.of(PEER).source == "relay"
    trust.update_connections({PEER: ("direct", "")})
    assert trust.of(PEER).source == ""


def test_a_peer_in_doubt_is_not_greeted_and_one_of_another_charter_is() -> None:
    trust = ReputationTable(clock=lambda: 10.0)
    other = bytes([2]) * 38
    trust.update_connections({PEER: ("direct", ""), other: ("direct", "")})
    trust.record_rejection(PEER, "malformed greeting")
    trust.record_handshake(other, "trains under another charter")
    assert (trust.of(PEER).is_doubted(10.0), trust.of(other).is_doubted(10.0)) == (True, False)
    trust.clear_refusals([other])
    assert trust.avoided() == {PEER}


def test_a_sign_of_life_alone_is_told_now_and_then() -> None:
    now = 100.0
    trust = ReputationTable(clock=lambda: now)
    changes = ReputationChanges(trust)
    trust.record_ping(PEER, 1.0)
    assert len(changes.since_last()) == 1
    now = 101.0
    trust.record_ping(PEER, 2.0)
    assert changes.since_last() == []
    now = 120.0
    trust.record_ping(PEER, 3.0)
    assert [peer.delay_ms for peer in changes.since_last()] == [3.0]


def test_a_refusal_and_a_doubt_from_a_clock_far_ahead_do_not_outlive_a_restart() -> None:
    known = PeerReputation(id=PEER, name="x", refusal="trains under another charter", doubted_until=1e12, strikes=1)
    trust = ReputationTable(clock=lambda: 0.0, known=[known])
    assert trust.of(PEER).refusal == ""
    assert trust.of(PEER).doubted_until == DOUBT_S * 2**MAX_STRIKES
