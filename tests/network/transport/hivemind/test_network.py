"""Our use of hivemind: what attackers can put into the directory, its private parts, and that p2pd always ends."""

import asyncio
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from network.loopback import SOON, free_port, fresh_identity, options
from waggle.core.errors import SwarmError
from waggle.core.peer_id import text_of
from waggle.network.identity.keys import Identity
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory
from waggle.network.messages.announcement import MAX_LIFETIME_S, Announcement
from waggle.network.transport.hivemind.network import HivemindNetwork, load_hivemind, open_network
from waggle.network.transport.interface import ConnectedPeer, PeerAway, Services
from waggle.network.transport.ports import require_port
from waggle.tasks.shipped_swarms import first_swarm
from waggle.tasks.questions import epoch_at

CHARTER = first_swarm().digest
KEY = directory.key_of(CHARTER, 0, 0)
NOTHING = Services()


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


HAS_IPV6 = _has_ipv6()


@asynccontextmanager
async def opened(identity: Identity, services: Services = NOTHING, *seeds: HivemindNetwork) -> AsyncIterator[HivemindNetwork]:
    dht = await open_network(options(), identity, services, port=0)
    try:
        for seed in seeds:
            await dht.connect((await seed.addresses())[0])
        yield dht
    finally:
        await dht.close()


def signed(identity: Identity, expires_at: float, number: int = 1) -> tuple[bytes, float]:
    announced = Announcement(
        charter=CHARTER, sha256=bytes(32), size=500, round=number, epoch=epoch_at(time.time()), specialties=1, model="m",
        expires=int(expires_at * 1000),
    )  # fmt: skip
    return announcements.signed(announced, identity), announced.expires_at


async def test_only_true_announcements_enter_the_directory(tmp_path: Path) -> None:
    honest, second, hostile = (fresh_identity(tmp_path, name) for name in ("honest", "second", "hostile"))
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(opened(honest))
        two = await stack.enter_async_context(opened(second, NOTHING, node))
        bad = await stack.enter_async_context(opened(hostile, NOTHING, node, two))
        bad._node.protocol.record_validator = None  # an attacker runs other software
        bad._node.protocol.storage = importlib.import_module("hivemind.dht.storage").DHTLocalStorage()
        soon, late = time.time() + 100, time.time() + MAX_LIFETIME_S + 60
        good, good_expires = signed(honest, soon)
        assert await node.announce(KEY, honest.peer_id, good, good_expires)

        own, own_expires = signed(hostile, soon + 50)
        far, far_expires = signed(hostile, late)
        attempts = {
            "plain value": (KEY, b"mine", soon + 50, None),
            "plain value for ever": (KEY, b"mine", time.time() + 1e9, None),
            "forged": (KEY, good[:-1] + bytes([good[-1] ^ 1]), good_expires + 1, honest.peer_id),
            "own words under another's name": (KEY, own, own_expires, honest.peer_id),
            "another's words under one's own name": (KEY, good, good_expires, hostile.peer_id),
            "replayed with a later expiry": (KEY, good, good_expires + 50, honest.peer_id),
            "far in the future": (KEY, far, far_expires, hostile.peer_id),
            "another key": ("squatted", own, own_expires, hostile.peer_id),
            "a subkey that is no peer": (KEY, own, own_expires, "me"),
            "a value that is no announcement": (KEY, {"a": [1]}, own_expires, hostile.peer_id),
        }
        for key, value, expires_at, subkey in attempts.values():
            await bad._node.store(key, value, expires_at, subkey=subkey)
        entered = {name: await _stored(bad, node, *attempt) for name, attempt in attempts.items()}
        assert entered == dict.fromkeys(attempts, False)
        assert await _stored(bad, node, KEY, own, own_expires, hostile.peer_id)

        for reader in (node, two):
            result = await reader.read_directory(KEY)
            assert result.pop(honest.peer_id) == good
            assert set(result) <= {hostile.peer_id}


