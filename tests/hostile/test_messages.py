"""Strangers below Waggle's protocol, over a real p2pd: malformed messages of hivemind end, deafen and fill no node."""

import asyncio
import functools
import os
import signal
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from hostile.conftest import honest_one
from network.loopback import SOON, Live, Start, answered, fresh_identity, options, question_ids, share
from waggle.network.messages.events import ReachChanged
from waggle.network.transport.hivemind.call_streams import OpenStreams
from waggle.network.transport.hivemind.network import HivemindNetwork, open_network
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.network.transport.interface import Services
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier

TOO_LONG = 200_000  # bytes: a line of 320 kB in p2pd's log, while Python reads 64
UNREADABLE = b"\xa3\x06\xac\x06"  # the start of one group and the end of another: p2pd accepts it, Python does not
Send = Callable[..., Awaitable[None]]
Hears = Callable[[], Awaitable[Live]]


def delimited(message: bytes) -> bytes:
    """With its length in front, as p2pd and hivemind write to each other."""
    length, written = len(message), b""
    while length > 127:
        written, length = written + bytes([length & 127 | 128]), length >> 7
    return written + bytes([length]) + message


async def one_message(reader: asyncio.StreamReader) -> bytes:
    length = shift = 0
    while True:
        (byte,) = await reader.readexactly(1)
        length, shift = length | (byte & 127) << shift, shift + 7
        if byte < 128:
            return await reader.readexactly(length)


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as exit_stack:
        yield exit_stack


@pytest.fixture
def messages() -> Any:
    load_hivemind()
    from hivemind.proto import p2pd_pb2

    return p2pd_pb2


