"""Gateways: a light client takes part through them, and detects one that lies by signatures and hashes."""

import asyncio
import contextlib
import gc
import gzip
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.protocol import State

from network.loopback import SOON, Ear, Start, answered, callbacks, fresh_identity, node_context, options, question_ids, share
from waggle.core import paths
from waggle.core.errors import CharterError, SwarmError
from waggle.core.peer_id import text_of
from waggle.core.settings import Settings, SwarmSettings
from waggle.engine.services.swarms import swarm_connection
from waggle.network.exchange.collector import RolloutCollector
from waggle.network.exchange.node_context import PeerAccounts
from waggle.network.exchange.pool import GroupPool
from waggle.network.identity.keys import SIGNATURE_BYTES, Identity, verify
from waggle.network.identity.membership import Membership, issue_certificate, new_key, public_key_of
from waggle.network.limits.bandwidth import BandwidthLimiter
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory, gateway_frames
from waggle.network.messages.announcement import LIFETIME_S, Announcement
from waggle.network.messages.consent import CONSENT_BYTES, Holder, is_valid
from waggle.network.messages.events import ClockSkewed, GatewayHidesPeers, GroupsArrived, PeerChanged, ReachChanged
from waggle.network.messages.rollout_record import MAX_BLOB
from waggle.network.node import UPLOAD_BURST, UPLOAD_RATE
from waggle.network.open_node import open_node
from waggle.network.transport.gateway import metered_connection, network
from waggle.network.transport.gateway import server as gateway
from waggle.network.transport.gateway.charter_download import fetch_charter
from waggle.network.transport.gateway.network import GatewayNetwork
from waggle.network.transport.gateway.transport import GatewayTransport
from waggle.network.transport.interface import PeerAway
from waggle.network.web.server import WebServer
from waggle.network.web.statistics import SwarmStatistics
from waggle.tasks import charter as charters
from waggle.tasks.charter import PROTOCOL, Charter
from waggle.tasks.questions import epoch_at
from waggle.tasks.sandbox.verifier import Verifier


async def test_groups_travel_both_ways_through_a_gateway(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier, tmp_path: Path
) -> None:
    lender = await start("lender", seeds=(seed_address,), web_port=0, gateway=True)
    full = await start("full", seeds=(seed_address,))
    address = f"ws://127.0.0.1:{lender.node.web.port}/gateway"
    ear, own = Ear(), fresh_identity(tmp_path, "light")
    node = open_node(options(gateways=(address,), light=True), charter, own, verifier, ear)
    try:
        await node.start()
        result = await ear.hear(ReachChanged, lambda news: news.reach == "connected")
        assert result.way == "gateway"
        with pytest.raises(PeerAway):  # it has no network process
            _ = node.transport.pid

        mine = answered(charter, verifier, own.peer_id, question_ids(charter, verifier, own.peer_id, 1))
        theirs = answered(charter, verifier, full.identity.peer_id, question_ids(charter, verifier, full.identity.peer_id, 1))
        share(node, mine)
        share(full.node, theirs)

        arrived = await full.ear.hear(GroupsArrived, lambda news: news.origin == own.peer_id)
        assert [each.group for each in arrived.groups] == mine
        arrived = await ear.hear(GroupsArrived, lambda news: news.origin == full.identity.peer_id)
        assert [each.group for each in arrived.groups] == theirs
        await lender.ear.hear(GroupsArrived, lambda news: news.origin == own.peer_id)
        lent = answered(charter, verifier, lender.identity.peer_id, question_ids(charter, verifier, lender.identity.peer_id, 1))
        share(lender.node, lent)
        await ear.hear(GroupsArrived, lambda news: news.origin == lender.identity.peer_id)
        for sender, receiver in ((lender.node, own), (node, lender.identity)):  # what goes by a gateway is shown as well
            assert any((messages.kind, messages.to) == ("groups", receiver.peer_id) for messages in sender.outbox.newest())

        home = paths.Home(tmp_path / "home").prepare()
        chosen = Settings(swarm=SwarmSettings(charter=charter.digest.hex(), gateways=(address,), light=True))
        assert await swarm_connection.charter_of(home, chosen) == charter
        with pytest.raises(CharterError):
            await fetch_charter(options(gateways=(address,)), own, bytes(32))
    finally:
        await node.close()


async def test_before_a_gateway_answers_a_node_has_no_address_and_goes_on(
    charter: Charter, verifier: Verifier, tmp_path: Path
) -> None:
    chosen = options(gateways=("ws://127.0.0.1:9/gateway",), light=True)
    node = open_node(chosen, charter, fresh_identity(tmp_path, "light"), verifier, Ear())
    try:
        await node.start()
        assert await node.addresses() == []
    finally:
        await node.close()


async def test_a_gateway_lets_in_only_whoever_signs_with_its_own_key(start: Start, charter: Charter, tmp_path: Path) -> None:
    lender = await start("lender", web_port=0, gateway=True)
    address = f"ws://127.0.0.1:{lender.node.web.port}/gateway"
    own, other = fresh_identity(tmp_path, "own"), fresh_identity(tmp_path, "other")

    async def first_word(make: object) -> bytes:
        async with connect(address) as connection:
            welcome = msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Welcome)
            assert (welcome.charter, welcome.peer_id) == (charter.digest, lender.identity.peer_id)
            await connection.send(make(welcome))  # type: ignore[operator]
            return bytes(await connection.recv())  # type: ignore[arg-type]

    def hello(welcome: gateway_frames.Welcome, *, signer: Identity, to: bytes) -> bytes:
        return msgspec.msgpack.encode(
            gateway_frames.Hello(own.peer_id, b"", signer.sign(gateway_frames.DOMAIN, to + welcome.nonce))
        )

    messages: list[bytes] = []

    def honest(welcome: gateway_frames.Welcome) -> bytes:
        messages.append(hello(welcome, signer=own, to=welcome.peer_id))
        return messages[-1]

    proof = await first_word(honest)
    signature = msgspec.msgpack.decode(messages[0], type=gateway_frames.Hello).signature
    assert verify(lender.identity.peer_id, gateway_frames.PROOF, signature, proof), "it shows that its key is its own, too"
    wrong = (
        lambda welcome: hello(welcome, signer=other, to=welcome.peer_id),
        lambda welcome: hello(welcome, signer=own, to=other.peer_id),  # passed on by another gateway
        lambda welcome: b"",
        lambda welcome: b"\xc1",
        lambda welcome: b"\x91" * 1000,
    )
    for make in wrong:
        with pytest.raises(ConnectionClosed):
            await first_word(make)
    wrongly = options(gateways=("http://example.org",))
    node = GatewayTransport(wrongly, own, callbacks(own, Ear(), charter))
    with pytest.raises(SwarmError, match="no gateway's address"):
        await node.start()


