"""Peers that occupy the connections of a live node, or its shard of the directory, and ask nothing: others still get in."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hostile.conftest import StartAttacker, honest_one
from network.loopback import SOON, Start, answered, fresh_identity, question_ids, share
from waggle.network.messages import directory
from waggle.network.messages.events import GroupsArrived, NetworkRestarted, ReachChanged
from waggle.network.transport.hivemind import call_streams, dht_validator
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.network.web import server
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security.attacker import Attacker
from waggle_lab.security.witness import watched

CONNECTIONS = 150  # to the port of p2pd
BEGUN = b"\x13/multistream/1.0.0\n\x07/noise\n"  # the start of libp2p's handshake
BEGUN_CALLS = 40  # each complete except for its last byte
FLOOD_S, MOST_GROWTH_MIB = 6.0, 64.0
UNFINISHED_REQUEST = b"GET /gateway HTTP/1.1\r\nHost: 127.0.0.1\r\n"  # the request never ends
CAP = 24  # of a shard: too few to make a reader look deeper


@asynccontextmanager
async def held_connections(port: int, begun: bytes, sources: Sequence[str]) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open a connection from each of these addresses; every other one sends `begun`, and nothing more."""
    ends = [await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0)) for source in sources]
    try:
        for _, writer in ends[::2]:
            writer.write(begun)
        yield [reader for reader, _ in ends]
    finally:
        for _, writer in ends:
            writer.transport.abort()


async def test_handshakes_that_never_end_keep_nobody_out_of_a_node(start: Start, charter: Charter, verifier: Verifier) -> None:
    victim = await start("victim")
    (address, *_) = await victim.node.addresses()
    async with held_connections(int(address.split("/")[4]), BEGUN, ["127.0.0.1"] * CONNECTIONS):
        await honest_one(start, address, charter, verifier, victim)


async def test_streams_that_declare_much_and_say_nothing_neither_fill_a_node_nor_cost_anybody_an_answer(
    start: Start, seed_address: str, attacker: StartAttacker, tmp_path: Path
) -> None:
    victim = await start("victim", seeds=(seed_address,))
    await victim.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    hostile, (address, *_) = await attacker("flood"), await victim.node.addresses()
    await hostile.network.connect(address)
    async with watched([victim.node.transport.pid], address, tmp_path) as witness:
        assert await hostile.declare_calls(victim.identity.peer_id, FLOOD_S) > 10 * call_streams.MOST_OF_PEER
    assert witness.lost == 0
    assert witness.answers > FLOOD_S
    assert witness.growth_mib < MOST_GROWTH_MIB
    assert victim.ear.all(NetworkRestarted) == []


async def test_calls_that_are_begun_and_never_end_do_not_fill_the_memory(
    start: Start, seed_address: str, attacker: StartAttacker, charter: Charter, verifier: Verifier
) -> None:
    victim = await start("victim", seeds=(seed_address,))
    await victim.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    hostile = await attacker("half")
    await hostile.network.connect((await victim.node.addresses())[0])
    before = victim.node.transport.network.daemon.memory
    assert before > 0

    async with asyncio.timeout(SOON):
        begun = asyncio.gather(*(begin_one(hostile, victim.identity.peer_id) for _ in range(BEGUN_CALLS)))
        assert not any(await begun), "none of them was read to its end"

    assert (victim.node.transport.network.daemon.memory - before) / 2**20 < MOST_GROWTH_MIB
    assert victim.ear.all(NetworkRestarted) == []
    await honest_one(start, seed_address, charter, verifier, victim)


async def begin_one(hostile: Attacker, peer_id: bytes) -> bool:
    """Whether the peer takes a message of 4 MiB, except its last byte."""
    try:
        await hostile.begin_calls(peer_id, 1)
    except (ConnectionError, *load_hivemind().failures):  # it closed the stream
        return False
    return True


async def test_three_address_ranges_that_hold_every_connection_of_a_gateway_keep_out_no_light_client(
    start: Start, charter: Charter, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST", 9)
    monkeypatch.setattr(server, "MOST_FROM_ONE", 3)
    monkeypatch.setattr(server, "OPEN_S", 10 * SOON)  # no connection is closed for being silent
    monkeypatch.setattr(server, "source_of", lambda address, *, relayed: "" if address == "/ip/127.0.0.1" else address)
    lender = await start("lender", web_port=0, gateway=True)
    crowd = [f"127.0.0.{number}" for number in (2, 3, 4) for _ in range(3)]
    async with held_connections(lender.node.web.port, UNFINISHED_REQUEST, crowd) as readers:
        door = f"ws://127.0.0.1:{lender.node.web.port}/gateway"
        honest = await start("honest", gateways=(door,), light=True)
        ids = question_ids(charter, verifier, honest.identity.peer_id, 1)
        share(honest.node, answered(charter, verifier, honest.identity.peer_id, ids))
        await lender.ear.hear(GroupsArrived, lambda news: news.origin == honest.identity.peer_id)
        assert 1 <= sum(reader.at_eof() or reader.exception() is not None for reader in readers) <= 2, "the others stay"


async def test_a_shard_full_of_names_that_are_renewed_for_ever_keeps_nobody_from_being_heard(
    start: Start, seed_address: str, attacker: StartAttacker, charter: Charter, verifier: Verifier, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(dht_validator, "SHARD_CAP", CAP)
    victim = await start("victim", seeds=(seed_address,))
    await victim.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    hostile = [await attacker(f"crowd {number}") for number in range(4)]  # each has room for a quarter of them
    for each in hostile:  # with the default of five, the farthest of six nodes is never asked
        each.network._node.num_replicas = 6
    names = [fresh_identity(tmp_path, f"name {number}") for number in range(CAP)]
    storage = victim.node.transport.network._node.protocol.storage
    key = load_hivemind().DHTID.generate(directory.key_of(charter.digest, 0, 0))

    def inside() -> set[bytes]:
        entry = storage.get(key)
        return {origin for origin, _ in entry.value.items()} if entry else set()

    async def renew() -> None:
        for _ in itertools.count():
            await asyncio.gather(*(each.announce_crowd(names[i::4]) for i, each in enumerate(hostile)))

    renewing = asyncio.create_task(renew())
    try:
        async with asyncio.timeout(SOON):
            while len(inside()) < CAP:
                await asyncio.sleep(0.01)
        honest = await honest_one(start, seed_address, charter, verifier, victim)
        assert honest.identity.peer_id not in inside(), "there was no room"
    finally:
        renewing.cancel()