async def _stored(
    sender: HivemindNetwork, receiver: HivemindNetwork, key: str, value: object, expires_at: float, subkey: object
) -> bool:
    """Whether `receiver` stores an entry that `sender` sends without checking it."""
    protocol, hivemind = sender._node.protocol, load_hivemind()
    packed = protocol.serializer.dumps(value)
    answer = await protocol.call_store(
        receiver.daemon.p2p.peer_id, [hivemind.DHTID.generate(key)], [packed], [expires_at], subkeys=[subkey]
    )
    assert answer is not None
    return bool(answer[0])


async def test_a_payload_is_pulled_by_its_hash_and_a_charter_by_its(tmp_path: Path) -> None:
    requests: list[bytes] = []

    async def payload(peer_id: bytes, sha256: bytes) -> bytes:
        requests.append(peer_id)
        return b"payload of " + sha256

    services = Services(payload=payload, charter=lambda sha256: b"charter of " + sha256)
    giver, taker = fresh_identity(tmp_path, "giver"), fresh_identity(tmp_path, "taker")
    async with opened(giver, services) as node, opened(taker, NOTHING, node) as two:
        assert await two.pull(giver.peer_id, b"x" * 32, SOON) == b"payload of " + b"x" * 32
        assert await two.fetch_charter(giver.peer_id, b"y" * 32) == b"charter of " + b"y" * 32
        assert await node.pull(taker.peer_id, b"x" * 32, SOON) == b""
        assert requests == [taker.peer_id]
        assert [peer.peer_id for peer in await two.daemon.peers()] == [giver.peer_id]
        assert (await two.daemon.peers())[0].address in await node.addresses()


async def test_a_peer_that_is_not_there_is_away(tmp_path: Path) -> None:
    nobody = fresh_identity(tmp_path, "nobody")
    async with opened(fresh_identity(tmp_path, "own")) as dht:
        with pytest.raises(PeerAway):
            await dht.pull(nobody.peer_id, bytes(32), 2)
        with pytest.raises(PeerAway):
            await dht.connect(f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(nobody.peer_id)}")
        with pytest.raises(PeerAway):
            await dht.ping(nobody.peer_id)


async def test_the_parts_of_hivemind_that_are_not_public_are_still_there(identity: Identity) -> None:
    async with opened(identity) as dht:
        p2p, node, hivemind = dht.daemon.p2p, dht._node, load_hivemind()
        assert callable(p2p._client.connect)
        assert p2p._child.returncode is None
        assert psutil.Process(dht.daemon.pid).name() == "p2pd"
        assert node.protocol.node_info.node_id == node.node_id.to_bytes()
        assert node.protocol.record_validator is not None
        assert callable(node.protocol.get_stub)
        assert callable(node.protocol.update_routing_table)
        assert p2p.peer_id.to_bytes() == identity.peer_id
        assert {hivemind.DHTID.generate(KEY).to_bytes()} <= directory.places_of(CHARTER, identity.peer_id).keys()
        assert node.protocol.serializer.dumps(identity.peer_id) == b"\xc4\x26" + identity.peer_id
        assert node.protocol.RESERVED_SUBKEYS == (b"\xc0", b"")


async def test_what_strangers_send_is_not_written_down_by_the_network_process(identity: Identity) -> None:
    async with opened(identity) as dht:
        assert psutil.Process(dht.daemon.pid).environ()["GOLOG_LOG_LEVEL"] == "ERROR"


async def test_every_line_of_the_network_process_is_read() -> None:
    lines, news = asyncio.StreamReader(), list[str]()
    lines.feed_data(b"Peer ID: one\n" + b"x" * 100_000 + b"\nPeer ID: two\nthe last\n")
    lines.feed_eof()
    ready = asyncio.get_running_loop().create_future()
    p2p = SimpleNamespace(_child=SimpleNamespace(stdout=lines), _log_p2pd_message=news.append)
    await asyncio.wait_for(load_hivemind().P2P._read_outputs(p2p, ready), SOON)
    assert ready.done()
    assert news == ["Peer ID: one", "Peer ID: two", "the last"]


