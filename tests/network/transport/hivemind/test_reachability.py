"""A node finds out how others can call it, and reports it."""

import asyncio
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from network.loopback import Ear, callbacks, free_port, fresh_identity, options, serving
from waggle.core.peer_id import text_of
from waggle.engine.runtime.round_events import Titles
from waggle.engine.services.swarms.swarm_connection import event_from_news
from waggle.network.identity.keys import Identity
from waggle.network.messages import invite
from waggle.network.messages.events import NetworkRestarted, ReachChanged
from waggle.network.transport.hivemind.call_limits import RANGE, CallRefused
from waggle.network.transport.hivemind.daemon import EVERYWHERE
from waggle.network.transport.hivemind.network import is_reached_by, open_network
from waggle.network.transport.hivemind.reachability import QUESTIONS_BURST, DialBack
from waggle.network.transport.hivemind.transport import HivemindTransport
from waggle.network.transport.interface import ConnectedPeer, PeerAway, Services
from waggle.tasks.charter import Charter


async def test_a_node_that_its_seed_can_call_says_that_others_reach_it(
    seed_address: str, identity: Identity, charter: Charter
) -> None:
    ear = Ear()
    transport = HivemindTransport(options(seeds=(seed_address,)), identity, callbacks(identity, ear, services=Services()))
    try:
        await transport.start()
        result = await ear.hear(ReachChanged, lambda news: news.way == "direct")
    finally:
        await transport.close()
    assert result.reach == "connected"
    assert event_from_news(result, Titles(charter)).way == "direct"
    assert ear.all(NetworkRestarted) == []


@pytest.mark.parametrize(("first", "then"), [("direct", "relay"), ("relay", "direct")])
async def test_a_computer_that_slept_finds_out_anew_how_others_call_it(
    identity: Identity, charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, then: str
) -> None:
    place = first

    async def answers(_host: str, _port: int) -> bool:
        return place == "direct"

    monkeypatch.setattr("waggle.network.transport.hivemind.reachability._answers", answers)
    async with serving(fresh_identity(tmp_path, "seed"), charter, relay=True) as address:
        ear = Ear()
        transport = HivemindTransport(options(seeds=(address,)), identity, callbacks(identity, ear, services=Services()))
        try:
            await transport.start()
            await ear.hear(ReachChanged, lambda news: news.way == first)
            place = then
            transport._clock_offset -= 100  # as if the wall clock had gone on alone
            result = await ear.hear(ReachChanged, lambda news: news.way == then and news.reach == "connected")
            assert transport._relayed == (then == "relay")
            assert bool(result.address) == (then == "direct"), "no circuit leads to a loopback"
        finally:
            await transport.close()


async def test_a_seed_that_did_not_say_is_asked_again(
    identity: Identity, charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[str] = []

    async def busy_at_first(host: str, _port: int) -> bool:
        requests.append(host)
        if len(requests) == 1:
            raise RuntimeError("too many others ask")
        return True

    monkeypatch.setattr("waggle.network.transport.hivemind.reachability._answers", busy_at_first)
    monkeypatch.setattr("waggle.network.transport.hivemind.transport.ASK_AGAIN_S", 0.2)
    async with serving(fresh_identity(tmp_path, "seed"), charter) as address:
        ear = Ear()
        transport = HivemindTransport(options(seeds=(address,)), identity, callbacks(identity, ear, services=Services()))
        try:
            await transport.start()
            await ear.hear(ReachChanged, lambda news: news.way == "direct")
        finally:
            await transport.close()
    assert len(requests) >= 2


async def test_who_was_asked_is_remembered_while_it_is_connected(identity: Identity) -> None:
    requests: list[bytes] = []

    async def no(_name: str, peer_id: bytes, _port: bytes, _seconds: float) -> bytes:
        requests.append(peer_id)
        return b"0"

    transport = HivemindTransport(options(), identity, callbacks(identity, services=Services()))
    transport._port = free_port()
    dht: Any = SimpleNamespace(daemon=SimpleNamespace(call=no))
    steady, *passing = (ConnectedPeer(bytes([number]) * 38, "", relayed=False) for number in range(100))
    for peer in passing:
        await transport._find_way(dht, [steady, peer])
    assert requests == [steady.peer_id, *(peer.peer_id for peer in passing)]
    assert set(transport._ask_again_at) == {steady.peer_id, passing[-1].peer_id}


async def test_a_peer_that_is_no_seed_cannot_send_a_node_to_the_relay(
    identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lie(_host: str, _port: int) -> bool:
        return False

    monkeypatch.setattr("waggle.network.transport.hivemind.reachability._answers", lie)
    away = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(tmp_path, 'away').peer_id)}"
    liar = await open_network(options(), fresh_identity(tmp_path, "liar"), Services(), port=0)
    ear = Ear()
    transport = HivemindTransport(options(seeds=(away,)), identity, callbacks(identity, ear, services=Services()))
    try:
        await transport.start()
        transport.suggest((await liar.addresses())[0])
        result = await ear.hear(ReachChanged, lambda news: news.reach == "connected")
        assert (result.way, transport._changing) == ("", False)
    finally:
        await transport.close()
        await liar.close()