@asynccontextmanager
async def lending(
    charter: Charter, lender: Identity, key: bytes = b"", *, handshake_s: float = gateway.HANDSHAKE_S, **changes: object
) -> AsyncIterator[tuple[str, gateway.GatewayServer]]:
    """A gateway of an empty swarm, and its address."""

    async def nobody(*_: object) -> dict[bytes, bytes]:
        return {}

    ways: dict[str, Any] = {
        "read_directory": nobody, "announce": nobody, "pull": nobody, "admits": lambda peer_id: True,
        "serve_payload": lambda client, source, sha256, blob: blob, "may_receive": lambda source, size: True,
        "may_send_directory": lambda source, size: True, **changes,
    }  # fmt: skip
    host = gateway.HostNode(**ways)
    record = gateway.GatewayServer(charter.digest, lender, Membership(charter, lender.peer_id, key), host, handshake_s)
    web = WebServer(lambda: SwarmStatistics(charter).status(()), record.serve, charters.encode(charter))
    await web.start("127.0.0.1", 0)
    try:
        yield f"ws://127.0.0.1:{web.port}/gateway", record
    finally:
        async with asyncio.timeout(SOON):  # whoever is being served must not hold it up
            await web.close()


async def introduce(connection: ClientConnection, who: Identity) -> None:
    welcome = msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Welcome)
    signature = who.sign(gateway_frames.DOMAIN, welcome.peer_id + welcome.nonce)
    await connection.send(msgspec.msgpack.encode(gateway_frames.Hello(who.peer_id, b"", signature)))


async def test_who_leaves_while_it_is_let_in_takes_nobodys_place(charter: Charter, identity: Identity, tmp_path: Path) -> None:
    async with lending(charter, fresh_identity(tmp_path, "lender")) as (address, lent):
        async with connect(address) as connection:
            await introduce(connection, identity)  # and goodbye, before the gateway can answer
        async with connect(address) as connection, asyncio.timeout(SOON):
            await introduce(connection, fresh_identity(tmp_path, "second"))
            assert len(await connection.recv()) == SIGNATURE_BYTES
            assert identity.peer_id not in lent._clients


async def test_a_gateway_waits_for_no_stranger_and_serves_nobody_who_is_blocked(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    blocked: set[bytes] = set()
    lender = fresh_identity(tmp_path, "lender")
    async with (
        lending(charter, lender, handshake_s=0.2) as (address, _),
        connect(address) as connection,
        asyncio.timeout(SOON),
    ):
        await connection.recv()
        with pytest.raises(ConnectionClosed):  # it has said nothing
            await connection.recv()
    async with (
        lending(charter, lender, admits=lambda peer: peer not in blocked) as (address, _),
        connect(address) as connection,
        asyncio.timeout(SOON),
    ):
        await introduce(connection, identity)
        assert len(await connection.recv()) == SIGNATURE_BYTES
        await connection.send(msgspec.msgpack.encode(gateway_frames.DirectoryRequest(1)))
        assert msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Response) == gateway_frames.Response(1)
        blocked.add(identity.peer_id)
        await connection.send(msgspec.msgpack.encode(gateway_frames.DirectoryRequest(2)))
        with pytest.raises(ConnectionClosed):
            await connection.recv()


async def test_a_gateway_closes_while_it_serves_and_answers_no_page_of_elsewhere(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    requests = asyncio.Event()

    async def never() -> dict[bytes, bytes]:
        requests.set()
        return await asyncio.get_running_loop().create_future()

    async with lending(charter, fresh_identity(tmp_path, "lender"), read_directory=never) as (address, _):
        with pytest.raises(InvalidStatus):  # as a browser sends it for the script of some page
            await connect(address, origin="https://example.org")  # type: ignore[arg-type]
        connection = await connect(address)
        await introduce(connection, identity)
        await connection.recv()
        await connection.send(msgspec.msgpack.encode(gateway_frames.DirectoryRequest(1)))
        await requests.wait()
    await connection.close()


async def test_who_asks_too_much_waits_for_its_answers(charter: Charter, identity: Identity, tmp_path: Path) -> None:
    async with lending(charter, fresh_identity(tmp_path, "lender")) as (address, _), connect(address) as connection:
        await introduce(connection, identity)
        await connection.recv()
        asks = [gateway_frames.DirectoryRequest(number) for number in range(int(gateway.ASKS_BURST) + 5)]
        for each in asks:
            await connection.send(msgspec.msgpack.encode(each))
        async with asyncio.timeout(SOON):
            answers = [msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Response).id for _ in asks]
        assert answers == [each.id for each in asks]


async def test_newcomers_push_out_no_payload_of_a_client(charter: Charter, identity: Identity, tmp_path: Path) -> None:
    async with lending(charter, fresh_identity(tmp_path, "lender")) as (address, lent), connect(address) as connection:
        await introduce(connection, identity)
        await connection.recv()
        await connection.send(msgspec.msgpack.encode(gateway_frames.UploadRequest(1, b"mine")))
        await connection.recv()
        for i in range(gateway.MAX_CLIENTS + 1):
            lent._store(bytes([i]), b"theirs")
        assert lent.uploaded(hashlib.sha256(b"mine").digest()) == b"mine"
        assert len(lent._uploads) == gateway.MAX_CLIENTS


async def test_who_sends_more_than_its_quota_is_read_no_further(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "BYTES_BURST", 1.0)
    monkeypatch.setattr(gateway, "BYTES_RATE", 1.0)
    async with lending(charter, fresh_identity(tmp_path, "lender")) as (address, lent), connect(address) as connection:
        await introduce(connection, identity)
        await connection.recv()
        large = msgspec.msgpack.encode(gateway_frames.UploadRequest(1, bytes(gateway.MAX_BLOB)))

        async def flood() -> None:
            for _ in range(20):
                await connection.send(large)

        flooding, here = asyncio.create_task(flood()), lent._clients[identity.peer_id]
        async with asyncio.timeout(SOON):
            while not here.recv_messages.paused:
                await asyncio.sleep(0.01)
        assert len(here.recv_messages.frames) == 1
        flooding.cancel()
        connection.transport.abort()


