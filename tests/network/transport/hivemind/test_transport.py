"""Staying connected: seeds that are away or come later, a network process that dies, and remembered addresses."""

import asyncio
import itertools
import json
import logging
import math
import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from network.loopback import SOON, Start, be_of_use, callbacks, free_port, fresh_identity, options, serving
from waggle.core.errors import SwarmError
from waggle.core.peer_id import short_id, text_of
from waggle.network.identity.keys import Identity
from waggle.network.messages.clock_skew import MAX_SKEW_S
from waggle.network.messages.events import ClockSkewed, NetworkEvent, NetworkRestarted, ReachChanged
from waggle.network.transport import peer_cache
from waggle.network.transport.hivemind import transport as connecting
from waggle.network.transport.hivemind.daemon import Daemon
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.network.transport.hivemind.transport import PINGED, HivemindTransport
from waggle.network.transport.interface import ConnectedPeer, PeerAway, Pong, Services
from waggle.network.transport.tasks import end
from waggle.tasks.charter import Charter

NOTHING = Services()


async def test_without_seeds_a_node_is_alone_at_once(start: Start) -> None:
    node = await start("one")
    assert node.ear.all(ReachChanged)[0].reach == "connecting"

    alone = await node.ear.hear(ReachChanged, lambda news: news.reach == "alone")

    assert (alone.peers, alone.tried) == (0, 0)
    assert alone.address.endswith(text_of(node.identity.peer_id))


async def test_a_seed_that_is_away_is_told_and_joined_when_it_comes(start: Start, tmp_path: Path, charter: Charter) -> None:
    port, identity = free_port(), fresh_identity(tmp_path, "late seed")
    address = f"/ip4/127.0.0.1/tcp/{port}/p2p/{text_of(identity.peer_id)}"
    node = await start("one", seeds=(address,))
    assert (await node.ear.hear(ReachChanged, lambda news: news.reach == "alone")).tried == 1

    async with serving(identity, charter, port=port) as served:
        assert served == address
        assert (await node.ear.hear(ReachChanged, lambda news: news.reach == "connected")).peers == 1
        before = len(node.ear.news)
    await node.ear.hear(ReachChanged, lambda news: news.reach == "alone", after=before)

    assert node.ear.all(ClockSkewed) == []


async def test_one_dead_seed_of_two_does_not_matter(start: Start, seed_address: str, tmp_path: Path) -> None:
    dead = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(tmp_path, 'dead').peer_id)}"
    node = await start("one", seeds=(dead, seed_address))
    assert (await node.ear.hear(ReachChanged, lambda news: news.reach == "connected")).tried == 2


async def test_a_seed_that_comes_later_is_met_also_when_another_is_connected(
    start: Start, seed_address: str, tmp_path: Path, charter: Charter
) -> None:
    port, identity = free_port(), fresh_identity(tmp_path, "late seed")
    address = f"/ip4/127.0.0.1/tcp/{port}/p2p/{text_of(identity.peer_id)}"
    node = await start("one", seeds=(seed_address, address))
    assert (await node.ear.hear(ReachChanged, lambda news: news.reach == "connected")).peers == 1

    async with serving(identity, charter, port=port):
        met = await node.ear.hear(ReachChanged, lambda news: news.peers == 2)

    assert (met.reach, met.tried) == ("connected", 2)
    assert "alone" not in [news.reach for news in node.ear.all(ReachChanged)]


async def test_peers_met_once_are_seeds_the_next_time(start: Start, seed_address: str, tmp_path: Path) -> None:
    path = tmp_path / "known_peers.json"
    node = await start("one", seeds=(seed_address,), known_peers=path)
    await node.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    await node.node.close()
    path.write_bytes(json.dumps(["no address", *peer_cache.read(path)]).encode())
    assert seed_address in peer_cache.read(path)

    reconnected = await start("one", known_peers=path)

    assert (await reconnected.ear.hear(ReachChanged, lambda news: news.reach == "connected")).peers == 1


async def test_a_network_process_that_is_killed_is_started_again_as_itself(start: Start, seed_address: str) -> None:
    node = await start("one", seeds=(seed_address,), port=free_port())  # which nobody takes meanwhile
    first = await node.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    before, pid = len(node.ear.news), node.node.transport.pid

    os.kill(pid, signal.SIGKILL)
    restarted = await node.ear.hear(NetworkRestarted)
    reconnected = await node.ear.hear(ReachChanged, lambda news: news.reach == "connected" and bool(news.address), after=before)

    assert "-9" in restarted.reason
    assert node.node.transport.pid != pid
    assert reconnected.address == first.address


