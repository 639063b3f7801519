"""A stranger's clients cost a real seed little memory, and what they cost is given back."""

import tracemalloc
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memory_siege import ATTACKS, Attack, Siege, besieged_seed
from network.loopback import fresh_identity, options
from waggle.core.peer_id import PEER_ID_PREFIX, text_of
from waggle.network.limits.reputation import MAX_PEERS
from waggle.network.open_node import open_node
from waggle.network.transport.gateway import metered_connection, server
from waggle.network.transport.interface import ConnectedPeer
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier

MOST_MIB = 64  # of growth, by any attack


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_no_attack_on_a_gateway_makes_a_seed_grow_much(attack: Attack, tmp_path: Path) -> None:
    async with besieged_seed(tmp_path) as siege:
        assert await siege.growth(attack, 30.0) < MOST_MIB
        assert await is_served(siege)


async def is_served(siege: Siege) -> bool:
    async with siege.crowd(1) as crowd:
        return len(crowd) == 1


def test_the_bounds_of_a_gateway_fit_into_that_together() -> None:
    most = server.MAX_UPLOADED + metered_connection.MAX_UNPROCESSED + 2 * server.MAX_UNSENT
    assert most < MOST_MIB << 20


IDENTITIES = 2000  # connected at once: p2pd takes 30 kB and more for each


def test_an_identity_that_is_connected_takes_little_memory_and_gives_it_back(
    charter: Charter, verifier: Verifier, tmp_path: Path
) -> None:
    node = open_node(options(), charter, fresh_identity(tmp_path, "own"), verifier, lambda news: None)
    names = [Ed25519PrivateKey.from_private_bytes(number.to_bytes(32, "big")) for number in range(1, IDENTITIES + 1)]
    ids = [PEER_ID_PREFIX + name.public_key().public_bytes_raw() for name in names]
    node._update_connections([], {})
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        connected = [
            ConnectedPeer(each, f"/ip4/8.8.{i % 256}.4/tcp/4001/p2p/{text_of(each)}", False) for i, each in enumerate(ids)
        ]
        node._update_connections(connected, {})
        here, _ = tracemalloc.get_traced_memory()
        del connected
        node._update_connections([], {})
        afterwards, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert here - before < 2048 * IDENTITIES
    assert afterwards - before < 2048 * MAX_PEERS, "only reputations stay, as many as there are places"