async def test_all_clients_of_one_address_range_send_no_more_than_its_share(
    charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_source", lambda connection: "8.8.4.0/24")
    monkeypatch.setattr(gateway, "BYTES_BURST", 5_000.0)
    monkeypatch.setattr(gateway, "BYTES_RATE", 50_000.0)
    clients, pieces, size = 8, 10, 4_000

    async def leave(connection: ClientConnection) -> None:
        for number in range(pieces):
            await connection.send(msgspec.msgpack.encode(gateway_frames.UploadRequest(number, os.urandom(size))))
        for _ in range(pieces):
            assert len(msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Response).blob) == CONSENT_BYTES

    async with lending(charter, fresh_identity(tmp_path, "lender")) as (address, _), contextlib.AsyncExitStack() as stack:
        here = [await stack.enter_async_context(connect(address)) for _ in range(clients)]
        for number, connection in enumerate(here):
            await introduce(connection, fresh_identity(tmp_path, str(number)))
            await connection.recv()
        began = time.monotonic()
        async with asyncio.timeout(SOON):
            await asyncio.gather(*map(leave, here))
        took = time.monotonic() - began
    assert clients * pieces * size <= gateway.RANGE * (gateway.BYTES_BURST + gateway.BYTES_RATE * took)


async def test_what_a_client_leaves_waits_where_the_limit_that_the_person_set_is_used_up_and_its_questions_do_not(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    requests: list[int] = []

    def take(_source: bytes, size: int) -> bool:
        requests.append(size)
        return len(requests) > 3

    lender = fresh_identity(tmp_path, "lender")
    async with (
        lending(charter, lender, may_receive=take) as (address, lent),
        connect(address) as connection,
        asyncio.timeout(SOON),
    ):
        await introduce(connection, identity)
        await connection.recv()
        await connection.send(msgspec.msgpack.encode(gateway_frames.DirectoryRequest(1)))
        await connection.recv()
        assert requests == []
        await connection.send(msgspec.msgpack.encode(gateway_frames.UploadRequest(2, b"mine")))
        assert len(msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Response).blob) == CONSENT_BYTES
        assert len(requests) == 4
        assert lent.uploaded(hashlib.sha256(b"mine").digest()) == b"mine"


async def blob_of(connection: ClientConnection, question: gateway_frames.Request) -> bytes:
    await connection.send(msgspec.msgpack.encode(question))
    async with asyncio.timeout(SOON):
        return msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Response).blob


@asynccontextmanager
async def clients(address: str, folder: Path, count: int) -> AsyncIterator[list[tuple[Identity, ClientConnection]]]:
    """`count` clients that are connected to a gateway."""
    async with contextlib.AsyncExitStack() as stack:
        here = [
            (fresh_identity(folder, f"client {number}"), await stack.enter_async_context(connect(address)))
            for number in range(count)
        ]
        for who, connection in here:
            await introduce(connection, who)
            await connection.recv()
        yield here


@pytest.mark.parametrize(("times", "second"), [(1e9, b"payload"), (1.0, b"")])
async def test_a_client_leaves_others_their_part_of_what_a_peer_gives_and_all_clients_the_gateway_its_own(
    charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: float, second: bytes
) -> None:
    assert gateway.ALL * gateway.PASSED_RATE <= UPLOAD_RATE / 2
    assert gateway.ALL * gateway.PASSED_BURST <= UPLOAD_BURST / 2
    for name, value in {"PASSED_RATE": 0.0, "PASSED_BURST": 1.0, "ALL": times, "PATIENCE_S": 0.0}.items():
        monkeypatch.setattr(gateway, name, value)
    blob, lender, first, other = b"payload", fresh_identity(tmp_path, "lender"), bytes([1]) * 38, bytes([2]) * 38

    async def pull(_peer_id: bytes, _sha256: bytes, _seconds: float) -> bytes:
        return blob

    async with lending(charter, lender, pull=pull) as (address, _), clients(address, tmp_path, 2) as ((_, greedy), (_, modest)):

        def of(peer_id: bytes) -> gateway_frames.PullRequest:
            return gateway_frames.PullRequest(1, peer_id, hashlib.sha256(blob).digest())

        assert [await blob_of(greedy, of(first)) for _ in range(2)] == [blob, b""]
        assert await blob_of(modest, of(first)) == second
        assert await blob_of(greedy, of(other)) == blob
        assert [await blob_of(greedy, of(lender.peer_id)) for _ in range(2)] == [blob, blob], "what is ours we need not ask for"


async def test_many_clients_that_want_a_payload_at_once_get_it_one_after_another(
    charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "PATIENCE_S", SOON)
    monkeypatch.setattr(gateway, "PASSED_RATE", 0.0)
    payloads, pulling = asyncio.Event(), 0

    async def pull(_peer_id: bytes, _sha256: bytes, _seconds: float) -> bytes:
        nonlocal pulling
        pulling += 1
        await payloads.wait()
        return b"payload"

    lender, origin = fresh_identity(tmp_path, "lender"), bytes(38)
    ask = gateway_frames.PullRequest(1, origin, hashlib.sha256(b"payload").digest())
    async with lending(charter, lender, pull=pull) as (address, lent), clients(address, tmp_path, 12) as here:
        asking = asyncio.gather(*(blob_of(connection, ask) for _, connection in here))
        async with asyncio.timeout(SOON):
            while pulling < gateway.ALL * gateway.PASSED_BURST / gateway.MAX_BLOB:
                await asyncio.sleep(0.01)
        assert not lent._passed.has((b"another", origin)), "each counts as the largest until it is here"
        payloads.set()
        assert await asking == [b"payload"] * 12


async def accept(*_: object) -> bool:
    return True


def announcing(charter: Charter, who: Identity) -> gateway_frames.AnnounceRequest:
    messages = Announcement(
        charter=charter.digest, sha256=bytes(32), size=1, round=1, epoch=epoch_at(time.time()), specialties=1, model="m",
        expires=int((time.time() + 200) * 1000),
    )  # fmt: skip
    return gateway_frames.AnnounceRequest(1, announcements.signed(messages, who))


async def test_one_address_range_that_comes_under_ever_new_names_has_no_more_of_them_announced_than_it_may_have_clients(
    charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "MAX_FROM_ONE", 2)
    monkeypatch.setattr(gateway, "_source", lambda connection: connection.request.path.partition("?")[2])

    async def announced(name: str, range_: str) -> bool:
        who = fresh_identity(tmp_path, name)
        async with connect(f"{address}?{range_}") as connection, asyncio.timeout(SOON):
            await introduce(connection, who)
            await connection.recv()
            return await blob_of(connection, announcing(charter, who)) == gateway.DONE

    async with lending(charter, fresh_identity(tmp_path, "lender"), announce=accept) as (address, _):
        assert [await announced(f"crowd {i}", "8.8.4.0/24") for i in range(4)] == [True, True, False, False]
        assert await announced("crowd 1", "8.8.4.0/24"), "once more, before it is over"
        assert await announced("elsewhere", "8.8.8.0/24")
        assert all([await announced(f"home {i}", "") for i in range(3)])


