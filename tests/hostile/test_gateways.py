"""Gateways against light clients and the reverse: a gateway's forgeries blame no one else and hold back no payload."""

import asyncio
import gc
import hashlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.protocol import State

from network.leaderboard.test_exchange import exam, of, truths
from network.loopback import SOON, Ear, Start, answered, callbacks, fresh_identity, options, question_ids
from network.transport.gateway.test_server import announcing, blob_of, introduce, lending
from waggle.network.identity.keys import Identity
from waggle.network.identity.membership import Membership
from waggle.network.limits.address_ranges import RELAYED
from waggle.network.messages import announcement as announcements
from waggle.network.messages import answer_sheet, consent, directory, gateway_frames, rollout_record
from waggle.network.messages.announcement import LIFETIME_S, MOST_FORGED, Announcement
from waggle.network.messages.answer_sheet import AnswerSheet
from waggle.network.messages.events import GroupsArrived, LeaderboardChanged, ReachChanged, RecordRejected
from waggle.network.messages.gateway_frames import (
    PROOF,
    DirectoryEntry,
    DirectoryRequest,
    Hello,
    PullRequest,
    Response,
    UploadRequest,
    Welcome,
)
from waggle.network.messages.rollout_record import MAX_BLOB, RolloutRecord
from waggle.network.open_node import open_node
from waggle.network.transport import interface
from waggle.network.transport.gateway import bounded_connection
from waggle.network.transport.gateway import server as gateway
from waggle.network.transport.gateway.network import GatewayNetwork
from waggle.network.transport.gateway.server import AT_ONCE
from waggle.network.transport.gateway.transport import GatewayTransport
from waggle.network.transport.hivemind.network import open_network
from waggle.network.transport.interface import PeerAway, Services
from waggle.network.web import server as web
from waggle.tasks.charter import PROTOCOL, Charter
from waggle.tasks.sandbox.exam import Exam
from waggle.tasks.sandbox.verifier import Verifier

__all__ = ["exam"]

LARGE, REQUESTS = bytes(MAX_BLOB), AT_ONCE - 1  # of one client for a payload, which its share allows


async def test_what_a_gateway_makes_up_is_passed_over_and_the_next_one_asked(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier, exam: Exam, tmp_path: Path
) -> None:
    client, liar, true = (fresh_identity(tmp_path, name) for name in ("client", "liar", "true"))
    groups = answered(charter, verifier, client.peer_id, question_ids(charter, verifier, client.peer_id, 1))
    record = RolloutRecord(origin=client.peer_id, round=1, epoch=groups[0].id.epoch, model="starter", groups=tuple(groups))
    answers = AnswerSheet(
        origin=client.peer_id, epoch=exam.epoch, exam=exam.digest, round=40, learned=3, model="starter",
        answers=tuple(truths(verifier, exam, 7)),
    )  # fmt: skip
    blobs = {
        hashlib.sha256(each).digest(): each
        for each in (rollout_record.encode(record, charter), answer_sheet.signed(answers, charter, client))
    }
    blob, named = blobs
    announced = Announcement(
        charter=charter.digest, sha256=blob, size=len(blobs[blob]), round=1, epoch=record.epoch, model="starter", sheet=named,
        specialties=rollout_record.specialties_of(groups, charter), expires=int((time.time() + 200) * 1000),
        via=(liar.peer_id, true.peer_id),
        consents=tuple(consent.give(each, charter.digest, client.peer_id, time.time()) for each in (liar, true)),
    )  # fmt: skip
    requests: list[bytes] = []

    async def lie(_peer_id: bytes, sha256: bytes) -> bytes:
        requests.append(sha256)
        return b"made up"

    async def give(_peer_id: bytes, sha256: bytes) -> bytes:
        return blobs.get(sha256, b"")

    reader = await start("reader", seeds=(seed_address,), leaderboard=True)
    async with AsyncExitStack() as stack:
        for who, services in ((liar, Services(payload=lie)), (true, Services(payload=give))):
            dht = await open_network(options(), who, services, port=0)
            stack.push_async_callback(dht.close)
            await dht.connect(seed_address)
            await dht.find_neighbours()
            key = directory.key_of(charter.digest, 0, 0)
        await dht.announce(key, client.peer_id, announcements.signed(announced, client), announced.expires_at)
        arrived = await reader.ear.hear(GroupsArrived)
        news_of_sheets = await reader.ear.hear(LeaderboardChanged, lambda news: of(news.comparison, client) is not None)

    assert (arrived.origin, [each.group for each in arrived.groups]) == (client.peer_id, groups)
    assert of(news_of_sheets.comparison, client).right == 7
    assert requests, "it was asked first"
    assert set(requests) <= set(blobs)
    assert len(requests) <= len(blobs), "after the first lie it rests"
    assert reader.ear.all(RecordRejected) == []
    assert reader.node._reputations.of(client.peer_id).rejected == 0