async def test_a_peer_says_whether_a_port_of_ours_answers(seed_address: str, tmp_path: Path) -> None:
    dht = await open_network(options(), fresh_identity(tmp_path, "own"), Services(), port=0)
    try:
        await dht.connect(seed_address)
        (seed,) = await dht.daemon.peers()
        own = int((await dht.addresses())[0].split("/")[4])
        assert await is_reached_by(dht.daemon, seed.peer_id, own)
        assert not await is_reached_by(dht.daemon, seed.peer_id, free_port())
        with pytest.raises(PeerAway):  # not port 0
            await is_reached_by(dht.daemon, seed.peer_id, 0)
    finally:
        await dht.close()


async def test_new_names_of_one_address_range_are_called_back_no_more_without_end_and_others_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answers(_host: str, _port: int) -> bool:
        return True

    monkeypatch.setattr("waggle.network.transport.hivemind.reachability._answers", answers)
    monkeypatch.setattr("waggle.network.transport.hivemind.reachability.LISTED_S", 0.0)
    ranges = {bytes([i]): "8.8.4" for i in range(100)} | {b"elsewhere": "9.9.9", b"relayed": ""}
    here = [ConnectedPeer(who, f"/ip4/{range_}.1/tcp/1", relayed=not range_) for who, range_ in ranges.items()]

    async def connected() -> list[ConnectedPeer]:
        return here

    async def call_back(who: bytes) -> bool | None:
        try:
            return await callback.reaches(who, 1)
        except CallRefused:
            return None

    callback = DialBack(connected)
    assert [await call_back(bytes([i])) for i in range(100)].count(True) == RANGE * QUESTIONS_BURST
    assert [await call_back(b"elsewhere") for _ in range(4)] == [True] * 3 + [None]
    assert await call_back(b"relayed") is False
    assert await call_back(b"gone") is False


async def test_however_many_ask_all_who_are_connected_are_listed_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answers(_host: str, _port: int) -> bool:
        return True

    monkeypatch.setattr("waggle.network.transport.hivemind.reachability._answers", answers)
    listed: list[float] = []
    here = [ConnectedPeer(b"first", "/ip4/127.0.0.1/tcp/1", relayed=False)]

    async def connected() -> list[ConnectedPeer]:
        listed.append(time.monotonic())
        return list(here)

    callback, strangers = DialBack(connected), [bytes([i]) for i in range(100)]
    assert await callback.reaches(b"first", 1)
    here.append(ConnectedPeer(b"late", "/ip4/127.0.0.1/tcp/1", relayed=False))
    result = await asyncio.gather(*(callback.reaches(who, 1) for who in (*strangers, b"late", b"first")))
    assert result == [False] * 100 + [True] * 2, "who has just come is listed anew"
    assert len(listed) == 2
    assert listed[1] - listed[0] >= 0.99


async def test_a_node_listens_by_tcp_alone_and_the_tcp_part_of_an_old_invite_is_used(charter: Charter, tmp_path: Path) -> None:
    async with serving(fresh_identity(tmp_path, "seed"), charter, host=EVERYWHERE) as first:
        where, rest = first.split("/tcp/")
        quic = f"{where}/udp/{rest.replace('/p2p/', '/quic-v1/p2p/')}"
        node = await open_network(options(host=EVERYWHERE), fresh_identity(tmp_path, "own"), Services(), port=0)
        try:
            assert all("/tcp/" in address and "/udp/" not in address for address in await node.addresses())
            assert socket.SOCK_DGRAM not in {each.type for each in psutil.Process(node.daemon.pid).net_connections()}
            old = invite.read(f"waggle://join?charter={charter.digest.hex()}&seed={quic}&seed={first}")
            assert old.seeds == (first,)
            await node.connect(old.seeds[0])
            await node.connect(quic)
            assert {peer.address for peer in await node.daemon.peers()} == {first}
        finally:
            await node.close()
