"""Strangers against the DHT below the directory: what one of them may put into a node, and have out of it."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from swarm.live import fresh_identity
from swarm.test_dht import KEY, NOTHING, opened, signed
from waggle.swarm.dht import NEIGHBOURS, Dht, Services
from waggle.swarm.shim import load_hivemind

hivemind = load_hivemind()


def stub(attacker: Dht, victim: Dht) -> Any:
    return attacker._node.protocol.get_stub(victim._p2p.peer_id)


def made_up_peer() -> Any:
    return hivemind.PeerID(b"\x00\x24\x08\x01\x12\x20" + os.urandom(32))


def peers_of(dht: Dht) -> set[bytes]:
    return {peer.to_bytes() for peer in dht._node.protocol.routing_table.uid_to_peer_id.values()}


async def test_a_stranger_under_a_thousand_ids_is_answered_and_kept_under_its_own_alone(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as one, opened(hostile, NOTHING, one) as bad:
        table = one._node.protocol.routing_table
        for number in range(100):
            told = hivemind.dht_pb2.NodeInfo(node_id=os.urandom(20 if number else 64))
            key = hivemind.DHTID.generate(KEY).to_bytes()
            assert (await stub(bad, one).rpc_ping(hivemind.dht_pb2.PingRequest(peer=told), timeout=5)).dht_time
            assert (
                len((await stub(bad, one).rpc_find(hivemind.dht_pb2.FindRequest(keys=[key], peer=told), timeout=5)).results) == 1
            )
        assert set(table.uid_to_peer_id) == {hivemind.node_id_of(bad._p2p.peer_id)} == {bad._node.node_id}
        assert len(table.buckets) == 1


async def test_an_answer_from_another_id_is_kept_under_none(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as one, opened(hostile) as bad:
        bad._node.protocol.node_info.node_id = os.urandom(20)
        await one.connect((await bad.addresses())[0])
        await one._node.protocol.call_find(bad._p2p.peer_id, [one._node.node_id])
        assert peers_of(one) == set()


async def test_neighbours_under_made_up_ids_are_not_looked_for_and_no_crowd_of_them_is(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as one, opened(hostile, NOTHING, one) as bad:
        key, crowd = hivemind.DHTID.generate(KEY), [made_up_peer() for _ in range(3 * NEIGHBOURS)]
        named = [(hivemind.DHTID(key ^ 1), crowd[0]), *((hivemind.node_id_of(each), each) for each in crowd)]
        bad._node.protocol.routing_table.get_nearest_neighbors = lambda *_given, **_named: named
        (_, nearest) = (await one._node.protocol.call_find(bad._p2p.peer_id, [key]))[key]
        assert nearest == dict(named[1 : NEIGHBOURS + 1])


async def test_a_routing_table_stays_small_whoever_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(fresh_identity(tmp_path, "honest")) as one:
        protocol = one._node.protocol

        async def away(_peer: Any, _keys: Any) -> None:
            return None

        monkeypatch.setattr(protocol, "call_find", away)
        for _ in range(5000):
            peer = made_up_peer()
            await protocol.update_routing_table(hivemind.node_id_of(peer), peer)
        buckets = protocol.routing_table.buckets
        assert all(len(each.nodes_to_peer_id) <= NEIGHBOURS >= len(each.replacement_nodes) for each in buckets)
        assert len(protocol.routing_table.uid_to_peer_id) == len(protocol.routing_table.peer_id_to_uid)
        assert len(protocol.routing_table.uid_to_peer_id) <= 2 * NEIGHBOURS * len(buckets) < 2000


async def test_a_newcomer_is_handed_nothing_and_reads_everything(tmp_path: Path) -> None:
    first, second = fresh_identity(tmp_path, "first"), fresh_identity(tmp_path, "second")
    async with opened(first) as one:
        blob, expires_at = signed(first, time.time() + 100)
        await one.announce(KEY, first.peer_id, blob, expires_at)
        async with opened(second, NOTHING, one) as two:
            await two.settle()
            assert await two.read(KEY) == {first.peer_id: blob}
            assert not len(two._node.protocol.storage)


async def test_a_call_that_names_more_than_one_key_is_refused(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as one, opened(hostile, NOTHING, one) as bad:
        key = hivemind.DHTID.generate(KEY).to_bytes()
        for keys in ([key] * 2, [key, bytes(20)]):
            with pytest.raises(hivemind.failures, match="Refused"):
                await stub(bad, one).rpc_find(hivemind.dht_pb2.FindRequest(keys=keys), timeout=5)
        assert await stub(bad, one).rpc_find(hivemind.dht_pb2.FindRequest(keys=[key]), timeout=5)


async def test_what_the_directory_sends_is_charged_to_the_source_that_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.swarm.dht.FOUND_RATE", 1.0)
    monkeypatch.setattr("waggle.swarm.dht.FOUND_BURST", 2000.0)
    honest, first, second = (fresh_identity(tmp_path, name) for name in ("honest", "first", "second"))
    crowd = {first.peer_id, second.peer_id}
    services = Services(payer=lambda peer_id: b"a range" if peer_id in crowd else peer_id)
    async with opened(honest, services) as one, opened(first, NOTHING, one) as bad, opened(second, NOTHING, one) as ally:
        blob, expires_at = signed(honest, time.time() + 100)
        await one.announce(KEY, honest.peer_id, blob, expires_at)
        request = hivemind.dht_pb2.FindRequest(keys=[hivemind.DHTID.generate(KEY).to_bytes()])
        had = []
        for asker in (bad, ally):
            with suppress(hivemind.failures):
                while len(had) < 100:
                    had.append((await stub(asker, one).rpc_find(request, timeout=5)).ByteSize())
        assert 1000 < sum(had) <= 2000
        async with opened(fresh_identity(tmp_path, "third"), NOTHING, one) as third:
            assert await third.read(KEY) == {honest.peer_id: blob}