async def test_the_directory_goes_to_a_client_as_fast_as_its_share_allows(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "BYTES_BURST", 50_000.0)
    monkeypatch.setattr(gateway, "BYTES_RATE", 100_000.0)
    crowd = {number.to_bytes(38, "big"): bytes(300) for number in range(100)}

    async def listed() -> dict[bytes, bytes]:
        return crowd

    lender = fresh_identity(tmp_path, "lender")
    async with (
        lending(charter, lender, read_directory=listed) as (address, _),
        connect(address) as connection,
        asyncio.timeout(SOON),
    ):
        await introduce(connection, identity)
        await connection.recv()
        began, had = time.monotonic(), 0
        for number in range(6):
            await connection.send(msgspec.msgpack.encode(DirectoryRequest(number)))
        for _ in range(6):
            answer = msgspec.msgpack.decode(await connection.recv(), type=Response)
            assert {each.peer_id: each.signed for each in answer.listed} == crowd
            had += sum(len(each.peer_id) + len(each.signed) for each in answer.listed)
        assert had <= gateway.BYTES_BURST + gateway.BYTES_RATE * (time.monotonic() - began)


async def test_a_directory_that_may_not_be_told_now_is_not_answered_as_empty(
    charter: Charter, identity: Identity, tmp_path: Path
) -> None:
    charges: list[tuple[bytes, int]] = []

    def tell(source: bytes, size: int) -> bool:
        charges.append((source, size))
        return False

    async def listed() -> dict[bytes, bytes]:
        return {bytes(38): bytes(100)}

    ways = {"read_directory": listed, "may_send_directory": tell}
    async with lending(charter, fresh_identity(tmp_path, "lender"), **ways) as (address, _), connect(address) as connection:
        await introduce(connection, identity)
        await connection.recv()
        async with asyncio.timeout(SOON):
            await connection.send(msgspec.msgpack.encode(DirectoryRequest(1)))
            while not charges:
                await asyncio.sleep(0.01)
            await connection.send(msgspec.msgpack.encode(UploadRequest(2, b"mine")))
            assert msgspec.msgpack.decode(await connection.recv(), type=Response).blob
        assert charges == [(identity.peer_id, 138)]