@pytest.mark.parametrize(("source", "received"), [("", 4), ("8.8.4.0/24", 0)])
async def test_a_client_announces_so_often_and_leaves_others_their_part_but_for_those_of_its_range(
    charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, received: int
) -> None:
    monkeypatch.setattr(gateway, "_source", lambda connection: source)
    monkeypatch.setattr(gateway, "ANNOUNCES_RATE", 0.0)
    monkeypatch.setattr(gateway, "ANNOUNCES_BURST", 0.5)  # of all, 4

    lender = fresh_identity(tmp_path, "lender")
    async with lending(charter, lender, announce=accept) as (address, _), clients(address, tmp_path, 6) as here:
        done = [await blob_of(connection, announcing(charter, who)) for who, connection in [here[0], here[0], *here[1:]]]
    assert done[:2] == [gateway.DONE, b""]
    assert done[2:] == [*[gateway.DONE] * received, *[b""] * (5 - received)]


async def test_a_gateway_holds_so_much_in_all_and_whoever_holds_most_loses_its_oldest(
    charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "MAX_UPLOADED", 1000)
    async with lending(charter, fresh_identity(tmp_path, "lender")) as (_, lent):
        lent._store(b"honest", b"mine")
        for number in range(9):
            lent._store(bytes([number % 3]), bytes([number]) * 300)
        assert lent.uploaded(hashlib.sha256(b"mine").digest()) == b"mine"
        assert lent.uploaded(hashlib.sha256(b"\x08" * 300).digest())
        assert sum(len(blob) for each in lent._uploads.values() for blob in each.values()) == 904


async def test_the_charter_is_asked_of_the_next_gateway_where_one_lies(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        packed = gzip.compress(charters.encode(charter))
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + packed)
        writer.close()

    liar = await asyncio.start_server(lie, "127.0.0.1", 0)
    async with liar, lending(charter, fresh_identity(tmp_path, "lender")) as (address, _):
        wrong = f"ws://127.0.0.1:{liar.sockets[0].getsockname()[1]}/gateway"
        assert await fetch_charter(options(gateways=(wrong, address)), identity, charter.digest) == charter
        with pytest.raises(CharterError):
            await fetch_charter(options(gateways=(wrong,)), identity, charter.digest)


def announced(swarm: Charter, **changes: object) -> Announcement:
    now = time.time()
    fields: dict[str, object] = {
        "charter": swarm.digest, "sha256": bytes(32), "size": 9, "round": 1, "epoch": epoch_at(now), "specialties": 1,
        "model": "m", "expires": int((now + 200) * 1000), **changes,
    }  # fmt: skip
    return Announcement(**fields)  # type: ignore[arg-type]


async def test_what_a_lying_gateway_makes_up_is_not_believed(identity: Identity, charter: Charter, tmp_path: Path) -> None:
    origin = fresh_identity(tmp_path, "origin")
    true = announcements.signed(announced(charter), origin)
    lies = (
        gateway_frames.DirectoryEntry(origin.peer_id, true),
        gateway_frames.DirectoryEntry(fresh_identity(tmp_path, "victim").peer_id, true),
        gateway_frames.DirectoryEntry(identity.peer_id, announcements.signed(announced(charter, charter=bytes(32)), identity)),
        gateway_frames.DirectoryEntry(identity.peer_id, announcements.signed(announced(charter, expires=1), identity)),
        gateway_frames.DirectoryEntry(identity.peer_id, b"x"),
    )

    async def lie(connection: ServerConnection) -> None:
        await connection.send(msgspec.msgpack.encode(gateway_frames.Welcome(PROTOCOL, origin.peer_id, charter.digest, bytes(32))))
        hello = msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Hello)
        await connection.send(origin.sign(gateway_frames.PROOF, hello.signature))
        with contextlib.suppress(ConnectionClosed):
            async for message in connection:
                ask = msgspec.msgpack.decode(message, type=gateway_frames.Request)
                listed = lies if isinstance(ask, gateway_frames.DirectoryRequest) else ()
                await connection.send(msgspec.msgpack.encode(gateway_frames.Response(ask.id, b"made up", listed)))

    ear = Ear()
    async with serve(lie, "127.0.0.1", 0) as server:
        address = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/gateway"
        node = GatewayTransport(options(gateways=(address,)), identity, callbacks(identity, ear, charter))
        try:
            await node.start()
            await ear.hear(ReachChanged, lambda news: news.reach == "connected")
            assert await node.network.read_directory("") == {origin.peer_id: true}
            assert await node.network.pull(origin.peer_id, bytes(32), 1.0) == b""
            assert await node.network.pull(origin.peer_id, hashlib.sha256(b"made up").digest(), 1.0) == b"made up"
            with pytest.raises(PeerAway):
                await node.network.upload(bytes(32), b"mine")
        finally:
            await node.close()


async def test_a_gateway_that_says_what_nobody_asked_is_left_and_one_that_is_late_is_not(
    identity: Identity, charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "CALL_S", 0.5)
    lender, ear, remaining = fresh_identity(tmp_path, "lender"), Ear(), asyncio.Event()
    requests, goes_on = asyncio.Queue[gateway_frames.Request](), asyncio.Event()

    async def say(connection: ServerConnection) -> None:
        await connection.send(msgspec.msgpack.encode(gateway_frames.Welcome(PROTOCOL, lender.peer_id, charter.digest, bytes(32))))
        hello = msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Hello)
        await connection.send(lender.sign(gateway_frames.PROOF, hello.signature))
        late = msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Request)
        await goes_on.wait()
        await connection.send(msgspec.msgpack.encode(gateway_frames.Response(late.id)))
        requests.put_nowait(msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Request))
        with contextlib.suppress(ConnectionClosed):
            await connection.send(msgspec.msgpack.encode(gateway_frames.Response(late.id, b"again")))
            await connection.recv()
        remaining.set()

    async with serve(say, "127.0.0.1", 0) as server:
        address = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/gateway"
        admission = Membership(charter, identity.peer_id)
        node = GatewayTransport(options(gateways=(address,)), identity, callbacks(identity, ear, charter, membership=admission))
        try:
            await node.start()
            await ear.hear(ReachChanged, lambda news: news.reach == "connected")
            with pytest.raises(PeerAway):  # it takes too long
                await node.network.read_directory("")
            goes_on.set()
            with pytest.raises(PeerAway):
                await node.network.read_directory("")
            async with asyncio.timeout(SOON):
                await requests.get()  # a late answer was no reason to leave
                await remaining.wait()
        finally:
            goes_on.set()
            await node.close()