async def test_a_network_process_that_keeps_dying_is_started_again_at_once_and_then_only_so_often(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "RESTART_S", 3.0)
    starts, start_again = list[float](), HivemindTransport._start_again

    async def record(transport: HivemindTransport) -> None:
        starts.append(time.monotonic())  # how long a start takes depends on what else the computer does
        await start_again(transport)

    monkeypatch.setattr(HivemindTransport, "_start_again", record)
    node = await start("one")
    for _ in range(3):
        before = len(node.ear.news)
        os.kill(node.node.transport.pid, signal.SIGKILL)
        if starts:
            async with asyncio.timeout(SOON):
                while not node.node.is_away:
                    await asyncio.sleep(0.02)
        await node.ear.hear(NetworkRestarted, after=before)
        assert not node.node.is_away
    assert len(starts) == 3
    assert all(later - earlier >= 2.5 for earlier, later in itertools.pairwise(starts)), starts


async def test_a_network_process_that_strangers_fill_loses_them_and_keeps_those_it_relies_on(
    start: Start, seed_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "PATIENCE", 10**6)  # no restart
    node = await start("one", seeds=(seed_address,))
    stranger = await start("stranger", seeds=tuple(await node.node.addresses()))
    await node.ear.hear(ReachChanged, lambda news: news.peers == 2)
    hung_up, hang_up = list[bytes](), Daemon.hang_up

    def is_full(daemon: Daemon) -> bool:
        return bool(daemon.p2p.peer_id.to_bytes() == node.identity.peer_id)  # the seed would hang up on all others

    async def record(daemon: Daemon, peer_id: bytes) -> None:
        if is_full(daemon):
            hung_up.append(peer_id)
        await hang_up(daemon, peer_id)

    monkeypatch.setattr(Daemon, "hang_up", record)
    monkeypatch.setattr(Daemon, "memory", property(lambda daemon: 2 * connecting.MOST_MEMORY if is_full(daemon) else 0))
    before = len(node.ear.news)
    await node.ear.hear(ReachChanged, lambda news: news.peers == 1, after=before)
    assert set(hung_up) == {stranger.identity.peer_id}
    assert node.ear.all(NetworkRestarted) == []


async def test_a_network_process_that_stays_full_is_started_again_once(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "CHECK_S", 0.05)
    monkeypatch.setattr(connecting, "MOST_MEMORY", 0)
    monkeypatch.setattr(
        connecting.HivemindTransport, "_check_peers", lambda _self: asyncio.Event().wait()
    )  # strangers hold it up
    node = await start("one", rejoin=1e6)
    assert (await node.ear.hear(NetworkRestarted)).reason == connecting.FULL
    pid, full = node.node.transport.pid, asyncio.Event()
    checks = itertools.count()

    async def count(_transport: HivemindTransport, _network: object) -> None:
        if next(checks) == 5 * connecting.PATIENCE:
            full.set()

    monkeypatch.setattr(HivemindTransport, "_hang_up_on_strangers", count)
    await asyncio.wait_for(full.wait(), SOON)
    assert node.node.transport.pid == pid


async def test_a_port_in_use_stops_the_start(start: Start) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SwarmError, match=f"Port {port} is already in use"):
            await start("one", port=port)


async def test_two_nodes_cannot_share_a_port(start: Start) -> None:
    port = free_port()
    await start("one", port=port)
    with pytest.raises(SwarmError, match=f"Port {port} is already in use"):
        await start("two", port=port)


async def test_a_malformed_seed_stops_the_start(start: Start) -> None:
    with pytest.raises(SwarmError, match="nonsense"):
        await start("one", seeds=("nonsense",))


async def test_a_computer_that_slept_joins_again_at_once(seed_address: str, identity: Identity) -> None:
    joined = asyncio.Event()
    transport = HivemindTransport(
        options(seeds=(seed_address,)), identity, callbacks(identity, on_joined=joined.set, services=NOTHING)
    )
    await transport.start()
    try:
        async with asyncio.timeout(SOON):
            await joined.wait()
            joined.clear()
            transport._clock_offset -= 100  # as if the wall clock had gone on alone
            await joined.wait()
    finally:
        await transport.close()


def say(*skews: float) -> dict[bytes, Pong]:
    """Pongs of peers whose clocks are off by these seconds."""
    return {bytes([number]): Pong(delay_ms=1.0, skew_s=skew) for number, skew in enumerate(skews)}


def test_a_clock_that_is_off_is_told_once_by_the_median_of_its_peers(identity: Identity) -> None:
    news: list[NetworkEvent] = []
    transport = HivemindTransport(options(), identity, callbacks(identity, news.append, services=NOTHING))
    transport._check_clock(say(5.0, -3.0, 4000.0), [])
    assert news == []

    transport._check_clock(say(90.0, 100.0, 4000.0), [])
    transport._check_clock(say(101.0), [])

    assert news == [ClockSkewed(seconds=100.0, agreeing=2)]


