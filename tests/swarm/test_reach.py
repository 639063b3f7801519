"""A node finds out how others call it, and says so."""

from pathlib import Path

import pytest

from swarm.live import Ear, free_port, fresh_identity, options, serving
from waggle.engine.others import event_of
from waggle.engine.telling import Titles
from waggle.swarm.connection import Connection
from waggle.swarm.dht import EVERYWHERE, PeerAway, open_dht
from waggle.swarm.identity import Identity, text_of
from waggle.swarm.news import NetworkRestarted, ReachFound
from waggle.swarm.services import Services
from waggle.tasks.charter import Charter


async def test_a_node_that_its_seed_can_call_says_that_others_reach_it(
    seed_address: str, identity: Identity, charter: Charter
) -> None:
    ear = Ear()
    connection = Connection(options(seeds=(seed_address,)), identity, Services(), ear)
    try:
        await connection.start()
        found = await ear.hear(ReachFound, lambda news: news.way == "direct")
    finally:
        await connection.close()
    assert found.reach == "connected"
    assert event_of(found, Titles(charter)).way == "direct"
    assert ear.all(NetworkRestarted) == []


@pytest.mark.parametrize(("first", "then"), [("direct", "relay"), ("relay", "direct")])
async def test_a_computer_that_slept_finds_out_anew_how_others_call_it(
    identity: Identity, charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, then: str
) -> None:
    place = first

    async def answers(_host: str, _port: int) -> bool:
        return place == "direct"

    monkeypatch.setattr("waggle.swarm.dht._answers", answers)
    async with serving(fresh_identity(tmp_path, "seed"), charter, relay=True) as address:
        ear = Ear()
        connection = Connection(options(seeds=(address,)), identity, Services(), ear)
        try:
            await connection.start()
            await ear.hear(ReachFound, lambda news: news.way == first)
            place = then
            connection._clock_offset -= 100  # as if the wall clock had gone on alone
            found = await ear.hear(ReachFound, lambda news: news.way == then and news.reach == "connected")
            assert connection._relayed == (then == "relay")
            assert bool(found.address) == (then == "direct"), "no circuit leads to a loopback"
        finally:
            await connection.close()


async def test_a_seed_that_did_not_say_is_asked_again(
    identity: Identity, charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def busy_at_first(host: str, _port: int) -> bool:
        asked.append(host)
        if len(asked) == 1:
            raise RuntimeError("too many others ask")
        return True

    monkeypatch.setattr("waggle.swarm.dht._answers", busy_at_first)
    monkeypatch.setattr("waggle.swarm.connection.ASK_AGAIN_S", 0.2)
    async with serving(fresh_identity(tmp_path, "seed"), charter) as address:
        ear = Ear()
        connection = Connection(options(seeds=(address,)), identity, Services(), ear)
        try:
            await connection.start()
            await ear.hear(ReachFound, lambda news: news.way == "direct")
        finally:
            await connection.close()
    assert len(asked) >= 2


async def test_a_peer_that_is_no_seed_cannot_send_a_node_to_the_relay(
    identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lie(_host: str, _port: int) -> bool:
        return False

    monkeypatch.setattr("waggle.swarm.dht._answers", lie)
    away = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(tmp_path, 'away').peer_id)}"
    liar = await open_dht(options(), fresh_identity(tmp_path, "liar"), Services(), port=0)
    ear = Ear()
    connection = Connection(options(seeds=(away,)), identity, Services(), ear)
    try:
        await connection.start()
        connection.suggest((await liar.addresses())[0])
        found = await ear.hear(ReachFound, lambda news: news.reach == "connected")
        assert (found.way, connection._changing) == ("", False)
    finally:
        await connection.close()
        await liar.close()


async def test_a_peer_says_whether_a_port_of_ours_answers(seed_address: str, tmp_path: Path) -> None:
    dht = await open_dht(options(), fresh_identity(tmp_path, "own"), Services(), port=0)
    try:
        await dht.connect(seed_address)
        (seed,) = await dht.peers()
        own = int((await dht.addresses())[0].split("/")[4])
        assert await dht.is_reached_by(seed.peer_id, own)
        assert not await dht.is_reached_by(seed.peer_id, free_port())
        with pytest.raises(PeerAway):  # not port 0
            await dht.is_reached_by(seed.peer_id, 0)
    finally:
        await dht.close()


async def test_a_node_listens_by_tcp_and_quic_and_both_are_called(charter: Charter, tmp_path: Path) -> None:
    async with serving(fresh_identity(tmp_path, "seed"), charter, host=EVERYWHERE) as first:
        peer = first.rsplit("/", 1)[1]
        dht = await open_dht(options(), fresh_identity(tmp_path, "own"), Services(), port=0)
        other = await open_dht(options(host=EVERYWHERE), fresh_identity(tmp_path, "other"), Services(), port=0)
        try:
            await dht.connect(first)
            offered = await other.addresses()
            quic = next(address for address in offered if address.startswith("/ip4/127.0.0.1/udp/") and "/quic-v1/" in address)
            assert any("/tcp/" in address for address in offered)
            await dht.connect(quic)
            assert {one.address for one in await dht.peers()} >= {quic}
            assert peer in first
        finally:
            await dht.close()
            await other.close()