class Counted(BandwidthLimiter):
    """Records what the directory was charged with, and what was sent."""

    came = bytes_sent = 0

    def charge_directory(self, size: int) -> None:
        self.came += size

    def count_sent(self, receiver: bytes, size: int) -> None:
        super().count_sent(receiver, size)
        self.bytes_sent += size


async def test_what_goes_to_gateways_and_comes_from_them_is_counted_and_held_to_the_limit(
    charter: Charter, verifier: Verifier, identity: Identity, tmp_path: Path
) -> None:
    origin = fresh_identity(tmp_path, "origin")
    known = {origin.peer_id: announcements.signed(announced(charter), origin)}

    async def listed() -> dict[bytes, bytes]:
        return known

    async with (
        lending(charter, fresh_identity(tmp_path, "one"), read_directory=listed) as (first, _),
        lending(charter, fresh_identity(tmp_path, "two"), read_directory=listed) as (two, _),
    ):
        traffic, ear, member = Counted(), Ear(), Membership(charter, identity.peer_id)
        chosen = options(gateways=(first, two))
        node = GatewayTransport(chosen, identity, callbacks(identity, ear, charter, membership=member, bandwidth=traffic))
        try:
            await node.start()
            await ear.hear(ReachChanged, lambda news: news.peers == 2)
            context = node_context(identity, charter, verifier, options=chosen, report=ear)
            gathering = RolloutCollector(context, PeerAccounts(bandwidth=traffic), GroupPool(charter), directory.DirectoryDepth())
            assert (await gathering._read(node)).keys() == known.keys()
            assert traffic.came == 2 * sum(len(peer_id) + len(signed) for peer_id, signed in known.items())

            traffic.limit = 50_000.0
            began, blob = time.monotonic(), bytes(10_000)
            for sha256 in (bytes(32), bytes([1] * 32)):
                for _ in range(2):  # what is there already is not sent again
                    assert len(await node.network.upload(sha256, blob)) == 2
            assert time.monotonic() - began >= 3 * len(blob) / traffic.limit, "the first goes at once"
            assert traffic.bytes_sent == 4 * len(blob)
        finally:
            await node.close()