def test_what_one_peer_says_becomes_certain_once_another_agrees(identity: Identity) -> None:
    news: list[NetworkEvent] = []
    transport = HivemindTransport(options(), identity, callbacks(identity, news.append, services=NOTHING))
    transport._check_clock(say(1200.0), [])
    transport._check_clock(say(1210.0), [])
    assert news == [ClockSkewed(seconds=1200.0, agreeing=1)], "either of the two may be wrong"
    transport._check_clock(say(1200.0, 1220.0, 0.0), [])
    transport._check_clock(say(1200.0, 1220.0, 0.0), [])
    assert news[1:] == [ClockSkewed(seconds=1200.0, agreeing=2)]


@pytest.mark.parametrize("clock", [1e308, -1e308])
def test_a_time_that_nobody_can_mean_is_told_as_a_year(identity: Identity, clock: float) -> None:
    news: list[NetworkEvent] = []
    HivemindTransport(options(), identity, callbacks(identity, news.append, services=NOTHING))._check_clock(say(clock, clock), [])
    assert news == [ClockSkewed(seconds=math.copysign(MAX_SKEW_S, clock), agreeing=2)]


def test_peers_that_change_their_mind_warn_no_more_than_once_an_hour(identity: Identity) -> None:
    news: list[NetworkEvent] = []
    transport = HivemindTransport(options(), identity, callbacks(identity, news.append, services=NOTHING))
    for number in range(50):
        transport._check_clock(say((-1) ** number * 1000.0), [])
    assert news == [ClockSkewed(seconds=1000.0, agreeing=1)]
    transport._skew._rests_until = time.monotonic()
    transport._check_clock(say(-1000.0), [])
    transport._check_clock(say(0.0), [])
    transport._check_clock(say(90.0), [])
    assert news[1:] == [ClockSkewed(seconds=-1000.0, agreeing=1)]
    transport._skew._rests_until = time.monotonic()
    transport._check_clock(say(90.0), [])
    assert news[2:] == [ClockSkewed(seconds=90.0, agreeing=1)]


@pytest.mark.parametrize("by", ["seed", "trusted"])
async def test_where_seeds_or_trusted_peers_are_connected_no_others_say_how_late_it_is_and_they_are_always_asked(
    identity: Identity, tmp_path: Path, by: str
) -> None:
    friend, news, requests = fresh_identity(tmp_path, "friend").peer_id, list[NetworkEvent](), list[bytes]()
    seeds = (f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(friend)}",) if by == "seed" else ()
    transport = HivemindTransport(
        options(seeds=seeds),
        identity,
        callbacks(identity, news.append, trusted_peers=lambda: {friend} if by == "trusted" else set(), services=NOTHING),
    )

    async def ping(peer_id: bytes) -> Pong:
        requests.append(peer_id)
        return Pong(delay_ms=1.0, skew_s=100.0 if peer_id == friend else 4000.0)

    dht: Any = SimpleNamespace(ping=ping)
    peers = [ConnectedPeer(who, "", relayed=False) for who in (friend, *(bytes([i]) * 38 for i in range(30)))]
    transport._pinged.add(friend)
    await transport._ping(dht, peers)
    assert len(requests) == PINGED
    assert friend in requests
    assert news == [ClockSkewed(seconds=100.0, agreeing=1)]

    transport._skew._rests_until = -math.inf
    transport._check_clock({peers[1].peer_id: await ping(peers[1].peer_id)}, peers)
    assert len(news) == 1, "of those asked none is relied on"


async def test_whoever_answered_is_remembered_though_no_neighbours_were_found_in_time(identity: Identity, tmp_path: Path) -> None:
    friend = fresh_identity(tmp_path, "friend").peer_id
    address = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(friend)}"
    transport = HivemindTransport(options(seeds=(address,)), identity, callbacks(identity, services=NOTHING))

    async def connect(_address: str) -> Pong:
        return Pong(delay_ms=1.0, skew_s=0.0)

    async def settle() -> None:
        raise PeerAway("too slow")

    async def peers() -> list[ConnectedPeer]:
        return [ConnectedPeer(friend, address, relayed=False)]

    await transport._join(SimpleNamespace(connect=connect, find_neighbours=settle, daemon=SimpleNamespace(peers=peers)), [])
    assert transport._known == (address,)