def test_importing_the_room_loads_neither_hivemind_nor_torch_and_the_shim_no_torch() -> None:
    script = """
import json, pkgutil, sys, importlib, waggle.network
for each in pkgutil.walk_packages(waggle.network.__path__, "waggle.network."):
    importlib.import_module(each.name)
first = [name for name in ("hivemind", "torch", "google.protobuf", "uvloop") if name in sys.modules]
from waggle.network.transport.hivemind.network import load_hivemind
load_hivemind()
from waggle.network.transport.availability import has_hivemind
print(json.dumps([first, [name for name in ("torch", "transformers", "uvloop") if name in sys.modules], has_hivemind()]))
"""
    assert json.loads(_python(script)) == [[], [], True]


def test_p2pd_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    script = f"""
import asyncio, os, pathlib, signal
from waggle.network.transport.hivemind.network import open_network
from waggle.network.transport.interface import Services
from waggle.network.identity.keys import load_or_create
from waggle.network.messages.options import SwarmOptions

async def main():
    own = load_or_create(pathlib.Path({str(tmp_path / "own.key")!r}))
    nothing = Services()
    dht = await open_network(SwarmOptions(host="127.0.0.1"), own, nothing, port=0)
    print(dht.daemon.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    _gone(int(_python(script, code=-signal.SIGKILL)))


async def test_p2pd_ends_when_the_dht_is_closed(identity: Identity) -> None:
    async with opened(identity) as dht:
        pid = dht.daemon.pid
    assert not psutil.pid_exists(pid)


async def test_p2pd_ends_when_it_ignores_the_polite_signal(identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.daemon.CONNECT_S", 0.3)
    monkeypatch.setattr("waggle.network.transport.hivemind.network.CONNECT_S", 0.3)
    async with opened(identity) as dht:
        pid = dht.daemon.pid
        os.kill(pid, signal.SIGSTOP)
    assert not psutil.pid_exists(pid)


async def test_a_daemon_that_dies_is_noticed(identity: Identity) -> None:
    async with opened(identity) as dht:
        os.kill(dht.daemon.pid, signal.SIGKILL)
        assert await asyncio.wait_for(dht.daemon.wait_until_exit(), SOON) == -signal.SIGKILL
        with pytest.raises(PeerAway):
            await dht.daemon.peers()


@pytest.mark.parametrize("moment", ["before we are connected to it", "before it told its name", "before it knows our handlers"])
async def test_a_daemon_that_dies_while_it_starts_is_an_error_in_words(
    identity: Identity, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    p2p = load_hivemind().P2P
    read, ping = p2p._read_outputs, p2p._ping_daemon

    async def die(daemon: Any) -> None:
        daemon._child.kill()
        await daemon._child.wait()

    async def read_outputs(daemon: Any, ready: asyncio.Future[None]) -> None:
        received = asyncio.get_running_loop().create_future()
        reading = asyncio.create_task(read(daemon, received))
        await received
        await die(daemon)
        ready.set_result(None)
        await reading

    async def ping_daemon(daemon: Any) -> None:
        if moment == "before it told its name":
            await die(daemon)
        await ping(daemon)
        await die(daemon)
        monkeypatch.setattr("waggle.network.transport.hivemind.network.START_S", 1.0)

    if moment == "before we are connected to it":
        monkeypatch.setattr(p2p, "_read_outputs", read_outputs)
    else:
        monkeypatch.setattr(p2p, "_ping_daemon", ping_daemon)
    async with asyncio.timeout(SOON):
        with pytest.raises(SwarmError, match="The network process"):
            await open_network(options(), identity, NOTHING, port=0)


async def test_a_daemon_that_is_told_to_end_before_us_leaves_no_error_behind(identity: Identity) -> None:
    async with opened(identity) as dht:
        os.kill(dht.daemon.pid, signal.SIGTERM)  # as all of a group are, when it is stopped
        await asyncio.wait_for(dht.daemon.wait_until_exit(), SOON)


async def test_a_daemon_that_dies_over_a_call_leaves_no_error_behind(identity: Identity, tmp_path: Path) -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    async with opened(identity) as dht:
        os.kill(dht.daemon.pid, signal.SIGSTOP)
        calling = asyncio.create_task(dht.fetch_handshake(fresh_identity(tmp_path, "nobody").peer_id))
        while not dht.daemon.p2p._client.control._pending_calls:
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # it has not read what was written
        os.kill(dht.daemon.pid, signal.SIGKILL)
        await asyncio.wait_for(dht.daemon.wait_until_exit(), SOON)
        calling.cancel()
        await asyncio.wait([calling])
    del dht, calling
    gc.collect()
    assert faults == []


@pytest.mark.parametrize(("host", "kind"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_a_port_in_use_is_named(host: str, kind: socket.AddressFamily) -> None:
    if kind == socket.AF_INET6 and not HAS_IPV6:
        pytest.skip("no IPv6 here")
    with socket.socket(kind) as other:
        other.bind((host, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SwarmError) as refused:
            require_port(host, port)
    assert refused.value.title == f"Port {port} is already in use."
    assert refused.value.advice
    require_port(host, port)
    require_port(host, 0)


@pytest.mark.skipif(not HAS_IPV6, reason="no IPv6 here")
async def test_a_node_listens_at_an_ipv6_address_and_a_port_of_ones_own(identity: Identity) -> None:
    port = free_port("::1")
    dht = await open_network(options(host="::1", port=port), identity, NOTHING, port=port)
    try:
        assert f"/ip6/::1/tcp/{port}/p2p/{text_of(identity.peer_id)}" in await dht.addresses()
    finally:
        await dht.close()


def test_an_address_that_is_not_this_computers_is_named() -> None:
    with pytest.raises(SwarmError, match=r"192\.0\.2\.1"):
        require_port("192.0.2.1", 4001)


def _python(script: str, code: int = 0) -> str:
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=_environment())
    assert result.returncode == code, result.stderr
    return result.stdout


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}


def _gone(pid: int) -> None:
    with suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait(timeout=SOON)


def test_an_address_by_a_transport_that_hivemind_does_not_know_hides_nobody(tmp_path: Path) -> None:
    hivemind = load_hivemind()
    control = importlib.import_module("hivemind.p2p.p2p_daemon_bindings.control")
    messages = importlib.import_module("hivemind.proto.p2pd_pb2")
    webtransport = bytes.fromhex("047f00000191020fa1cd03d103")  # /ip4/127.0.0.1/udp/4001/quic-v1/webtransport
    good = hivemind.Multiaddr("/ip4/192.0.2.1/tcp/4001")
    peer_id = fresh_identity(tmp_path, "peer").peer_id
    with pytest.raises(ValueError, match="465"):
        str(hivemind.Multiaddr(webtransport))

    news = control.PeerInfo.from_protobuf(messages.PeerInfo(id=peer_id, addrs=[webtransport, good.to_bytes()]))

    assert (news.peer_id.to_bytes(), news.addrs) == (peer_id, [good])


async def test_an_answer_to_a_call_just_given_up_leaves_the_others_their_answers(tmp_path: Path) -> None:
    own, giver = fresh_identity(tmp_path, "own"), fresh_identity(tmp_path, "giver")

    async with opened(giver, Services(handshake=lambda: b"here")) as node, opened(own, NOTHING, node) as other:
        calls = other.daemon.p2p._client.control._pending_calls
        before = set(dict(calls))
        given_up = asyncio.create_task(other.fetch_handshake(giver.peer_id))
        while not (call := next((each for each in calls if each not in before), None)):  # until it was sent
            await asyncio.sleep(0)
        calls[call].cancel()  # hivemind's task learns of it one turn later
        assert call not in calls
        given_up.cancel()
        await asyncio.wait([given_up])
        assert await other.fetch_handshake(giver.peer_id) == b"here"


@pytest.mark.parametrize(
    ("address", "relayed", "route"),
    [
        ("/ip4/192.168.1.7/tcp/4001", False, "lan"), ("/ip6/fe80::1/tcp/4001", False, "lan"),
        ("/ip4/8.8.8.8/udp/4001/quic-v1", False, "direct"), ("/ip4/192.168.1.7/tcp/4001", True, "relay"), ("", True, "relay"),
    ],
)  # fmt: skip
def test_a_peer_is_on_ones_own_network_straight_elsewhere_or_behind_a_relay(address: str, relayed: bool, route: str) -> None:
    assert ConnectedPeer(peer_id=b"peer", address=address, relayed=relayed).route == route
