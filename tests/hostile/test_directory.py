"""Strangers against the DHT: what they can store in a node and get out of it."""

import asyncio
import importlib
import itertools
import os
import random
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from network.loopback import SOON, Start, be_of_use, fresh_identity, serving
from network.transport.hivemind.test_network import CHARTER, KEY, NOTHING, opened, signed
from waggle.core.peer_id import PEER_ID_PREFIX, text_of
from waggle.network.identity.keys import Identity
from waggle.network.limits.address_ranges import RELAYED
from waggle.network.limits.bandwidth import BandwidthLimiter
from waggle.network.messages import announcement
from waggle.network.messages.addresses import peer_of
from waggle.network.messages.announcement import MAX_LIFETIME_S, MOST_FORGED
from waggle.network.transport.hivemind import patches
from waggle.network.transport.hivemind.call_limits import CALLS_BURST, CallLimits
from waggle.network.transport.hivemind.liveness import NeighbourLiveness
from waggle.network.transport.hivemind.network import HANDSHAKE, NEIGHBOURS, HivemindNetwork
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.network.transport.hivemind.rate_limited_p2p import LONGEST_CALL
from waggle.network.transport.interface import PeerAway, Services
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.security.decoders.dht import DICTIONARY, TUPLE, nested

hivemind = load_hivemind()


def stub(attacker: HivemindNetwork, victim: HivemindNetwork) -> Any:
    return attacker._node.protocol.get_stub(victim.daemon.p2p.peer_id)


def made_up_peer() -> Any:
    return hivemind.PeerID(b"\x00\x24\x08\x01\x12\x20" + os.urandom(32))


async def everybody(_peer: Any) -> bool:
    return True


def near(folder: Path, name: str) -> Identity:
    """A name as near to the key as one in 32 names, which is cheap to find."""
    key, names = hivemind.DHTID.generate(KEY), (fresh_identity(folder, f"{name} {number}") for number in itertools.count())
    return next(each for each in names if key.xor_distance(hivemind.node_id_of(hivemind.PeerID(each.peer_id))) < 2**155)


def peers_of(dht: HivemindNetwork) -> set[bytes]:
    return {peer.to_bytes() for peer in dht._node.protocol.routing_table.uid_to_peer_id.values()}