async def test_a_port_taken_while_the_network_process_was_dead_is_given_up(start: Start, seed_address: str) -> None:
    node = await start("one", seeds=(seed_address,))
    first = await node.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    before, port = len(node.ear.news), node.node.transport._port
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        process = psutil.Process(node.node.transport.pid)
        process.kill()
        process.wait(SOON)
        other.bind(("127.0.0.1", port))
        other.listen()
        reconnected = await node.ear.hear(ReachChanged, lambda news: news.reach == "connected", after=before)
    assert reconnected.address != first.address


async def test_the_log_names_peers_that_answer_late_or_not_at_all(
    identity: Identity, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    late, silent = (fresh_identity(tmp_path, name).peer_id for name in ("late", "silent"))
    transport = HivemindTransport(options(), identity, callbacks(identity))

    async def ping(peer_id: bytes) -> Pong:
        if peer_id == silent:
            raise PeerAway("no answer")
        return Pong(delay_ms=2500.0, skew_s=0.0)

    peers = [ConnectedPeer(late, "", relayed=True), ConnectedPeer(silent, "", relayed=False)]
    with caplog.at_level(logging.DEBUG, "waggle"):
        await transport._ping(SimpleNamespace(ping=ping), peers)
    assert f"peer {short_id(late)}, connected through a relay, answers a ping after 2.5 s" in caplog.messages
    assert f"peer {short_id(silent)}, connected directly, does not answer a ping" in caplog.messages


def test_tasks_that_swallow_being_cancelled_once_are_ended_all_the_same() -> None:
    async def stubborn() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def main() -> bool:
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        await end([task])
        return task.cancelled()

    assert asyncio.run(main())


async def test_those_suggested_by_strangers_nearby_push_out_nobody_who_is_known(identity: Identity, tmp_path: Path) -> None:
    known = f"/ip4/9.9.9.9/tcp/1/p2p/{text_of(fresh_identity(tmp_path, 'known').peer_id)}"
    transport = HivemindTransport(options(), identity, callbacks(identity, services=NOTHING))
    transport._remember([ConnectedPeer(peer_id=b"known", address=known, relayed=False)])
    for port in range(1, 200):
        transport.suggest(f"/ip4/192.168.1.7/tcp/{port}/p2p/{text_of(identity.peer_id)}")
    assert transport._known == (known,)


async def test_whoever_is_of_use_is_remembered_before_others(start: Start, seed_address: str, tmp_path: Path) -> None:
    path = tmp_path / "known_peers.json"
    friend = await start("friend", seeds=(seed_address,))
    node = await start("one", seeds=(seed_address,), known_peers=path)
    be_of_use(node.node._reputations, friend.identity.peer_id)
    node.node.transport.suggest((await friend.node.addresses())[0])
    async with asyncio.timeout(SOON):
        while len(peer_cache.read(path)) < 2:
            await asyncio.sleep(0.05)
    assert peer_cache.read(path)[0].endswith(text_of(friend.identity.peer_id))


@pytest.mark.parametrize("kind", ["RSA", "Ed25519"])
async def test_a_peer_with_another_kind_of_key_than_nodes_have_is_neither_met_nor_answered(
    identity: Identity, tmp_path: Path, kind: str
) -> None:
    """A person could not block such a peer."""
    hivemind, key = load_hivemind(), None
    from hivemind.dht.protocol import DHTProtocol

    if kind == "RSA":
        hivemind.P2P.generate_identity(key := str(tmp_path / "rsa.key"))
    transport = HivemindTransport(options(), identity, callbacks(identity, services=NOTHING))
    try:
        await transport.start()
        addresses = (await transport.network.addresses())[:1]
        stranger = await hivemind.P2P.create(addresses, host_maddrs=["/ip4/127.0.0.1/tcp/0"], identity_path=key)
        try:
            stub = super(DHTProtocol, DHTProtocol).get_stub(stranger, hivemind.PeerID(identity.peer_id))
            requests = stub.rpc_ping(hivemind.dht_pb2.PingRequest(), timeout=SOON)
            if kind == "RSA":
                with pytest.raises(hivemind.failures):
                    await requests
            else:
                assert len((await requests).peer.node_id) == 20
            assert len(await transport.network.daemon.p2p.list_peers()) == 1
            met = [peer.peer_id for peer in await transport.network.daemon.peers()]
            assert met == ([] if kind == "RSA" else [stranger.peer_id.to_bytes()])
        finally:
            await stranger.shutdown()
    finally:
        await transport.close()


async def test_a_peer_with_another_kind_of_key_is_never_remembered(identity: Identity) -> None:
    rsa = "/ip4/127.0.0.1/tcp/4001/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
    transport = HivemindTransport(options(), identity, callbacks(identity, services=NOTHING))
    transport._remember([ConnectedPeer(peer_id=b"other", address=rsa, relayed=False)])
    assert transport._known == ()