@pytest.fixture
async def stranger() -> AsyncIterator[Any]:
    """A p2pd without any of Waggle's code above it."""
    p2p = await load_hivemind().P2P.create(host_maddrs=["/ip4/127.0.0.1/tcp/0"], dht_mode="server", nat_port_map=False)
    yield p2p
    await p2p.shutdown()


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let p2pd log what strangers send, as it does by default."""
    monkeypatch.setenv("GOLOG_LOG_LEVEL", "INFO")


@pytest.fixture
async def living(start: Start, seed_address: str) -> AsyncIterator[Live]:
    """A node in a swarm, which must still run at the end."""
    node = await start("living", seeds=(seed_address,))
    running = asyncio.create_task(node.node.run())
    await node.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    yield node
    assert not running.done(), "the node ended"
    running.cancel()
    await asyncio.wait([running])


@pytest.fixture
def still_hears(start: Start, seed_address: str, charter: Charter, verifier: Verifier, living: Live) -> Hears:
    return functools.partial(honest_one, start, seed_address, charter, verifier, living)


def dht_of(live: Live) -> HivemindNetwork:
    door: Any = live.node.transport
    dht: HivemindNetwork = door.network
    return dht


async def call(stranger: Any, living: Live, address: str) -> Any:
    """Connect the stranger; returns the victim's id in p2pd's form."""
    hivemind = load_hivemind()
    peer = hivemind.PeerID(living.identity.peer_id)
    await stranger._client.connect(peer, [hivemind.Multiaddr(address.rsplit("/p2p/", 1)[0])])
    return peer


@pytest.fixture
async def send(stranger: Any, living: Live, messages: Any) -> Send:
    """Write one call as p2pd would."""
    peer = await call(stranger, living, (await living.node.addresses())[0])

    async def sends(served: str, behind: bytes = b"", named: bytes = b"") -> None:
        _, _, writer = await stranger.call_binary_stream_handler(peer, "waggle/greeting")
        call = messages.CallUnaryRequest(peer=b"x", proto=served, data=b"").SerializeToString() + behind
        writer.write(delimited(b"\x0a\x10" + (named or uuid.uuid4().bytes) + b"\x1a" + delimited(call)))
        await writer.drain()
        writer.close()

    return sends


async def test_a_replica_that_names_the_asker_among_its_neighbours_ends_no_announcement(
    living: Live, still_hears: Hears, charter: Charter, verifier: Verifier, tmp_path: Path, stack: AsyncExitStack
) -> None:
    bad = await open_network(options(), fresh_identity(tmp_path, "bad"), Services(), port=0)
    stack.push_async_callback(bad.close)
    protocol: Any = bad._node.protocol
    honest, is_asked = protocol.routing_table.get_nearest_neighbors, asyncio.Event()

    def everybody(query: Any, k: int, exclude: Any = None) -> Any:
        is_asked.set()
        return honest(query, k)

    protocol.routing_table.get_nearest_neighbors = everybody
    await bad.connect((await living.node.addresses())[0])
    known: Any = dht_of(living)._node.protocol.routing_table
    async with asyncio.timeout(SOON):
        while bad._node.node_id not in known:
            await asyncio.sleep(0.01)
    ids = question_ids(charter, verifier, living.identity.peer_id, 1)
    share(living.node, answered(charter, verifier, living.identity.peer_id, ids))
    await asyncio.wait_for(is_asked.wait(), SOON)
    await still_hears()


async def test_a_message_that_holds_no_answer_ends_nobody_who_waits_for_one(
    stranger: Any, living: Live, messages: Any, still_hears: Hears
) -> None:
    is_asked = asyncio.Event()

    async def lie(_info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = messages.PersistentConnectionRequest()
        request.ParseFromString(await one_message(reader))
        answer = messages.PersistentConnectionRequest(callId=request.callId, cancel=messages.Cancel())
        writer.write(delimited(answer.SerializeToString()))
        await writer.drain()
        is_asked.set()

    await stranger.add_binary_stream_handler("DHTProtocol.rpc_ping", lie)
    await call(stranger, living, (await living.node.addresses())[0])
    await asyncio.wait_for(is_asked.wait(), SOON)
    await still_hears()


async def test_a_message_that_cannot_be_read_is_passed_over(send: Send, living: Live, still_hears: Hears) -> None:
    await send("waggle/greeting", UNREADABLE)
    await still_hears()
    assert not dht_of(living).daemon.p2p._client.control._read_task.done()


async def test_lines_too_long_to_read_stop_no_network_process(talkative: None, stranger: Any, living: Live) -> None:
    victim, peer = dht_of(living).daemon.p2p, await call(stranger, living, (await living.node.addresses())[0])
    key = b"/x/".ljust(TOO_LONG, b"A")
    record = b"\x0a" + delimited(key) + b"\x12\x01v"
    request = b"\x08\x00\x12" + delimited(key) + b"\x1a" + delimited(record)  # PUT_VALUE
    for _ in range(3):
        async with asyncio.timeout(SOON):
            _, reader, writer = await stranger.call_binary_stream_handler(peer, "/ipfs/kad/1.0.0")
            writer.write(delimited(request))
            with suppress(OSError):
                await writer.drain()
                await reader.read()  # empty: the call was refused and logged
        writer.close()
    assert not victim._reader_task.done()
    os.kill(victim._child.pid, signal.SIGTERM)
    assert await asyncio.wait_for(victim._child.wait(), SOON) >= 0, "it had to be killed"


async def test_who_hears_nothing_any_more_is_started_again(living: Live, still_hears: Hears) -> None:
    deaf = dht_of(living)
    deaf.daemon.p2p._client.control._read_task.cancel()
    assert await asyncio.wait_for(deaf.daemon.wait_until_exit(), SOON) is not None
    await still_hears()
    assert dht_of(living) is not deaf


async def test_calls_that_nobody_serves_or_that_have_one_name_are_not_kept(
    send: Send, living: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = dht_of(living).daemon.p2p._streams
    served = list[object]()
    admit = OpenStreams.admit
    monkeypatch.setattr(OpenStreams, "admit", lambda self, peer, writer: (served.append(peer), admit(self, peer, writer))[1])
    for number in range(20):
        await send("nobody")
        await send("waggle/greeting", named=bytes([number // 2]) * 16)
    async with asyncio.timeout(SOON):
        while len(served) < 40 or streams._open:
            await asyncio.sleep(0.01)