async def test_for_light_clients_the_directory_is_read_no_more_often_than_a_limit_of_traffic_allows(
    charter: Charter, verifier: Verifier, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.exchange.directory_cache.READ_EVERY_S", 0.0)
    directory_entries, reads = {bytes(38): bytes(300)}, 0

    async def read(_key: str) -> dict[bytes, bytes]:
        nonlocal reads
        reads += 1
        return directory_entries

    node = open_node(options(), charter, identity, verifier, lambda news: None)
    node.transport = SimpleNamespace(network=SimpleNamespace(read_directory=read, replicas=1))  # type: ignore[assignment]
    assert [await node._directory.entries() for _ in range(3)] == [directory_entries] * 3
    assert reads == 3
    node.limit(1000.0)
    assert [await node._directory.entries() for _ in range(3)] == [directory_entries] * 3
    assert reads == 4


async def test_light_clients_that_ask_and_leave_have_the_directory_read_no_more_often_and_keep_it_from_nobody(
    charter: Charter, verifier: Verifier, identity: Identity
) -> None:
    directory_entries, begun, answers = {bytes(38): bytes(300)}, asyncio.Event(), asyncio.Event()
    reads = 0

    async def read(_key: str) -> dict[bytes, bytes]:
        nonlocal reads
        reads += 1
        begun.set()
        await answers.wait()
        return directory_entries

    node = open_node(options(), charter, identity, verifier, lambda news: None)
    node.transport = SimpleNamespace(network=SimpleNamespace(read_directory=read, replicas=1))  # type: ignore[assignment]
    node.limit(1000.0)
    honest = asyncio.create_task(node._directory.entries())
    await begun.wait()
    for _ in range(20):
        leaver = asyncio.create_task(node._directory.entries())
        await asyncio.sleep(0)
        leaver.cancel()
        await asyncio.wait([leaver])
    honest.cancel()
    await asyncio.wait([honest])
    answers.set()
    assert await node._directory.entries() == directory_entries
    assert reads == 1
    assert not node._bandwidth.may_read_directory(), "it is charged, although the first client has left"


@pytest.mark.parametrize("leaves", [False, True])
async def test_what_a_light_client_has_pulled_in_vain_is_paid_for_out_of_the_limit_of_traffic(
    charter: Charter, verifier: Verifier, identity: Identity, leaves: bool
) -> None:
    begun = asyncio.Event()

    async def pull(*_: object) -> bytes:
        begun.set()
        if leaves:
            await asyncio.Event().wait()
        raise PeerAway("it stalls")

    node = open_node(options(), charter, identity, verifier, lambda news: None)
    node.transport = SimpleNamespace(network=SimpleNamespace(pull=pull))  # type: ignore[assignment]
    node.limit(1000.0)
    pulling = asyncio.create_task(node._pull_for(identity.peer_id, bytes(32), SOON))
    await begun.wait()
    if leaves:
        pulling.cancel()
    await asyncio.wait([pulling])
    assert pulling.cancelled() if leaves else pulling.result() == b""
    assert not node._bandwidth.may_receive()


async def test_light_clients_are_told_what_was_last_read_while_strangers_hold_up_the_directory(
    charter: Charter, verifier: Verifier, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory_entries, reads, away = {bytes(38): bytes(300)}, 0, False

    async def read(_key: str) -> dict[bytes, bytes]:
        nonlocal reads
        reads += 1
        if away:
            raise PeerAway("too slow")
        return directory_entries

    node = open_node(options(), charter, identity, verifier, lambda news: None)
    node.transport = SimpleNamespace(network=SimpleNamespace(read_directory=read, replicas=1))  # type: ignore[assignment]
    assert await node._directory.entries() == directory_entries
    away = True
    monkeypatch.setattr("waggle.network.exchange.directory_cache.READ_EVERY_S", 0.0)
    assert await node._directory.entries() == directory_entries
    monkeypatch.setattr("waggle.network.exchange.directory_cache.READ_EVERY_S", 1e6)
    assert await asyncio.gather(*(node._directory.entries() for _ in range(8))) == [directory_entries] * 8
    assert reads == 2
    monkeypatch.setattr("waggle.network.exchange.directory_cache.STALE_S", 0.0)
    assert await node._directory.entries() == {}, "with expired entries a client would believe that its clock is wrong"


@asynccontextmanager
async def reads_nothing(connection: ClientConnection) -> AsyncIterator[None]:
    """Let a client ask for more than the network buffers, and read nothing."""
    connection.transport.pause_reading()
    try:
        with suppress(ConnectionClosed):  # the gateway has already closed it
            for number in range(REQUESTS):
                await connection.send(msgspec.msgpack.encode(PullRequest(number, bytes(38), hashlib.sha256(LARGE).digest())))
        yield
    finally:
        connection.transport.abort()


class Besieged:
    """A gateway with eight places, four of them for one address range, and clients from invented ranges."""

    def __init__(
        self, address: str, lent: gateway.GatewayServer, stack: AsyncExitStack, folder: Path, clients_served: Sequence[bytes]
    ) -> None:
        self.address, self.lent, self.folder = address, lent, folder
        self.clients_served = clients_served  # who received a payload
        self._stack = stack

    async def come(self, name: str, range_: int) -> ClientConnection | None:
        """Connect a client; None if it is refused."""
        connection = await self._stack.enter_async_context(
            connect(f"{self.address}?{range_}", max_size=gateway_frames.MAX_MESSAGE)
        )
        with suppress(ConnectionClosed):
            async with asyncio.timeout(SOON):
                await introduce(connection, fresh_identity(self.folder, name))
                await connection.recv()
            return connection
        return None

    async def serves(self, connection: ClientConnection | None) -> bool:
        if connection is not None:
            async with asyncio.timeout(SOON):
                with suppress(ConnectionClosed):
                    await connection.send(msgspec.msgpack.encode(UploadRequest(1, b"mine")))
                    return bool(msgspec.msgpack.decode(await connection.recv(), type=Response).blob)
        return False

    async def sticks(self, name: str, range_: int) -> tuple[ClientConnection, ServerConnection]:
        """Both ends of a client that is accepted, asks for more than the network buffers, and reads nothing."""
        connection, who = await self.come(name, range_), fresh_identity(self.folder, name).peer_id
        assert connection is not None
        here = self.lent._clients[who]
        await self._stack.enter_async_context(reads_nothing(connection))
        async with asyncio.timeout(SOON):
            while not here.paused:
                await asyncio.sleep(0.01)
        return connection, here

    def wait(self) -> None:
        """Let clients that share nothing use up the time that they may stay when others come."""
        for each in self.lent._shared:
            self.lent._shared[each] -= LIFETIME_S + 1


@pytest.fixture
async def besieged(charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Besieged]:
    monkeypatch.setattr(gateway, "MAX_CLIENTS", 8)
    monkeypatch.setattr(gateway, "MAX_FROM_ONE", 4)
    monkeypatch.setattr(gateway, "_source", lambda connection: connection.request.path.partition("?")[2])
    clients_served: list[bytes] = []

    def give(client: bytes, _source: str, _sha256: bytes, blob: bytes) -> bytes:
        clients_served.append(client)
        return blob

    lender = fresh_identity(tmp_path, "lender")
    async with lending(charter, lender, serve_payload=give) as (address, lent), AsyncExitStack() as stack:
        yield Besieged(address, lent, stack, tmp_path, clients_served)


async def test_whoever_shares_nothing_for_long_makes_room_for_others_and_whoever_does_stays(besieged: Besieged) -> None:
    honest = await besieged.come("honest", 3)
    crowd = [await besieged.come(f"crowd {i}", 1 + i % 2) for i in range(7)]
    assert all(crowd)
    assert await besieged.come("too early", 1) is None

    besieged.wait()
    assert await besieged.serves(honest)
    neighbour = await besieged.come("neighbour", 1)
    assert await besieged.serves(neighbour), "its range was full"
    late = [await besieged.come(f"late {i}", 3) for i in range(3)]
    assert all([await besieged.serves(each) for each in (honest, neighbour, *late)])
    assert sum([await besieged.serves(each) for each in crowd]) == 3
    assert len(besieged.lent._clients) == gateway.MAX_CLIENTS


async def test_two_address_ranges_do_not_close_a_gateway_whatever_they_share(besieged: Besieged) -> None:
    crowd = [await besieged.come(f"crowd {i}", 1 + i % 2) for i in range(8)]
    assert all([await besieged.serves(each) for each in crowd])

    honest = [await besieged.come(f"honest {i}", 3) for i in range(2)]
    for i in range(6):
        assert await besieged.come(f"more {i}", 1 + i % 2) is None, "as many as other clients have"
    assert all([await besieged.serves(each) for each in honest])
    assert [await besieged.serves(each) for each in crowd].count(False) == 2
    assert await besieged.serves(await besieged.come("elsewhere", 4))


async def test_who_makes_room_is_closed_also_where_the_newcomer_is_gone_at_once(besieged: Besieged) -> None:
    crowd = [await besieged.come(f"crowd {i}", 1 + i % 2) for i in range(8)]
    besieged.wait()
    async with connect(f"{besieged.address}?3") as connection:
        await introduce(connection, fresh_identity(besieged.folder, "gone"))
    async with asyncio.timeout(SOON):  # both leave at a time of their own
        while not len(besieged.lent._clients) == len(besieged.lent._shared) == gateway.MAX_CLIENTS - 1:
            await asyncio.sleep(0.01)
    assert sum(each is not None and each.state is State.OPEN for each in crowd) == gateway.MAX_CLIENTS - 1


async def test_clients_that_read_nothing_hold_up_nobody_who_takes_their_place(
    besieged: Besieged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "READ_S", 10 * SOON)  # no client is closed for it
    monkeypatch.setattr(gateway, "MAX_UNSENT", 1 << 30)  # nor for this
    besieged.lent._store(b"somebody", LARGE)
    for i in range(8):
        await besieged.sticks(f"crowd {i}", 1 + i % 2)
    honest = [await besieged.come(f"honest {i}", 3) for i in range(2)]
    assert all([await besieged.serves(each) for each in honest])
    assert await besieged.serves(await besieged.come("crowd 7", 2)), (
        "it is let in under its own name, as its network may have changed"
    )
    assert len(besieged.lent._clients) == gateway.MAX_CLIENTS


async def test_whoever_reads_nothing_fills_our_memory_with_one_answer_alone_and_whoever_reads_again_stays(
    besieged: Besieged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "READ_S", 10 * SOON)
    besieged.lent._store(b"somebody", LARGE)
    connection, here = await besieged.sticks("slow", 1)
    async with asyncio.timeout(SOON):
        while len(besieged.clients_served) < REQUESTS:
            await asyncio.sleep(0.01)
        assert here.transport.get_write_buffer_size() <= gateway_frames.MAX_MESSAGE
        connection.transport.resume_reading()
        answers = [msgspec.msgpack.decode(await connection.recv(), type=Response) for _ in range(REQUESTS)]
        while here.paused:
            await asyncio.sleep(0.01)
    assert [each.blob for each in answers] == [LARGE] * REQUESTS
    assert here.late.cancelled()  # type: ignore[attr-defined]


async def test_whoever_reads_nothing_for_long_is_given_up(besieged: Besieged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "READ_S", 0.1)
    besieged.lent._store(b"somebody", LARGE)
    honest = await besieged.come("honest", 1)
    crowd = [await besieged.come(f"crowd {i}", 2) for i in range(4)]
    async with AsyncExitStack() as stack, asyncio.timeout(SOON):
        for each in filter(None, crowd):
            await stack.enter_async_context(reads_nothing(each))
        while len(besieged.lent._shared) > 1:
            await asyncio.sleep(0.01)
    assert await besieged.serves(honest)


async def test_whoever_reads_slowly_stays_for_as_long_as_it_takes(besieged: Besieged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "READ_S", 10 * SOON)
    besieged.lent._store(b"somebody", LARGE)
    _, here = await besieged.sticks("slow", 1)
    assert isinstance(here, bounded_connection.BoundedConnection)
    here.late.cancel()
    unsent = here.transport.get_write_buffer_size()
    here._check(unsent + 1)
    assert not here.transport.is_closing(), "the client read something"
    assert not here.late.cancelled(), "it is checked again"
    here.late.cancel()
    here._check(unsent)
    assert here.transport.is_closing(), "the client read nothing"


async def test_a_stranger_that_pings_and_reads_nothing_does_not_fill_our_memory(
    charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "READ_S", 10 * SOON)
    pings = Frame(Opcode.PING, bytes(125)).serialize(mask=True) * 1000
    async with lending(charter, fresh_identity(tmp_path, "lender")) as (address, _), connect(address) as connection:
        way = connection.transport
        way.pause_reading()
        async with asyncio.timeout(SOON):
            for _ in range(8 * bounded_connection.MAX_UNREAD // len(pings)):
                way.write(pings)
                while way.get_write_buffer_size() and not way.is_closing():
                    await asyncio.sleep(0)
        assert way.is_closing(), "it was cut off"
        way.abort()


@pytest.mark.parametrize(
    "frame",
    [Frame(Opcode.PING, b""), Frame(Opcode.PONG, b""), Frame(Opcode.TEXT, b"", fin=False), Frame(Opcode.PING, bytes(8))],
    ids=["pings", "pongs", "a message of nothing", "longer pings"],
)
async def test_whoever_says_nothing_again_and_again_is_cut_off_before_much_of_it_is_read(
    charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frame: Frame
) -> None:
    monkeypatch.setattr(bounded_connection, "FRAMES_RATE", 0.0)
    read, behind = list[int](), Frame(Opcode.CONT, b"", fin=False) if frame.opcode is Opcode.TEXT else frame
    process = bounded_connection.BoundedConnection.process_event
    monkeypatch.setattr(
        bounded_connection.BoundedConnection, "process_event", lambda self, event: read.append(1) or process(self, event)
    )
    async with lending(charter, fresh_identity(tmp_path, "lender")) as (address, _), connect(address) as connection:
        way = connection.transport
        way.write(frame.serialize(mask=True) + behind.serialize(mask=True) * 20_000)
        async with asyncio.timeout(SOON):
            await connection.wait_closed()
        assert bounded_connection.FRAMES_BURST <= len(read) < bounded_connection.FRAMES_BURST + 300


async def test_messages_of_some_length_are_as_many_as_there_are(besieged: Besieged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "FRAMES_RATE", 0.0)
    monkeypatch.setattr(bounded_connection, "FRAMES_BURST", 5.0)
    monkeypatch.setattr(gateway, "ASKS_RATE", 1e6)
    honest = await besieged.come("honest", 1)
    assert honest is not None
    async with asyncio.timeout(SOON):
        for _ in range(20):
            await honest.send(msgspec.msgpack.encode(UploadRequest(1, bytes(2000))))
            assert msgspec.msgpack.decode(await honest.recv(), type=Response).blob


async def test_a_stranger_may_say_little_before_it_says_who_it_is(charter: Charter, tmp_path: Path) -> None:
    async with lending(charter, fresh_identity(tmp_path, "lender")) as (address, _), connect(address) as connection:
        await connection.recv()
        await connection.send(bytes(web.MAX_GREETING + 1))
        with pytest.raises(ConnectionClosed, match="1009"):
            await connection.recv()


async def test_what_is_waited_for_by_those_who_read_nothing_is_bounded_in_all_and_denied_to_nobody_else(
    besieged: Besieged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "READ_S", 10 * SOON)
    monkeypatch.setattr(gateway, "MAX_UNSENT", 2 * len(LARGE))
    besieged.lent._store(b"somebody", LARGE)
    ask = PullRequest(1, bytes(38), hashlib.sha256(LARGE).digest())
    slow, here = await besieged.sticks("slow", 1)
    honest = await besieged.come("honest", 2)
    assert honest is not None
    async with asyncio.timeout(SOON):
        while len(besieged.clients_served) < REQUESTS:
            await asyncio.sleep(0.01)
        assert besieged.lent._unsent.keys() == {here}
        assert await blob_of(honest, ask) == LARGE
        await here.wait_closed()
        while besieged.lent._unsent:
            await asyncio.sleep(0.01)
    slow.transport.abort()


async def test_a_light_client_verifies_nothing_twice_and_gives_up_an_answer_of_forged_names(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = GatewayNetwork(charter.digest, Membership(charter, identity.peer_id), Ear())
    announced = Announcement(
        charter=charter.digest, sha256=bytes(32), size=1, round=1, epoch=1, specialties=1, model="m",
        expires=int((time.time() + 100) * 1000),
    )  # fmt: skip
    names = [fresh_identity(tmp_path, f"name {number}") for number in range(3)]
    honest = [DirectoryEntry(each.peer_id, announcements.signed(announced, each)) for each in names]
    forged = [DirectoryEntry(bytes([0, 36, 8, 1, 18, 32]) + os.urandom(32), honest[0].signed) for _ in range(100)]
    verified, verify, listing = list[bytes](), announcements.verify, list[DirectoryEntry]()

    async def all_answer(_make: object) -> dict[str, Response]:
        return {"one": Response(1, listed=tuple(listing))}

    monkeypatch.setattr(gates, "_of_all", all_answer)
    monkeypatch.setattr(announcements, "verify", lambda *arguments: verified.append(arguments[0]) or verify(*arguments))
    for listed, count, cost in (
        (honest, 3, 3), (honest, 3, 0), ([*forged[:MOST_FORGED], *honest], 3, MOST_FORGED),
        ([*honest, *forged], 3, MOST_FORGED + 1), ([*forged, *honest], 0, MOST_FORGED + 1),
    ):  # fmt: skip
        listing[:] = listed
        verified.clear()
        assert (len(await gates.read_directory("")), len(verified)) == (count, cost)


async def let_in(connection: ServerConnection, who: Identity, charter: Charter) -> None:
    """Accept a client as a gateway of this swarm does."""
    await connection.send(msgspec.msgpack.encode(Welcome(PROTOCOL, who.peer_id, charter.digest, bytes(32))))
    hello = msgspec.msgpack.decode(await connection.recv(), type=Hello)
    await connection.send(who.sign(PROOF, hello.signature))


async def test_a_gateway_that_pings_and_reads_nothing_does_not_fill_our_memory(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "READ_S", 10 * SOON)
    hostile, ear = fresh_identity(tmp_path, "hostile"), Ear()
    pings = Frame(Opcode.PING, bytes(125)).serialize(mask=False) * 1000

    async def ping(connection: ServerConnection) -> None:
        await let_in(connection, hostile, charter)
        way = connection.transport
        way.pause_reading()
        for _ in range(8 * bounded_connection.MAX_UNREAD // len(pings)):
            way.write(pings)
            while way.get_write_buffer_size() and not way.is_closing():
                await asyncio.sleep(0)
        way.abort()

    async with serve(ping, "127.0.0.1", 0, ping_interval=None) as server:
        address = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/gateway"
        member = Membership(charter, identity.peer_id)
        node = GatewayTransport(
            options(gateways=(address,), rejoin=SOON), identity, callbacks(identity, ear, charter, membership=member)
        )
        await node.start()
        try:
            await ear.hear(ReachChanged, lambda news: news.reach == "connected")
            (gate,) = node.network.open.values()
            most, here = 0, gate._websocket
            while here.state is State.OPEN:
                most = max(most, here.transport.get_write_buffer_size())
                await asyncio.sleep(0)
            assert most <= bounded_connection.MAX_UNREAD + len(pings)
            await ear.hear(ReachChanged, lambda news: news.reach == "alone")
        finally:
            await node.close()


@pytest.mark.parametrize("leaves", [False, True], ids=["it says nothing", "it says goodbye"])
async def test_a_gateway_that_reads_nothing_is_given_up_and_fills_no_memory(
    charter: Charter, identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    leaves: bool,
) -> None:  # fmt: skip
    hostile, ear = fresh_identity(tmp_path, "hostile"), Ear()

    async def read_nothing(connection: ServerConnection) -> None:
        await let_in(connection, hostile, charter)
        connection.transport.pause_reading()
        await full.wait()
        connection.protocol.send_close(1000)
        connection.send_data()
        await closing.wait()
        connection.transport.abort()

    full, closing = asyncio.Event(), asyncio.Event()
    async with serve(read_nothing, "127.0.0.1", 0, ping_interval=None) as server:
        address = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/gateway"
        member = Membership(charter, identity.peer_id)
        node = GatewayTransport(
            options(gateways=(address,), rejoin=SOON), identity, callbacks(identity, ear, charter, membership=member)
        )
        await node.start()
        try:
            await ear.hear(ReachChanged, lambda news: news.reach == "connected")
            monkeypatch.setattr(bounded_connection, "READ_S", 1.0)
            (gate,) = node.network.open.values()
            many = asyncio.gather(
                *(gate.ask(lambda number: UploadRequest(number, LARGE)) for _ in range(8)), return_exceptions=True
            )
            async with asyncio.timeout(SOON):
                while not (here := gate._websocket).paused:
                    await asyncio.sleep(0.01)
                assert here.transport.get_write_buffer_size() <= gateway_frames.MAX_MESSAGE
                if leaves:
                    full.set()
                    while here.state is State.OPEN:
                        await asyncio.sleep(0.01)
                    with pytest.raises(PeerAway):
                        await gate.ask(DirectoryRequest)
            assert [type(each) for each in await many] == [PeerAway] * 8
            await ear.hear(ReachChanged, lambda news: news.reach == "alone")
            assert here.transport.get_write_buffer_size() == 0
        finally:
            full.set()
            closing.set()
            await node.close()
    gc.collect()
    assert "never retrieved" not in caplog.text


@pytest.mark.parametrize("place", ["8.8.4.0/24", ""], ids=["one address range", "at home, or behind a web server"])
async def test_light_clients_of_one_place_leave_relayed_peers_and_other_clients_their_part(
    start: Start, charter: Charter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    blob = bytes(1000)
    ask = PullRequest(1, bytes(38), hashlib.sha256(blob).digest())
    monkeypatch.setattr("waggle.network.node.UPLOAD_RATE", 0.0)
    # half is for clients that want little
    monkeypatch.setattr("waggle.network.node.UPLOAD_BURST", (4.0 if place else 8.0) * len(blob))
    monkeypatch.setattr(gateway, "_source", lambda connection: connection.request.path.partition("?")[2])
    monkeypatch.setattr(interface, "source_of", lambda address, *, relayed: RELAYED)
    lender = await start("lender", web_port=0, gateway=True)
    async with AsyncExitStack() as stack:

        async def client(name: str, place: str) -> ClientConnection:
            door = f"ws://127.0.0.1:{lender.node.web.port}/gateway?{place}"
            connection = await stack.enter_async_context(connect(door))
            await introduce(connection, fresh_identity(tmp_path, name))
            await connection.recv()
            return connection

        crowd = [await client(f"crowd {number}", place) for number in range(5)]
        assert await blob_of(crowd[0], UploadRequest(1, blob))
        assert [await blob_of(each, ask) for each in crowd] == [*[blob] * 4, b""], "they have used up one share"

        assert await blob_of(await client("elsewhere", "9.9.9.0/24"), ask) == blob
        relayed = await open_network(options(), fresh_identity(tmp_path, "relayed"), Services(), port=0)
        stack.push_async_callback(relayed.close)
        await relayed.connect((await lender.node.addresses())[0])
        assert await relayed.pull(lender.identity.peer_id, ask.sha256, SOON) == blob


async def test_a_light_client_that_would_lend_its_web_port_keeps_its_own_gateway_whatever_strangers_announce(
    start: Start, charter: Charter, tmp_path: Path
) -> None:
    lender, stranger = await start("lender", web_port=0, gateway=True), fresh_identity(tmp_path, "stranger")
    doors = {"gateways": (f"ws://127.0.0.1:{lender.node.web.port}/gateway",), "light": True}
    light = await start("light", web_port=0, gateway=True, **doors)
    await light.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    (gate,) = light.node.transport.network.open.values()  # type: ignore[attr-defined]
    with suppress(InvalidStatus):  # it serves no clients
        async with connect(f"ws://127.0.0.1:{light.node.web.port}/gateway") as connection:
            await introduce(connection, stranger)
            await connection.recv()
            await blob_of(connection, announcing(charter, stranger))
    assert (await gate.ask(DirectoryRequest)).listed == ()