async def test_a_stranger_under_a_thousand_ids_is_answered_and_kept_under_its_own_alone(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as dht, opened(hostile, NOTHING, dht) as bad:
        table = dht._node.protocol.routing_table
        for number in range(100):
            invented = hivemind.dht_pb2.NodeInfo(node_id=os.urandom(20 if number else 64))
            key = hivemind.DHTID.generate(KEY).to_bytes()
            assert (await stub(bad, dht).rpc_ping(hivemind.dht_pb2.PingRequest(peer=invented), timeout=SOON)).dht_time
            assert (
                len(
                    (await stub(bad, dht).rpc_find(hivemind.dht_pb2.FindRequest(keys=[key], peer=invented), timeout=SOON)).results
                )
                == 1
            )
        assert set(table.uid_to_peer_id) == {hivemind.node_id_of(bad.daemon.p2p.peer_id)} == {bad._node.node_id}
        assert len(table.buckets) == 1


async def test_an_answer_from_another_id_is_kept_under_none(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as dht, opened(hostile) as bad:
        bad._node.protocol.node_info.node_id = os.urandom(20)
        await dht.connect((await bad.addresses())[0])
        await dht._node.protocol.call_find(bad.daemon.p2p.peer_id, [dht._node.node_id])
        assert peers_of(dht) == set()


async def test_neighbours_under_made_up_ids_are_not_looked_for_and_no_crowd_of_them_is(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as dht, opened(hostile, NOTHING, dht) as bad:
        dht._node.protocol.neighbours = NeighbourLiveness(everybody)
        key, crowd = hivemind.DHTID.generate(KEY), [made_up_peer() for _ in range(3 * NEIGHBOURS)]
        named = [(hivemind.DHTID(key ^ 1), crowd[0]), *((hivemind.node_id_of(each), each) for each in crowd)]
        bad._node.protocol.routing_table.get_nearest_neighbors = lambda *_arguments, **_named: named
        (_, nearest) = (await dht._node.protocol.call_find(bad.daemon.p2p.peer_id, [key]))[key]
        assert nearest == dict(named[1 : NEIGHBOURS + 1])


async def test_names_near_a_key_that_are_nobodys_hide_nobody_from_a_search_and_are_not_remembered(tmp_path: Path) -> None:
    honest, made_up = [fresh_identity(tmp_path, f"honest {number}") for number in range(6)], list[Any]()
    crowd = [(hivemind.node_id_of(each), each) for each in (made_up_peer() for _ in range(4000))]
    async with AsyncExitStack() as stack:
        nodes = list[HivemindNetwork]()
        for each in honest:
            nodes.append(await stack.enter_async_context(opened(each, Services(digest=CHARTER), *nodes)))
        bad = await stack.enter_async_context(opened(near(tmp_path, "hostile"), NOTHING, *nodes))

        def nobodies(key: Any, k: int, exclude: Any = None) -> list[Any]:
            named = sorted(random.sample(crowd, 2000), key=lambda each: key.xor_distance(each[0]))[:k]
            made_up.extend(each for _, each in named)
            return named

        bad._node.protocol.routing_table.get_nearest_neighbors = nobodies
        for who, node in zip(honest, nodes, strict=True):
            assert await node.announce(KEY, who.peer_id, *signed(who, time.time() + MAX_LIFETIME_S / 2))
        for node in nodes:
            assert (await node.read_directory(KEY)).keys() == {who.peer_id for who in honest}
            assert not node._node.blacklist._failed.keys() & made_up
        assert len(made_up) >= NEIGHBOURS


async def test_who_is_named_and_there_is_met_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.liveness.WAIT_S", SOON)
    honest, second, late = (fresh_identity(tmp_path, name) for name in ("honest", "second", "late"))
    async with opened(honest) as dht, opened(second, NOTHING, dht) as two, opened(late, NOTHING, dht) as three:
        three._node.protocol.wait_timeout, key = SOON, hivemind.DHTID.generate(KEY)
        named = [(hivemind.node_id_of(each), each) for each in (made_up_peer(), two.daemon.p2p.peer_id)]
        dht._node.protocol.routing_table.get_nearest_neighbors = lambda *_arguments, **_named: named
        (_, nearest) = (await three._node.protocol.call_find(dht.daemon.p2p.peer_id, [key]))[key]
        assert nearest == dict(named[1:])
        assert two.daemon.p2p.peer_id.to_bytes() in peers_of(three)


async def test_neighbours_whose_ids_would_take_hours_to_write_out_are_passed_over_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as dht, opened(hostile, NOTHING, dht) as bad:
        dht._node.protocol.neighbours = NeighbourLiveness(everybody)
        key, friend, written = hivemind.DHTID.generate(KEY), made_up_peer(), list[int]()
        long = SimpleNamespace(to_bytes=lambda: bytes(20_000))
        named = [
            (key, long),
            (hivemind.node_id_of(friend), friend),
            *((hivemind.DHTID(key ^ i), made_up_peer()) for i in range(3000)),
        ]
        bad._node.protocol.routing_table.get_nearest_neighbors = lambda *_arguments, **_named: named
        write = hivemind.PeerID.__init__

        def count(self: Any, peer_id: bytes) -> None:
            written.append(len(peer_id))
            write(self, peer_id)

        monkeypatch.setattr(hivemind.PeerID, "__init__", count)
        (_, nearest) = (await dht._node.protocol.call_find(bad.daemon.p2p.peer_id, [key]))[key]
        assert nearest == {hivemind.node_id_of(friend): friend}
        assert max(written) < 64
        assert len(written) < 100


@pytest.mark.parametrize("many", [2, 2000, 500_000])
async def test_an_answer_of_many_pieces_is_neither_read_nor_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    honest, second, hostile = (fresh_identity(tmp_path, name) for name in ("honest", "second", "hostile"))
    answer, looked = hivemind.dht_pb2.FindResponse.FromString(b"\x12\x00" * many), []
    answers_with(monkeypatch, hostile, lambda: answer)
    look = patches.with_few_neighbours
    monkeypatch.setattr(patches, "with_few_neighbours", lambda answer: looked.append(len(answer.results)) or look(answer))
    async with opened(honest) as dht, opened(hostile, NOTHING, dht) as bad, opened(second, NOTHING, dht) as two:
        await dht.ping(hostile.peer_id)
        put(two, second, time.time() + 100)
        assert await dht._node.protocol.call_find(bad.daemon.p2p.peer_id, [hivemind.DHTID.generate(KEY)]) is None
        assert (await dht.read_directory(KEY)).keys() == {second.peer_id}
        assert looked
        assert set(looked) == {1}


def answers_with(monkeypatch: pytest.MonkeyPatch, hostile: Identity, make: Any) -> None:
    """Let a hostile node give this answer to every search."""
    protocol = importlib.import_module("hivemind.dht.protocol").DHTProtocol
    find = protocol.rpc_find

    async def rpc_find(self: Any, request: Any, context: Any) -> Any:
        if self.p2p.peer_id.to_bytes() != hostile.peer_id:
            return await find(self, request, context)
        answer = make()
        return await answer if asyncio.iscoroutine(answer) else answer

    monkeypatch.setattr(protocol, "rpc_find", rpc_find)


async def test_a_call_longer_than_any_of_ours_is_not_read(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    greets = Services(handshake=lambda: b"here")
    async with opened(honest, greets) as dht, opened(hostile, NOTHING, dht) as bad:
        for request in (hivemind.BytesValue(value=bytes(LONGEST_CALL)), hivemind.BytesValue(value=bytes(4_000_000))):
            with pytest.raises(hivemind.failures):
                await bad.daemon.p2p.call_protobuf_handler(dht.daemon.p2p.peer_id, HANDSHAKE, request, hivemind.BytesValue)
        assert await bad.fetch_handshake(honest.peer_id) == b"here"


async def test_one_who_never_answers_hides_nobody_whom_others_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.network.READ_S", 5.0)
    reader, honest, hostile = (fresh_identity(tmp_path, name) for name in ("reader", "honest", "hostile"))
    requests = list[bool]()

    def never() -> Any:
        requests.append(True)
        return asyncio.Event().wait()

    answers_with(monkeypatch, hostile, never)
    async with opened(reader) as dht, opened(hostile, NOTHING, dht), opened(honest, NOTHING, dht) as two:
        dht._node.protocol.wait_timeout = SOON
        await dht.ping(hostile.peer_id)
        put(two, honest, time.time() + 100)
        assert (await dht.read_directory(KEY)).keys() == {honest.peer_id}
        assert requests
        await two.close()
        monkeypatch.setattr("waggle.network.transport.hivemind.network.READ_S", 0.5)
        with pytest.raises(PeerAway):
            await dht.read_directory(KEY)


@pytest.mark.parametrize("misplaced", [False, True], ids=["of another", "for another time"])
@pytest.mark.parametrize(("forged", "is_read"), [(MOST_FORGED, True), (20 * MOST_FORGED, False)])
async def test_an_answer_of_forged_entries_is_not_verified_to_its_end_and_few_of_them_hide_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forged: int, is_read: bool, misplaced: bool
) -> None:
    reader, honest, hostile = (fresh_identity(tmp_path, name) for name in ("reader", "honest", "hostile"))
    verified, verify = list[bytes](), announcement.verify
    monkeypatch.setattr(announcement, "verify", lambda *arguments: verified.append(arguments[0]) or verify(*arguments))
    async with opened(reader) as dht, opened(hostile, NOTHING, dht) as bad:
        bad._node.protocol.storage = importlib.import_module("hivemind.dht.storage").DHTLocalStorage()
        for number in range(forged):
            other = fresh_identity(tmp_path, f"name {number}")
            put(
                bad,
                *((other, time.time() + 100, other.peer_id, 1.0) if misplaced else (honest, time.time() + 100, other.peer_id)),
            )
        put(bad, honest, time.time() + 100)
        assert (honest.peer_id in await dht.read_directory(KEY)) == is_read
        assert len(verified) == (is_read if misplaced else MOST_FORGED + 1)


async def test_a_routing_table_stays_small_whoever_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(fresh_identity(tmp_path, "honest")) as dht:
        protocol = dht._node.protocol

        async def away(_peer: Any) -> bool:
            return False

        monkeypatch.setattr(protocol, "is_alive", away)
        for _ in range(5000):
            peer = made_up_peer()
            await protocol.update_routing_table(hivemind.node_id_of(peer), peer)
        buckets = protocol.routing_table.buckets
        assert all(len(each.nodes_to_peer_id) <= NEIGHBOURS >= len(each.replacement_nodes) for each in buckets)
        assert len(protocol.routing_table.uid_to_peer_id) == len(protocol.routing_table.peer_id_to_uid)
        assert len(protocol.routing_table.uid_to_peer_id) <= 2 * NEIGHBOURS * len(buckets) < 2000


async def test_a_crowd_that_one_replica_makes_up_takes_nobodys_room_and_hides_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.dht_validator.SHARD_CAP", 20)
    reader, honest, hostile = (fresh_identity(tmp_path, name) for name in ("reader", "honest", "hostile"))
    crowd = [fresh_identity(tmp_path, f"name {number}") for number in range(20)]
    async with opened(reader, Services(digest=CHARTER)) as dht, opened(hostile, NOTHING, dht) as bad:
        for each in crowd:
            put(bad, each, time.time() + 100)
        assert (await dht.read_directory(KEY)).keys() == {each.peer_id for each in crowd}
        async with opened(honest, NOTHING, dht, bad) as two:
            assert await two.announce(KEY, honest.peer_id, *signed(honest, time.time() + 100))
            assert honest.peer_id in await dht.read_directory(KEY)
        assert origins_stored(dht) == {honest.peer_id}


async def test_one_who_stores_made_up_names_fills_a_quarter_of_the_room_whatever_it_renews(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.dht_validator.SHARD_CAP", 20)
    own, honest, hostile = (fresh_identity(tmp_path, name) for name in ("own", "honest", "hostile"))
    services = Services(digest=CHARTER)
    crowd, clients = ([fresh_identity(tmp_path, f"{kind} {i}") for i in range(20)] for kind in ("name", "client"))
    async with opened(own, services) as dht, opened(hostile, NOTHING, dht) as bad, opened(honest, NOTHING, dht) as other:
        for lasts in (100, 200):
            for each in crowd:
                await stub(bad, dht).rpc_store(store_request(each, time.time() + lasts), timeout=SOON)
            assert len(origins_stored(dht)) == 5
        for each in (honest, *clients[:4]):  # a gateway stores the announcements of its light clients
            assert await other.announce(KEY, each.peer_id, *signed(each, time.time() + 100))
        assert origins_stored(dht) > {each.peer_id for each in (honest, *clients[:4])}


async def test_new_names_of_those_who_store_bring_no_new_room_within_one_address_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.dht_validator.SHARD_CAP", 20)
    crowd = iter([fresh_identity(tmp_path, f"name {number}") for number in range(20)])
    async with opened(fresh_identity(tmp_path, "own"), Services(digest=CHARTER, source=lambda peer_id: "8.8.4.0/24")) as dht:
        for number in range(4):
            async with opened(fresh_identity(tmp_path, f"hostile {number}"), NOTHING, dht) as bad:
                for _ in range(5):
                    await stub(bad, dht).rpc_store(store_request(next(crowd), time.time() + 100), timeout=SOON)
        assert len(origins_stored(dht)) == 5


async def test_relayed_names_of_one_computer_leave_half_of_a_room_to_whoever_comes_straight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.dht_validator.SHARD_CAP", 24)
    own, honest = fresh_identity(tmp_path, "own"), fresh_identity(tmp_path, "honest")
    services = Services(digest=CHARTER, source=lambda peer_id: "8.8.4.0/24" if peer_id == honest.peer_id else RELAYED)
    async with opened(own, services) as dht, opened(honest, NOTHING, dht) as other:
        filled = []
        for number in range(5):
            async with opened(fresh_identity(tmp_path, f"hostile {number}"), NOTHING, dht) as bad:
                for name in range(4):
                    made_up = fresh_identity(tmp_path, f"name {number} {name}")
                    await stub(bad, dht).rpc_store(store_request(made_up, time.time() + 100), timeout=SOON)
            filled.append(len(origins_stored(dht)))
        assert filled == [3, 6, 9, 12, 12]
        async with opened(fresh_identity(tmp_path, "relayed"), NOTHING, dht) as relayed:
            own_name = fresh_identity(tmp_path, "relayed")
            assert await relayed.announce(KEY, own_name.peer_id, *signed(own_name, time.time() + 100))
            assert own_name.peer_id in origins_stored(dht)
        assert await other.announce(KEY, honest.peer_id, *signed(honest, time.time() + 100))
        assert honest.peer_id in origins_stored(dht)


async def test_an_entry_that_a_reader_refuses_hides_none_of_the_others_that_its_replica_holds(tmp_path: Path) -> None:
    reader, honest, late = (fresh_identity(tmp_path, name) for name in ("reader", "honest", "late"))
    async with opened(reader) as dht, opened(honest, NOTHING, dht) as two:
        put(two, late, time.time() + MAX_LIFETIME_S + 60)  # accepted by a node with a fast clock
        put(two, honest, time.time() + 100)
        assert (await dht.read_directory(KEY)).keys() == {honest.peer_id}


@pytest.mark.parametrize("lasts", [float("inf"), "x"], ids=["it lasts for ever", "its time is no number"])
async def test_what_one_replica_says_of_all_it_holds_hides_nothing_that_the_others_hold(tmp_path: Path, lasts: Any) -> None:
    reader, honest, hostile = (fresh_identity(tmp_path, name) for name in ("reader", "honest", "hostile"))
    async with opened(reader) as dht, opened(hostile, NOTHING, dht) as bad, opened(honest, NOTHING, dht) as two:
        put(two, honest, time.time() + 100)
        put(bad, hostile, time.time() + 50)
        lies, find, answered = bad._node.protocol.storage, dht._node.protocol.call_find, asyncio.Event()
        entry = lies.get(hivemind.DHTID.generate(KEY))
        entry.value.latest_expiration_time = lasts
        lies.get = lambda key: type(entry)(entry.value, lasts if isinstance(lasts, float) else entry.expiration_time)

        async def the_liar_first(peer: Any, keys: Any) -> Any:
            if peer != bad.daemon.p2p.peer_id:
                await answered.wait()
                return await find(peer, keys)
            try:
                return await find(peer, keys)
            finally:
                answered.set()

        dht._node.protocol.call_find = the_liar_first
        assert (await dht.read_directory(KEY)).keys() == {hostile.peer_id, honest.peer_id}


async def test_an_answer_of_a_million_pieces_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, hostile = fresh_identity(tmp_path, "reader"), fresh_identity(tmp_path, "hostile")
    async with opened(reader) as dht, opened(hostile, NOTHING, dht) as bad:
        put(bad, hostile, time.time() + 100)
        many = b"\xdd\x00\x0f\x42\x40" + b"\x90" * 1_000_000  # a list of a million empty lists
        values: list[Any] = []
        bad._node.protocol.serializer = SimpleNamespace(dumps=lambda value: values.append(value) or many)
        unpacked, msgpacks = [], importlib.import_module("hivemind.utils.serializer").msgpack
        unpack = msgpacks.loads
        monkeypatch.setattr(msgpacks, "loads", lambda packed, **how: unpacked.append(packed) or unpack(packed, **how))
        assert await dht.read_directory(KEY) == {}
        assert values
        assert many not in unpacked


@pytest.mark.parametrize("code", [DICTIONARY, TUPLE])
async def test_an_answer_nested_hundreds_of_times_ends_nothing_and_hides_nobody(tmp_path: Path, code: int) -> None:
    reader, honest, hostile = (fresh_identity(tmp_path, name) for name in ("reader", "honest", "hostile"))
    async with opened(reader) as dht, opened(hostile, NOTHING, dht) as bad:
        put(bad, hostile, time.time() + 100)
        values: list[Any] = []
        bad._node.protocol.serializer = SimpleNamespace(dumps=lambda value: values.append(value) or nested(code, 400))
        assert await dht.read_directory(KEY) == {}
        assert values
        async with opened(honest, NOTHING, dht) as two:
            put(two, honest, time.time() + 100)
            assert (await dht.read_directory(KEY)).keys() == {honest.peer_id}


@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a"])
def test_a_value_of_the_dht_is_never_read_deep(opening: bytes) -> None:
    for value in (opening * 50_000, nested(DICTIONARY, 400), nested(TUPLE, 400), nested(1, 2)):
        with pytest.raises(ValueError, match=r"nested|^$"):
            hivemind.serializer.loads(value)


async def test_an_older_announcement_said_again_does_not_end_the_newer_one_early(tmp_path: Path) -> None:
    own = fresh_identity(tmp_path, "own")
    async with opened(own) as dht:
        put(dht, own, time.time() + 100)
        put(dht, own, old := time.time() + 0.3)
        while time.time() <= old:
            await asyncio.sleep(0.05)
        assert origins_stored(dht) == {own.peer_id}


def put(dht: HivemindNetwork, origin: Identity, expires_at: float, under: bytes = b"", later: float = 0.0) -> None:
    """Store an announcement in a node's own storage, by default unchanged; `under` another name, or `later` than signed."""
    blob, expires_at = signed(origin, expires_at)
    packed = dht._node.protocol.serializer.dumps(blob)
    dht._node.protocol.storage.store(hivemind.DHTID.generate(KEY), packed, expires_at + later, subkey=under or origin.peer_id)


def origins_stored(dht: HivemindNetwork) -> set[bytes]:
    entry = dht._node.protocol.storage.get(hivemind.DHTID.generate(KEY))
    return {origin for origin, _ in entry.value.items()} if entry else set()


async def test_light_clients_are_told_first_of_those_who_were_of_use_then_of_a_sample(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lender, friend = (await start("lender")).node, bytes(38)
    blob, _ = signed(fresh_identity(tmp_path, "name"), time.time() + 100)
    crowd = {number.to_bytes(38, "big"): blob for number in range(400, -1, -1)}

    async def read(_key: str) -> dict[bytes, bytes]:
        return crowd

    monkeypatch.setattr(lender.transport.network, "read_directory", read)
    be_of_use(lender._reputations, friend)
    directory = list(await lender._directory.entries())
    assert directory[0] == friend
    assert set(directory) == set(crowd)
    assert directory != list(crowd)


async def test_a_newcomer_is_handed_nothing_and_reads_everything(tmp_path: Path) -> None:
    first, second = fresh_identity(tmp_path, "first"), fresh_identity(tmp_path, "second")
    async with opened(first) as dht:
        blob, expires_at = signed(first, time.time() + 100)
        await dht.announce(KEY, first.peer_id, blob, expires_at)
        async with opened(second, NOTHING, dht) as two:
            await two.find_neighbours()
            assert await two.read_directory(KEY) == {first.peer_id: blob}
            assert not len(two._node.protocol.storage)


async def test_a_call_that_names_more_than_one_key_is_refused(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as dht, opened(hostile, NOTHING, dht) as bad:
        key = hivemind.DHTID.generate(KEY).to_bytes()
        for keys in ([key] * 2, [key, bytes(20)]):
            with pytest.raises(hivemind.failures, match="Refused"):
                await stub(bad, dht).rpc_find(hivemind.dht_pb2.FindRequest(keys=keys), timeout=SOON)
        assert await stub(bad, dht).rpc_find(hivemind.dht_pb2.FindRequest(keys=[key]), timeout=SOON)


async def test_an_entry_for_the_cache_is_refused_and_hides_nobody(tmp_path: Path) -> None:
    honest, hostile, reader = (fresh_identity(tmp_path, name) for name in ("honest", "hostile", "reader"))
    async with opened(honest) as dht:
        await dht.announce(KEY, honest.peer_id, *signed(honest, time.time() + 100))
        async with opened(hostile, NOTHING, dht) as bad, opened(reader, NOTHING, dht) as other:
            request = store_request(hostile, time.time() + MAX_LIFETIME_S - 10, in_cache=[True])  # longer than any honest one
            with suppress(hivemind.failures):
                await stub(bad, dht).rpc_store(request, timeout=SOON)
            assert (await other.read_directory(KEY)).keys() == {honest.peer_id}
            assert not len(dht._node.protocol.cache)


async def test_a_whole_dictionary_is_not_stored_at_once(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as dht, opened(hostile, NOTHING, dht) as bad:
        put(bad, hostile, time.time() + 100)
        entries = bad._node.protocol.storage.get(hivemind.DHTID.generate(KEY)).value
        request = store_request(hostile, time.time() + 100, subkeys=[b""], values=[bad._node.protocol.serializer.dumps(entries)])
        with pytest.raises(hivemind.failures, match="Refused"):
            await stub(bad, dht).rpc_store(request, timeout=SOON)
        assert origins_stored(dht) == set()


async def test_an_entry_replaced_a_thousand_times_is_no_more_to_look_through_than_one(tmp_path: Path) -> None:
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with opened(honest) as dht, opened(hostile, NOTHING, dht) as bad:
        expires_at = int(time.time()) + 100.0005  # hivemind cuts it to milliseconds, so keep away from the edge of one
        for number in range(300):
            request = store_request(hostile, expires_at + number / 1000)
            assert list((await stub(bad, dht).rpc_store(request, timeout=SOON)).store_ok) == [True]
        storage = dht._node.protocol.storage
        (entries,) = (entry.value for entry in storage.data.values())
        assert len(storage.expiration_heap) < 100 > len(entries.expiration_heap)
        assert origins_stored(dht) == {hostile.peer_id}


async def test_whose_time_is_up_is_looked_through_once_and_not_by_every_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(fresh_identity(tmp_path, "own")) as dht:
        expires_at = time.time() + 100
        for number in range(20):
            put(dht, fresh_identity(tmp_path, f"name {number}"), expires_at + number)
        storage = dht._node.protocol.storage
        (entries,) = (entry.value for entry in storage.data.values())
        monkeypatch.setattr("hivemind.utils.timed_storage.get_dht_time", lambda: expires_at + 15.5)
        assert len(origins_stored(dht)) == 4 == len(entries.expiration_heap)


def store_request(origin: Identity, expires_at: float, **changes: Any) -> Any:
    """The request that `announce` sends, with these changes."""
    blob, expires_at = signed(origin, expires_at)
    fields = {
        "keys": [hivemind.DHTID.generate(KEY).to_bytes()], "subkeys": [msgspec.msgpack.encode(origin.peer_id)],
        "values": [msgspec.msgpack.encode(blob)], "expiration_time": [expires_at], "in_cache": [False],
    }  # fmt: skip
    return hivemind.dht_pb2.StoreRequest(**{**fields, **changes})


async def test_what_the_directory_sends_is_charged_to_the_source_that_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.FOUND_RATE", 0.0)
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.FOUND_BURST", 2000.0)
    honest, first, second = (fresh_identity(tmp_path, name) for name in ("honest", "first", "second"))
    crowd = {first.peer_id, second.peer_id}
    services = Services(source=lambda peer_id: "a range" if peer_id in crowd else "")
    async with opened(honest, services) as dht, opened(first, NOTHING, dht) as bad, opened(second, NOTHING, dht) as ally:
        blob, expires_at = signed(honest, time.time() + 100)
        await dht.announce(KEY, honest.peer_id, blob, expires_at)
        assert 1000 < await drained(bad, honest.peer_id) + await drained(ally, honest.peer_id) <= 2000
        async with opened(fresh_identity(tmp_path, "third"), NOTHING, dht) as third:
            assert await third.read_directory(KEY) == {honest.peer_id: blob}


async def test_relayed_peers_leave_each_other_their_part_of_what_all_of_them_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.FOUND_RATE", 0.0)
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.FOUND_BURST", 64_000.0)
    honest = fresh_identity(tmp_path, "honest")
    async with opened(honest, Services(source=lambda peer_id: RELAYED)) as dht:
        blob, expires_at = signed(honest, time.time() + 100)
        await dht.announce(KEY, honest.peer_id, blob, expires_at)
        had = []
        for number in range(4):
            async with opened(fresh_identity(tmp_path, f"hostile {number}"), NOTHING, dht) as bad:
                had.append(await drained(bad, honest.peer_id))
        assert 15_000 < had[0] <= 16_000, "a quarter"
        assert 30_000 < sum(had) <= 36_000, "half, and a little"
        async with opened(fresh_identity(tmp_path, "another"), NOTHING, dht) as another:
            assert await another.read_directory(KEY) == {honest.peer_id: blob}


async def test_a_plain_seed_gives_new_names_of_one_address_range_no_new_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.transport.interface.source_of", lambda address, *, relayed: "8.8.4.0/24")
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.FOUND_RATE", 0.0)
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.FOUND_BURST", 8000.0)
    async with serving(fresh_identity(tmp_path, "plain seed"), first_swarm()) as address:
        had = []
        for number in range(6):
            async with opened(name := fresh_identity(tmp_path, f"name {number}")) as bad:
                await bad.connect(address)
                if not number:
                    await bad.announce(KEY, bad.daemon.p2p.peer_id.to_bytes(), *signed(name, time.time() + 100))
                had.append(await drained(bad, peer_of(address)))
        assert 4000 < sum(had) <= 8000


async def test_names_that_have_come_just_now_are_counted_with_their_address_range_and_keep_no_newcomer_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = fresh_identity(tmp_path, "honest")
    text = text_of(honest.peer_id)
    monkeypatch.setattr(
        "waggle.network.transport.interface.source_of", lambda address, *, relayed: "" if text in address else "8.8.4.0/24"
    )
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.CALLS_RATE", 0.0)
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.CALLS_BURST", 30.0)
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.RANGE", 2.0)
    async with serving(fresh_identity(tmp_path, "plain seed"), first_swarm(), rejoin=SOON) as address:  # it looks once by itself
        answered = []
        for number in range(4):
            async with opened(fresh_identity(tmp_path, f"name {number}")) as bad:
                with suppress(PeerAway):  # it no longer answers their calls
                    await bad.connect(address)
                answered.append(await greeted(bad, peer_of(address)))
        assert answered == [29, 29, 0, 0], "with one call for each connection"
        async with opened(honest) as newcomer:
            await newcomer.connect(address)
            assert await newcomer.fetch_handshake(peer_of(address))
            assert await newcomer.announce(KEY, honest.peer_id, *signed(honest, time.time() + 100))


async def test_new_names_of_one_address_range_bring_no_new_calls_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.CALLS_RATE", 0.0)
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.CALLS_BURST", 30.0)
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.RANGE", 2.0)
    own, honest = fresh_identity(tmp_path, "own"), fresh_identity(tmp_path, "honest")
    services = Services(source=lambda peer_id: "" if peer_id == honest.peer_id else "8.8.4.0/24", handshake=lambda: b"here")
    async with opened(own, services) as dht, opened(honest, NOTHING, dht) as other:
        answered = []
        for number in range(4):
            async with opened(fresh_identity(tmp_path, f"name {number}")) as bad:
                with suppress(PeerAway):  # it no longer answers their calls
                    await bad.connect((await dht.addresses())[0])
                answered.append(await greeted(bad, own.peer_id))
        assert answered == [29, 29, 0, 0], "with one call for each connection"
        assert await other.fetch_handshake(own.peer_id) == b"here"


async def greeted(dht: HivemindNetwork, peer_id: bytes) -> int:
    """How often a peer answers before it refuses."""
    for number in range(100):
        try:
            await dht.fetch_handshake(peer_id)
        except PeerAway:
            return number
    return 100


async def test_whoever_is_relayed_is_shut_out_by_no_other() -> None:
    limits = CallLimits(Services(source=lambda peer_id: RELAYED))
    for number in range(20):
        for _ in range(int(CALLS_BURST)):
            await limits.admit(PEER_ID_PREFIX + bytes([number]) * 31 + b"\x09", hivemind.BytesValue())


async def test_what_the_directory_sends_is_held_to_the_limit_that_the_person_set(tmp_path: Path) -> None:
    traffic = BandwidthLimiter(clock=lambda: 0.0)
    traffic.limit = 1000.0
    honest, hostile = fresh_identity(tmp_path, "honest"), fresh_identity(tmp_path, "hostile")
    async with (
        opened(honest, Services(may_send_directory=traffic.may_send_directory)) as dht,
        opened(hostile, NOTHING, dht) as bad,
    ):
        put(dht, honest, time.time() + 100)
        assert 100 < await bytes_received(bad, honest.peer_id) < 1000
        assert not traffic.may_send(b"")


async def test_where_the_limit_is_used_up_neighbours_are_named_and_entries_stored_all_the_same(tmp_path: Path) -> None:
    honest, hostile, late = (fresh_identity(tmp_path, name) for name in ("honest", "hostile", "late"))
    async with (
        opened(honest, Services(may_send_directory=lambda source, size: False)) as dht,
        opened(hostile, NOTHING, dht) as other,
    ):
        put(dht, honest, time.time() + 100)
        async with opened(late, NOTHING, dht) as two:
            key = hivemind.DHTID.generate(KEY)
            value, nearest = (await two._node.protocol.call_find(dht.daemon.p2p.peer_id, [key]))[key]
            assert (value, set(nearest.values())) == (None, {other.daemon.p2p.peer_id})
            assert await two.announce(KEY, late.peer_id, *signed(late, time.time() + 100))
            assert origins_stored(dht) == {honest.peer_id, late.peer_id}


async def test_one_asker_leaves_the_others_their_part_of_what_the_person_lets_the_directory_send(tmp_path: Path) -> None:
    traffic, now = BandwidthLimiter(clock=lambda: now), 0.0
    traffic.limit = 1000.0
    honest, hostile, reader = (fresh_identity(tmp_path, name) for name in ("honest", "hostile", "reader"))
    async with (
        opened(honest, Services(may_send_directory=traffic.may_send_directory)) as dht,
        opened(hostile, NOTHING, dht) as bad,
    ):
        put(dht, honest, time.time() + 100)
        assert await bytes_received(bad, honest.peer_id) > 0
        now = 3.0  # 250 bytes a second for all, 63 for each
        assert await bytes_received(bad, honest.peer_id) == 0
        async with opened(reader, NOTHING, dht) as two:
            assert (await two.read_directory(KEY)).keys() == {honest.peer_id}


async def drained(attacker: HivemindNetwork, victim: bytes) -> int:
    """How many bytes a peer gets out of a directory before it gets only neighbours."""
    stub_of_victim, had = attacker._node.protocol.get_stub(hivemind.PeerID(victim)), 0
    while (answer := await stub_of_victim.rpc_find(FIND, timeout=SOON)).results[0].value:
        had += answer.ByteSize()
    return had


async def bytes_received(attacker: HivemindNetwork, victim: bytes) -> int:
    """How many bytes of announcements a peer gets out of a directory in ten calls, which are all answered."""
    stub_of_victim = attacker._node.protocol.get_stub(hivemind.PeerID(victim))
    answers = [await stub_of_victim.rpc_find(FIND, timeout=SOON) for _ in range(10)]
    return sum(len(result.value) for answer in answers for result in answer.results)


FIND = hivemind.dht_pb2.FindRequest(keys=[hivemind.DHTID.generate(KEY).to_bytes()])
