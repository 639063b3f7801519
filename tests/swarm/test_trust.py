"""Standing counts what this node saw for itself."""

import pytest

from swarm.live import judged
from waggle.swarm.identity import name_of
from waggle.swarm.trust import MAX_PEERS, Trust

PEER = bytes([1]) * 38


def test_everything_a_peer_does_is_counted() -> None:
    trust = Trust(clock=lambda: 50.0)
    trust.received(PEER, 3, "starter", [judged(1, 0), judged(1, 1, useful=False)])
    trust.received(PEER, 4, "larger", [judged(1, 2)])
    trust.used(PEER, 2)
    trust.taken(PEER, 5)
    trust.rejected(PEER)
    trust.answered(PEER, 12.5)
    trust.connected({PEER: "relay"})

    peer = trust.changed()[0]

    assert (peer.received, peer.useful, peer.used, peer.taken, peer.rejected) == (3, 2, 2, 5, 1)
    assert (peer.round, peer.model, peer.delay_ms, peer.connection, peer.seen_at) == (4, "larger", 12.5, "relay", 50.0)
    assert peer.mean_reward == pytest.approx((0.5 + 0.025 + 0.5) / 3)
    assert peer.name == name_of(PEER)


def test_changes_are_told_once() -> None:
    trust = Trust()
    trust.connected({PEER: "direct"})
    trust.connected({PEER: "direct"})
    assert [peer.connection for peer in trust.changed()] == ["direct"]
    assert trust.changed() == []

    trust.connected({})

    assert [peer.connection for peer in trust.changed()] == ["gone"]


def test_the_longest_unseen_is_forgotten_first() -> None:
    now = 0.0
    trust = Trust(clock=lambda: now)
    peers = [i.to_bytes(38, "big") for i in range(MAX_PEERS + 1)]
    for now, peer in enumerate(peers):  # noqa: B007 - the clock reads it
        trust.answered(peer, 1.0)

    assert {peer.id for peer in trust.changed()} == set(peers[1:])