async def test_groups_are_left_with_the_gateway_that_takes_them(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def give(*_: object) -> bytes:
        return b"theirs"

    silent, good = ([fresh_identity(tmp_path, f"{kind} {i}") for i in range(2)] for kind in ("silent", "good"))
    ways = [(each, {"may_receive": lambda source, size: False}) for each in silent] + [(each, {"pull": give}) for each in good]
    async with contextlib.AsyncExitStack() as stack:
        addresses = [(await stack.enter_async_context(lending(charter, who, **way)))[0] for who, way in ways]
        chosen, member, ear = options(gateways=tuple(addresses)), Membership(charter, identity.peer_id), Ear()
        node = GatewayTransport(chosen, identity, callbacks(identity, ear, charter, membership=member))
        stack.push_async_callback(node.close)
        await node.start()
        await ear.hear(ReachChanged, lambda news: news.peers == len(ways))
        node.network.open = {address: node.network.open[address] for address in addresses}  # the silent ones first
        holders, takers = set[Holder](), {each.peer_id for each in good}
        monkeypatch.setattr(network, "CALL_S", 2.0)
        for _ in range(3):  # the first time, but where this computer has much else to do
            with contextlib.suppress(PeerAway):
                holders |= set(await node.network.upload(bytes(32), b"mine"))
        assert {holder.peer_id for holder in holders} == takers
        until = time.time() + LIFETIME_S
        assert all(is_valid(each.consent, each.peer_id, charter.digest, identity.peer_id, until) for each in holders)

        monkeypatch.setattr(network, "CALL_S", 10.0)
        missed = [each.missed for each in node.network.open.values()]
        assert all(missed[:2])
        assert {holder.peer_id for holder in await node.network.upload(bytes([1] * 32), b"mine")} == takers
        for number in range(5):
            assert await node.network.pull(bytes([number] * 38), hashlib.sha256(b"theirs").digest(), 1.0) == b"theirs"
        assert [each.missed for each in node.network.open.values()] == missed, "the silent ones are not asked any more"


async def test_where_two_gateways_leave_a_payload_unanswered_it_goes_to_no_third_one(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = set[int]()
    async with contextlib.AsyncExitStack() as stack:
        ways = [{"may_receive": lambda size, number=number: bool(reached.add(number))} for number in range(4)]
        silent = [lending(charter, fresh_identity(tmp_path, str(number)), **way) for number, way in enumerate(ways)]
        addresses = [(await stack.enter_async_context(each))[0] for each in silent]
        chosen, member, ear = options(gateways=tuple(addresses)), Membership(charter, identity.peer_id), Ear()
        node = GatewayTransport(chosen, identity, callbacks(identity, ear, charter, membership=member))
        stack.push_async_callback(node.close)
        await node.start()
        await ear.hear(ReachChanged, lambda news: news.peers == len(addresses))
        monkeypatch.setattr(network, "CALL_S", 0.5)
        with pytest.raises(PeerAway):
            await node.network.upload(bytes(32), b"mine")
        assert len(reached) <= 2
        assert [each.missed for each in node.network.open.values()].count(0) == 2


async def test_a_question_left_unanswered_is_forgotten_after_a_while_and_not_counted_where_our_way_is_full(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        address, lent = await stack.enter_async_context(lending(charter, fresh_identity(tmp_path, "lender")))
        member, ear = Membership(charter, identity.peer_id), Ear()
        node = GatewayTransport(options(gateways=(address,)), identity, callbacks(identity, ear, charter, membership=member))
        stack.push_async_callback(node.close)
        await node.start()
        await ear.hear(ReachChanged, lambda news: news.peers == 1)
        (gate,), here = node.network.open.values(), lent._clients[identity.peer_id].transport
        here.pause_reading()  # it has fallen asleep
        monkeypatch.setattr(network, "CALL_S", 0.5)
        with pytest.raises(PeerAway):
            await gate.ask(gateway_frames.DirectoryRequest)
        assert gate.missed
        monkeypatch.setattr(network, "FORGET_S", 0.0)
        assert not gate.missed

        monkeypatch.setattr(network, "FORGET_S", SOON)
        gate._missed_at = 0.0
        while not gate._websocket.paused:
            with contextlib.suppress(PeerAway):
                await gate.ask(lambda number: gateway_frames.UploadRequest(number, bytes(MAX_BLOB)))
        gate._missed_at = 0.0
        with pytest.raises(PeerAway):
            await gate.ask(gateway_frames.DirectoryRequest)
        assert not gate.missed
        here.abort()


def test_a_gateway_that_goes_on_hiding_members_is_told_of_once(identity: Identity, charter: Charter) -> None:
    ear = Ear()
    requests = GatewayNetwork(charter.digest, Membership(charter, identity.peer_id), ear)
    many = {bytes([i]): b"" for i in range(10)}
    for _ in range(network.HIDES - 1):
        requests._compare({"one": many, "two": {}})
    requests._compare({"one": many, "two": many})  # it was only late
    assert ear.news == []
    for _ in range(network.HIDES + 2):
        requests._compare({"one": many, "two": {b"\0": b""}})
    assert ear.news == [GatewayHidesPeers(address="two", listed=1, known=10)]


RIGHT = [230.0, 260.0, 290.0]  # seconds that announcements last yet


@pytest.mark.parametrize(
    ("first", "two", "off"),
    [
        ([each - 600 for each in RIGHT], (), -600.0),
        ([each + 600 for each in RIGHT], (), 600.0),
        ([-340.0], (), -600.0),
        ([40.0, 80.0, 290.0], (), None),
        ([-400.0, 200.0], (), None),
        ([], (), None),
        ([each - 600 for each in RIGHT], ([each - 3000 for each in RIGHT],), -600.0),
        ([each - 600 for each in RIGHT], (RIGHT,), None),
    ],
    ids=[
        "fast",
        "slow",
        "fast in a swarm of two",
        "most have left",
        "half of it is over",
        "nobody",
        "two gateways",
        "one of two shows what is over",
    ],
)
async def test_by_what_gateways_show_a_light_client_is_told_that_its_clock_is_off(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    first: list[float], two: tuple[list[float], ...], off: float | None,
) -> None:  # fmt: skip
    monkeypatch.setattr(network, "LATE_S", SOON)

    def shows(remaining: list[float]) -> object:
        lasts = {fresh_identity(tmp_path, f"origin {number}"): each for number, each in enumerate(remaining)}
        now, lasts[identity] = time.time(), 260.0  # our own, by our own clock

        async def listed() -> dict[bytes, bytes]:
            return {
                who.peer_id: announcements.signed(announced(charter, expires=int((now + each) * 1000)), who)
                for who, each in lasts.items()
            }

        return listed

    async with contextlib.AsyncExitStack() as stack:
        lent = [
            lending(charter, fresh_identity(tmp_path, f"lender {number}"), read_directory=shows(remaining))
            for number, remaining in enumerate((first, *two))
        ]
        addresses = tuple([(await stack.enter_async_context(each))[0] for each in lent])
        ear, member = Ear(), Membership(charter, identity.peer_id)
        node = GatewayTransport(options(gateways=addresses), identity, callbacks(identity, ear, charter, membership=member))
        stack.push_async_callback(node.close)
        await node.start()
        await ear.hear(ReachChanged, lambda news: news.peers == len(addresses))
        for _ in range(2):
            await node.network.read_directory("")
    news = [news.seconds for news in ear.all(ClockSkewed)]
    assert news == ([] if off is None else [pytest.approx(off, abs=SOON)])


async def test_a_gateway_that_falls_silent_does_not_hold_up_the_others(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    async def never() -> dict[bytes, bytes]:
        return await asyncio.get_running_loop().create_future()

    origin = fresh_identity(tmp_path, "origin")
    known = {origin.peer_id: announcements.signed(announced(charter), origin)}

    async def all_of_them() -> dict[bytes, bytes]:
        return known

    async with (
        lending(charter, fresh_identity(tmp_path, "silent"), read_directory=never) as (silent, _),
        lending(charter, fresh_identity(tmp_path, "open"), read_directory=all_of_them) as (other, _),
    ):
        chosen, ear = options(gateways=(silent, other)), Ear()
        node = GatewayTransport(chosen, identity, callbacks(identity, ear, charter))
        try:
            await node.start()
            await ear.hear(ReachChanged, lambda news: news.peers == 2)
            async with asyncio.timeout(network.CALL_S - 1):
                assert await node.network.read_directory("") == known
        finally:
            await node.close()


async def test_two_addresses_of_one_gateway_are_one_way_that_stays_open(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lender, ear, visits = fresh_identity(tmp_path, "lender"), Ear(), asyncio.Queue[None]()
    greet = gateway.GatewayServer._shake_hands

    async def counted(self: gateway.GatewayServer, connection: ServerConnection) -> tuple[bytes, bytes, bytes]:
        visits.put_nowait(None)
        return await greet(self, connection)

    monkeypatch.setattr(gateway.GatewayServer, "_shake_hands", counted)
    async with lending(charter, lender) as (address, _), asyncio.timeout(SOON):
        chosen = options(gateways=(address, f"{address}#{text_of(lender.peer_id)}", address))
        node = GatewayTransport(chosen, identity, callbacks(identity, ear, charter))
        try:
            await node.start()
            for _ in range(4):  # both at once, and whichever was closed again
                await visits.get()
            news, open_ = len(ear.news), dict(node.network.open)
            for _ in range(6):
                await visits.get()
            assert node.network.open == open_
            assert len(open_) == 1
            assert ear.news[news:] == []
        finally:
            await node.close()


@asynccontextmanager
async def saying(first: bytes, then: Callable[[bytes], bytes]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that sends these two messages to every client, and the messages that it receives."""
    received: list[bytes] = []

    async def say(connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            await connection.send(first)
            async for message in connection:
                received.append(bytes(message))  # type: ignore[arg-type]
                await connection.send(then(received[0]))

    async with serve(say, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/gateway", received


async def reached(address: str, swarm: Charter, who: Identity, key: bytes = b"") -> str:
    """Whether a gateway admits a light client, and the client accepts the gateway."""
    ear = Ear()
    chosen, member = options(gateways=(address,), rejoin=SOON), Membership(swarm, who.peer_id, key)
    node = GatewayTransport(chosen, who, callbacks(who, ear, swarm, membership=member))
    try:
        await node.start()
        return (await ear.hear(ReachChanged, lambda news: news.reach != "connecting")).reach
    finally:
        await node.close()


async def test_a_gateway_without_the_key_of_a_private_swarm_is_told_nothing(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    key, outsider, member = new_key(), fresh_identity(tmp_path, "outsider"), fresh_identity(tmp_path, "member")
    private = msgspec.structs.replace(charter, admission=public_key_of(key))

    def welcome(*certificate: bytes) -> bytes:
        return msgspec.msgpack.encode([charters.PROTOCOL, outsider.peer_id, private.digest, bytes(32), "9.0", *certificate])

    def prove(hello: bytes) -> bytes:
        signature = msgspec.msgpack.decode(hello, type=gateway_frames.Hello).signature
        return outsider.sign(gateway_frames.PROOF, signature)

    until = time.time() + 3600
    anothers = welcome(issue_certificate(key, private.digest, member.peer_id, until))
    made_up = welcome(issue_certificate(new_key(), private.digest, outsider.peer_id, until))
    for first in (welcome(), welcome(b""), anothers, made_up):
        async with saying(first, prove) as (address, received):
            assert await reached(address, private, identity, key) == "alone"
            assert received == []
    async with lending(private, member, key) as (address, _):
        assert await reached(address, private, identity, key) == "connected"


async def test_what_a_client_and_a_member_once_said_opens_no_second_door_for_whoever_heard_it(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    key, messages = new_key(), list[bytes]()
    private = msgspec.structs.replace(charter, admission=public_key_of(key))

    async def listen(client: ServerConnection) -> None:
        async with connect(address) as member:
            for hears, says in ((client, member), (member, client), (client, member)):
                messages.append(bytes(await says.recv()))  # type: ignore[arg-type]
                await hears.send(messages[-1])
            await client.wait_closed()

    member = fresh_identity(tmp_path, "member")
    async with lending(private, member, key) as (address, _), serve(listen, "127.0.0.1", 0) as between:
        way = f"ws://127.0.0.1:{next(iter(between.sockets)).getsockname()[1]}/gateway"
        assert await reached(way, private, identity, key) == "connected", "what passes all on is not noticed"
    welcome, hello, proof = messages
    async with saying(welcome, lambda _: proof) as (address, received):
        assert await reached(address, private, identity, key) == "alone"
    assert len(received) == 1
    assert received != [hello]


async def test_a_gateway_that_passes_itself_off_as_another_is_not_taken(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    lender, impostor = fresh_identity(tmp_path, "lender"), fresh_identity(tmp_path, "impostor")

    def pretend(hello: bytes) -> bytes:
        return impostor.sign(gateway_frames.PROOF, msgspec.msgpack.decode(hello, type=gateway_frames.Hello).signature)

    welcome = msgspec.msgpack.encode(gateway_frames.Welcome(PROTOCOL, lender.peer_id, charter.digest, bytes(32)))
    async with saying(welcome, pretend) as (theirs, _), lending(charter, lender) as (address, _):
        assert await reached(theirs, charter, identity) == "alone"
        assert await reached(f"{address}#{text_of(lender.peer_id)}", charter, identity) == "connected"
        says_another = f"{address}#{text_of(impostor.peer_id)}"
        assert await reached(says_another, charter, identity) == "alone"
    with pytest.raises(SwarmError, match="no peer's id"):
        await reached("wss://example.org/gateway#nonsense", charter, identity)


@pytest.mark.parametrize(
    ("protocol", "same", "says"),
    [
        (charters.PROTOCOL + 1, True, "runs Waggle 9.0, which is newer: update this Waggle to train with it"),
        (charters.PROTOCOL - 1, True, "runs Waggle 9.0, which is older: it must be updated to train with this one"),
        (charters.PROTOCOL, False, "trains under another charter"),
    ],
)
async def test_a_gateway_of_another_kind_is_refused_with_the_sentence_that_full_nodes_get_until_it_is_updated(
    charter: Charter, verifier: Verifier, tmp_path: Path, protocol: int, same: bool, says: str
) -> None:
    lender, ear = fresh_identity(tmp_path, "lender"), Ear()
    first = [protocol, lender.peer_id, charter.digest if same else bytes(32), bytes(32), "9.0", b"", {"more": 1}]

    async def welcome(connection: ServerConnection) -> None:
        await connection.send(msgspec.msgpack.encode(first))
        with contextlib.suppress(ConnectionClosed):
            hello = msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Hello)
            await connection.send(lender.sign(gateway_frames.PROOF, hello.signature))
        await connection.wait_closed()

    async with serve(welcome, "127.0.0.1", 0) as server:
        address = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/gateway#{text_of(lender.peer_id)}"
        own = fresh_identity(tmp_path, "light")
        node = open_node(options(gateways=(address,), light=True), charter, own, verifier, ear)
        try:
            await node.start()
            await ear.hear(ReachChanged, lambda news: news.reach == "alone")
            looked_event = await ear.peer(lender.peer_id, lambda news: bool(news.peer.refusal))
            assert says in looked_event.peer.refusal

            after = len(ear.news)
            first[:3] = charters.PROTOCOL, lender.peer_id, charter.digest
            await ear.hear(PeerChanged, lambda news: news.peer.id == lender.peer_id and not news.peer.refusal, after)
        finally:
            await node.close()


async def test_what_an_address_without_a_key_says_is_held_against_no_peer(charter: Charter, tmp_path: Path) -> None:
    named, ear, greeted = fresh_identity(tmp_path, "named"), Ear(), list[bytes]()

    async def welcome(connection: ServerConnection) -> None:
        messages = [charters.PROTOCOL + 1, named.peer_id, charter.digest, bytes(32), "9.0"]
        await connection.send(msgspec.msgpack.encode(messages))
        await connection.wait_closed()

    async with serve(welcome, "127.0.0.1", 0) as server:
        own = fresh_identity(tmp_path, "light")
        address = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/gateway"
        hooks = callbacks(own, ear, charter, on_handshake=lambda peer_id, _: greeted.append(peer_id))
        node = GatewayTransport(options(gateways=(address,)), own, hooks)
        try:
            await node.start()
            await ear.hear(ReachChanged, lambda news: news.reach == "alone")
            assert greeted == []
        finally:
            await node.close()


async def test_a_question_that_takes_long_does_not_hold_up_the_clients_others(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    never = asyncio.get_running_loop().create_future()
    requests: list[bytes] = []

    async def silent(_peer_id: bytes, sha256: bytes, _seconds: float) -> bytes:
        requests.append(sha256)
        await never
        return b""

    async with lending(charter, fresh_identity(tmp_path, "lender"), pull=silent) as (address, _), connect(address) as connection:
        await introduce(connection, identity)
        await connection.recv()
        for number in range(gateway.AT_ONCE + 2):
            await connection.send(
                msgspec.msgpack.encode(gateway_frames.PullRequest(number, identity.peer_id, bytes([number] * 32)))
            )
            if number == gateway.AT_ONCE - 2:
                await connection.send(msgspec.msgpack.encode(gateway_frames.DirectoryRequest(99)))
                async with asyncio.timeout(SOON):
                    answer = msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Response)
                assert answer.id == 99
        never.set_result(None)
        async with asyncio.timeout(SOON):
            ids = [
                msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Response).id
                for _ in range(gateway.AT_ONCE + 2)
            ]
        assert sorted(ids) == list(range(gateway.AT_ONCE + 2))
        assert len(requests) == gateway.AT_ONCE + 2


@asynccontextmanager
async def by_web(charter: Charter, identity: Identity, address: str) -> AsyncIterator[GatewayTransport]:
    """A light client connected to this gateway."""
    ear, member = Ear(), Membership(charter, identity.peer_id)
    node = GatewayTransport(options(gateways=(address,)), identity, callbacks(identity, ear, charter, membership=member))
    await node.start()
    try:
        await ear.hear(ReachChanged, lambda news: news.reach == "connected")
        yield node
    finally:
        await node.close()


async def test_silent_peers_hold_up_nothing_else_that_a_light_client_asks(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    async def silent(*_: object) -> bytes:
        return await asyncio.get_running_loop().create_future()

    async with (
        lending(charter, fresh_identity(tmp_path, "lender"), pull=silent) as (address, _),
        by_web(charter, identity, address) as node,
    ):
        pulls = [asyncio.create_task(node.network.pull(bytes(38), bytes([number] * 32), 1.0)) for number in range(12)]
        async with asyncio.timeout(SOON):
            assert await node.network.read_directory("") == {}
        assert not any(each.done() for each in pulls)
        for each in pulls:
            each.cancel()


async def test_what_is_too_large_for_its_client_is_passed_on_by_no_gateway(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("BYTES_BURST", "PASSED_BURST"):
        monkeypatch.setattr(gateway, part, 1e9)
    blobs = {hashlib.sha256(blob).digest(): blob for blob in (bytes(gateway.MAX_BLOB), bytes(gateway.MAX_BLOB + 1))}

    async def pull(_peer_id: bytes, sha256: bytes, _seconds: float) -> bytes:
        return blobs[sha256]

    async with (
        lending(charter, fresh_identity(tmp_path, "lender"), pull=pull) as (address, _),
        by_web(charter, identity, address) as node,
    ):
        assert [len(await node.network.pull(bytes(38), sha256, 1.0)) for sha256 in blobs] == [gateway.MAX_BLOB, 0]
        assert await node.network.read_directory("") == {}, "its client need not close the connection"


WITHOUT_HIVEMIND = """
import importlib, pkgutil, sys
sys.modules["hivemind"] = None  # to import it fails, and nobody finds it: as on Windows
import waggle
for found in pkgutil.walk_packages(waggle.__path__, "waggle."):
    if not found.name.startswith(("waggle.gui", "waggle_lab", "waggle.models.mlx", "waggle.__main__", "waggle.tasks.v")):
        importlib.import_module(found.name)
from waggle.network.transport.choice import kind_of
from waggle.network.messages.options import SwarmOptions
assert kind_of(SwarmOptions(gateways=("wss://example.org/gateway",))).joins_through == "gateways"
assert kind_of(SwarmOptions()).joins_through == "gateways"
"""


def test_all_but_the_network_process_works_where_hivemind_is_not_installed() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_HIVEMIND], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr


def environment() -> dict[str, str]:
    from end_to_end.programs import ENVIRONMENT

    return ENVIRONMENT


async def test_payloads_of_who_left_are_given_back_and_those_of_who_came_back_are_not(
    charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, back = fresh_identity(tmp_path, "gone"), fresh_identity(tmp_path, "back")

    async def leave(who: Identity, blob: bytes) -> None:
        async with connect(address) as connection:
            await introduce(connection, who)
            await connection.recv()
            assert len(await blob_of(connection, gateway_frames.UploadRequest(1, blob))) == CONSENT_BYTES

    async with lending(charter, fresh_identity(tmp_path, "lender")) as (address, lent), asyncio.timeout(SOON):
        await leave(back, b"second")
        while back.peer_id not in lent._forgetting:
            await asyncio.sleep(0.01)
        monkeypatch.setattr(gateway, "LIFETIME_S", 0.2)
        await leave(gone, b"first")
        async with connect(address) as connection:
            await introduce(connection, back)
            await connection.recv()
            while lent.uploaded(hashlib.sha256(b"first").digest()):
                await asyncio.sleep(0.01)
            lent._forget(back.peer_id)  # as when its time is up
            assert lent.uploaded(hashlib.sha256(b"second").digest()) == b"second"


async def test_of_all_connections_the_one_with_most_unprocessed_bytes_ends_and_nobody_else(
    charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metered_connection, "MAX_UNPROCESSED", 250_000)
    begun = Frame(Opcode.BINARY, bytes(200_000)).serialize(mask=True)[:150_000]
    async with (
        lending(charter, fresh_identity(tmp_path, "lender")) as (address, lent),
        clients(address, tmp_path, 4) as here,
        asyncio.timeout(SOON),
    ):
        (_, small), (_, first), (_, second), (_, idle) = here
        small.transport.write(begun[:20_000])
        first.transport.write(begun)
        while sum(each.unprocessed for each in lent._clients.values()) < 170_000:
            await asyncio.sleep(0.01)
        second.transport.write(begun + bytes(40_000))
        await second.wait_closed()
        assert len(await blob_of(idle, gateway_frames.UploadRequest(1, b"mine"))) == CONSENT_BYTES
        assert small.state is first.state is State.OPEN


async def test_a_request_without_end_is_cut_off(charter: Charter, tmp_path: Path) -> None:
    async with lending(charter, fresh_identity(tmp_path, "lender")) as (address, _), asyncio.timeout(SOON):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.split(":")[2].split("/")[0]))
        writer.write(b"GET /gateway HTTP/1.1\r\n" + (b"X-Filler: " + b"x" * 8000 + b"\r\n") * 3)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_nothing_of_a_message_stays_when_it_is_processed(charter: Charter, identity: Identity, tmp_path: Path) -> None:
    async with (
        lending(charter, fresh_identity(tmp_path, "lender")) as (address, lent),
        connect(address) as connection,
        asyncio.timeout(SOON),
    ):
        await introduce(connection, identity)
        await connection.recv()
        mark = os.urandom(32)  # tells this message from what other tests have left in this process
        request = gateway_frames.UploadRequest(1, mark.ljust(MAX_BLOB, b"\0"))
        assert len(await blob_of(connection, request)) == CONSENT_BYTES
        del request
        here = lent._clients[identity.peer_id]
        assert here.unprocessed == 0
        lent._uploads.clear()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            if task.get_coro().__name__ == "_reply":  # it has answered, and is about to end
                await task
        assert not [
            holder
            for holder in gc.get_objects()
            if type(holder).__name__ in ("Frame", "frame", "UploadRequest", "cell", "generator", "coroutine")
            for each in gc.get_referents(holder)
            if type(each) in (bytes, bytearray) and len(each) >= MAX_BLOB and mark in each
        ]
