"""The gateway's server: gives light clients, which reach nothing but a WebSocket, the directory and payloads.

A gateway can withhold, but not forge: announcements are signed by their origins, and payloads are named by their hash. First
the client proves its key, then the gateway proves its own; limits count by the client's key. In a private swarm both show that
they are members. A proxy between the two can read everything: nothing here is secret.
"""

import asyncio
import hashlib
import logging
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from waggle.core.errors import UNREADABLE, BadRecord
from waggle.core.peer_id import short_id
from waggle.core.system.process_memory import return_free_memory
from waggle.network.identity.keys import Identity, verify
from waggle.network.identity.membership import Membership
from waggle.network.limits.address_ranges import HIDDEN, source_of
from waggle.network.limits.rate_limits import JointRateLimit, RateLimit, all_allow, of_largest_holder
from waggle.network.messages import announcement as announcements
from waggle.network.messages import consent, handshake
from waggle.network.messages.announcement import LIFETIME_S, MAX_LIFETIME_S, Announcement
from waggle.network.messages.faults import Fault
from waggle.network.messages.gateway_frames import (
    DOMAIN,
    MAX_LISTED,
    MAX_MESSAGE,
    NONCE_BYTES,
    PROOF,
    AnnounceRequest,
    DirectoryEntry,
    DirectoryRequest,
    Hello,
    PullRequest,
    Request,
    Response,
    UploadRequest,
    Welcome,
)
from waggle.network.messages.rollout_record import MAX_BLOB
from waggle.network.transport.gateway.metered_connection import MeteredConnection
from waggle.network.transport.interface import FAILED_PULL_COST, PeerAway
from waggle.tasks.charter import PROTOCOL

log = logging.getLogger(__name__)

AT_ONCE = 4  # questions of one client
PULLS = AT_ONCE - 1  # of them pulls, because pulls from silent peers must not hold up other questions
MAX_CLIENTS = 64
MAX_FROM_ONE = 32  # of them from one address range: a school, or a stranger with many made-up names
HANDSHAKE_S = 10.0
HANDSHAKES_RATE, HANDSHAKES_BURST = 1.0, 64.0  # of one address range, because each new name brings a full quota
MAX_PAYLOADS = 3  # of one client: its newest groups, the groups before, and its answer sheet
MAX_UPLOADED = 20 * 1024 * 1024  # bytes of all clients; beyond it the client with most loses its oldest payload
MAX_UNSENT = 10 * 1024 * 1024  # bytes of answers that clients asked for and do not read; they are here up to twice
ASKS_RATE, ASKS_BURST = 10.0, 60.0  # questions of one client, a second and at once
ANNOUNCES_RATE, ANNOUNCES_BURST = 2.0, 20.0  # of one address range: many nodes store each of them, and count it as ours
PASSED_RATE, PASSED_BURST = 62.5e3, 1e6  # bytes pulled from one peer for one client
ALL = 8.0  # times as much of both for all clients: it leaves us half of what a peer gives to one node
BYTES_RATE, BYTES_BURST = 0.5e6, 8e6  # to and from one client
RANGE = 4.0  # times as much for all clients of one address range
PATIENCE_S = 4.0  # for one pull for a client


DONE = b"1"
CLIENTS = "all clients"
_hello, _ask = msgspec.msgpack.Decoder(Hello), msgspec.msgpack.Decoder(Request)


@dataclass(frozen=True, kw_only=True)
class HostNode:
    """The node that runs a gateway, as the gateway sees it: its own access to the swarm, and its limits.

    `admits` says whether a peer is answered at all. `serve_payload` gets client, address range, sha256 and payload, counts the
    payload and returns it, or nothing if a limit is reached. `may_receive` and `may_send_directory` ask whether a source may send
    so many bytes, or get so many bytes of announcements, and count them.
    """

    read_directory: Callable[[], Awaitable[dict[bytes, bytes]]]
    announce: Callable[[bytes, bytes, float], Awaitable[bool]]
    pull: Callable[[bytes, bytes, float], Awaitable[bytes]]
    admits: Callable[[bytes], bool]
    serve_payload: Callable[[bytes, str, bytes, bytes], bytes]
    may_receive: Callable[[bytes, int], bool]
    may_send_directory: Callable[[bytes, int], bool]


class GatewayServer:
    """Serves light clients from a full node, each over its own WebSocket."""

    def __init__(
        self, charter: bytes, identity: Identity, membership: Membership, host: HostNode, handshake_s: float = HANDSHAKE_S
    ) -> None:
        self._handshake_s = handshake_s
        self._charter = charter
        self._identity, self._peer_id = identity, identity.peer_id
        self._membership = membership
        self._host = host
        self._asks, self._bytes = RateLimit(ASKS_RATE, ASKS_BURST), RateLimit(BYTES_RATE, BYTES_BURST)
        self._range_bytes = RateLimit(RANGE * BYTES_RATE, RANGE * BYTES_BURST)
        self._announces, self._passed = (
            JointRateLimit(ANNOUNCES_RATE, ANNOUNCES_BURST, ALL),
            JointRateLimit(PASSED_RATE, PASSED_BURST, ALL),
        )
        self._handshakes = RateLimit(HANDSHAKES_RATE, HANDSHAKES_BURST)
        self._unsent = Counter[MeteredConnection]()  # bytes of payloads that wait for their client to read them
        self._clients: dict[bytes, MeteredConnection] = {}
        self._shared: dict[MeteredConnection, float] = {}  # when the client came, or last announced or uploaded (monotonic)
        self._named: dict[bytes, tuple[str, float]] = {}  # clients announced here: address range, and until when (unix seconds)
        self._uploads: OrderedDict[bytes, OrderedDict[bytes, bytes]] = OrderedDict()  # client -> sha256 -> payload
        self._forgetting: dict[bytes, asyncio.TimerHandle] = {}  # by client: its payloads are given back then

    def uploaded(self, sha256: bytes) -> bytes:
        """A payload that a client uploaded; empty if there is none."""
        return next((each[sha256] for each in self._uploads.values() if sha256 in each), b"")

    async def serve(self, connection: MeteredConnection) -> None:
        """Serve one client until it leaves or breaks a rule. Nothing that it sends raises."""
        peer_id, answering, sending = b"", set[asyncio.Task[None]](), asyncio.Lock()
        try:
            async with asyncio.timeout(self._handshake_s):
                peer_id, leaver, proof = await self._shake_hands(connection)
            for each in {peer_id, leaver} & self._clients.keys():
                self._clients.pop(each).transport.abort()  # no closing handshake: a client that reads nothing would delay it
            self._clients[peer_id], self._shared[connection] = connection, time.monotonic()
            connection.protocol.max_message_size = MAX_MESSAGE
            await connection.send(proof)
            while True:
                await self._serve_next(connection, peer_id, answering, sending)
        except (BadRecord, TimeoutError, *UNREADABLE) as error:  # it breaks a rule, or says nothing
            log.debug("light client %s is refused: %s", short_id(peer_id) if peer_id else "(unknown)", _reason(error))
            await connection.close(1008, "not understood")
        except ConnectionClosed:  # it left
            return
        finally:
            for task in answering:
                task.cancel()
            if self._clients.get(peer_id) is connection:
                del self._clients[peer_id]
            self._shared.pop(connection, None)
            if peer_id in self._uploads:
                if earlier := self._forgetting.pop(peer_id, None):
                    earlier.cancel()
                self._forgetting[peer_id] = asyncio.get_running_loop().call_later(LIFETIME_S, self._forget, peer_id)

    async def _serve_next(
        self, connection: MeteredConnection, peer_id: bytes, answering: set[asyncio.Task[None]], sending: asyncio.Lock
    ) -> None:
        """Receive a question and begin to answer it, as soon as the limits allow it. Afterwards it holds no message in memory."""
        message = await connection.next_message()
        size = len(message)
        if not self._host.admits(peer_id):
            raise BadRecord(Fault.BLOCKED)
        if not self._asks.allows(peer_id):  # this question waits, and with it all that the client sent after it
            await asyncio.sleep(1 / ASKS_RATE)
        while not self._may_move(peer_id, size):
            await self._wait(connection)
        ask = _ask.decode(message)
        del message
        while isinstance(ask, UploadRequest) and not self._host.may_receive(self._party(peer_id), size):
            await self._wait(connection)
        while len(answering) >= AT_ONCE:
            await asyncio.wait(answering, return_when=asyncio.FIRST_COMPLETED)
        task = asyncio.create_task(self._reply(connection, peer_id, ask, sending))
        answering.add(task)
        task.add_done_callback(answering.discard)

    def _forget(self, client: bytes) -> None:
        """Give back the payloads of a client that left so long ago that nobody asks for them any more."""
        self._forgetting.pop(client, None)
        if client not in self._clients and client in self._uploads:
            del self._uploads[client]
            if not self._uploads:
                return_free_memory()

    async def _wait(self, connection: MeteredConnection) -> None:
        """Wait a little for a limit. Raises BadRecord if the client has gone, so that its message does not stay in memory."""
        if connection.state is not State.OPEN:
            raise BadRecord(Fault.CLIENT_GONE)
        await asyncio.sleep(1 / ASKS_RATE)

    async def _reply(self, connection: MeteredConnection, peer_id: bytes, ask: Request, sending: asyncio.Lock) -> None:
        """Answer a question: answers go out in the order in which they are ready, one after the other.

        A list of announcements waits until the limits allow it. The bytes that clients do not read are bounded, see `_make_way`.
        """
        unsent = 0
        with suppress(ConnectionClosed):  # it left
            try:
                answer = await self._answer(peer_id, ask)
                del ask  # a payload that was uploaded must not wait here until the client reads the answer
                size = sum(len(each.peer_id) + len(each.signed) for each in answer.listed)
                unsent = len(answer.blob) + size
                self._unsent[connection] += unsent
                self._make_way()
                while not self._may_move(peer_id, size):
                    await self._wait(connection)
                if size and not self._host.may_send_directory(self._party(peer_id), size):
                    return  # it asks again, or elsewhere: an empty list would look as if we hid somebody
                async with sending:
                    message = msgspec.msgpack.encode(answer)
                    del answer
                    await connection.send(message)
            except BadRecord as bad:  # it breaks a rule
                log.debug("light client %s is refused: %s", short_id(peer_id), bad.title)
                await connection.close(1008, "not understood")
            finally:
                self._unsent -= {connection: unsent}  # drops the client's entry at 0

    def _make_way(self) -> None:
        """If clients leave too much unread, end one: in the address range with most unread bytes, the client with most."""
        if self._unsent.total() > MAX_UNSENT:
            crowd = of_largest_holder((client, _source(client) or client.id.bytes, size) for client, size in self._unsent.items())
            slowest = max(crowd, key=self._unsent.__getitem__)
            log.debug("a light client reads too slowly and is disconnected: %d bytes wait for it", self._unsent[slowest])
            slowest.transport.abort()

    async def _shake_hands(self, connection: MeteredConnection) -> tuple[bytes, bytes, bytes]:
        """The client's peer id, the client that must leave for it (itself: nobody), and our proof for it. Raises BadRecord."""
        source = _source(connection)
        if source and not self._handshakes.allows(source.encode()):
            raise BadRecord(Fault.RANGE_FULL)
        nonce = os.urandom(NONCE_BYTES)
        welcome = Welcome(PROTOCOL, self._peer_id, self._charter, nonce, handshake.OURS, self._membership.certificate())
        await connection.send(msgspec.msgpack.encode(welcome))
        hello = _hello.decode(await connection.next_message())
        if not verify(hello.peer_id, DOMAIN, self._peer_id + nonce + hello.nonce, hello.signature):
            raise BadRecord(Fault.WRONG_KEY)
        if not self._membership.admits(hello.peer_id, hello.certificate):
            raise BadRecord(Fault.NO_MEMBER)
        if not self._host.admits(hello.peer_id):
            raise BadRecord(Fault.BLOCKED)
        return hello.peer_id, self._leaver(hello.peer_id, source), self._identity.sign(PROOF, hello.signature)

    def _leaver(self, peer_id: bytes, source: str) -> bytes:
        """The client that must leave for this one; this one itself if there is room. Raises BadRecord if there is nobody.

        First a client that has shared nothing for the lifetime of an announcement, in the most crowded range. Else one of a range
        that is more crowded than the newcomer's will be: a few ranges cannot keep out all others, whatever they share.
        """
        ranges = {client: _source(each) or client.hex() for client, each in self._clients.items() if client != peer_id}
        crowds, own = Counter(ranges.values()), source or peer_id.hex()
        if len(ranges) < MAX_CLIENTS and crowds[own] < MAX_FROM_ONE:
            return peer_id
        shared = {client: self._shared[self._clients[client]] for client in ranges}
        here = [client for client in ranges if crowds[own] < MAX_FROM_ONE or ranges[client] == own]
        idle = [client for client in here if time.monotonic() - shared[client] > LIFETIME_S]
        crowded = [client for client in here if crowds[ranges[client]] > crowds[own] + 1]
        if not idle and not crowded:
            raise BadRecord(Fault.GATEWAY_FULL)
        return min(idle or crowded, key=lambda client: (-crowds[ranges[client]], shared[client]))

    async def _answer(self, peer_id: bytes, ask: Request) -> Response:
        try:
            match ask:
                case DirectoryRequest():
                    entries = list((await self._host.read_directory()).items())[:MAX_LISTED]
                    return Response(ask.id, listed=tuple(DirectoryEntry(origin, signed) for origin, signed in entries))
                case AnnounceRequest():
                    announced = self._checked(announcements.read(ask.signed, peer_id), peer_id)
                    payers = self._party(peer_id), CLIENTS
                    if not self._announces.has(payers) or not self._has_place(peer_id, announced.expires_at):
                        return Response(ask.id)
                    self._announces.charge(payers, 1.0)
                    self._shares(peer_id)
                    done = await self._host.announce(peer_id, ask.signed, announced.expires_at)
                    return Response(ask.id, DONE if done else b"")
                case UploadRequest():
                    self._store(peer_id, ask.blob)
                    return Response(ask.id, consent.give(self._identity, self._charter, peer_id, time.time()))
                case PullRequest():
                    return Response(ask.id, await self._fetched(peer_id, ask))
        except PeerAway as away:  # the client asks again, or another gateway
            log.debug("light client %s gets an empty answer: %s", short_id(peer_id), away)
            return Response(ask.id)

    async def _fetched(self, client: bytes, ask: PullRequest) -> bytes:
        if not self._may_move(client, FAILED_PULL_COST):
            return b""
        blob = self.uploaded(ask.sha256) or await self._passed_on(client, ask)
        valid = len(blob) <= MAX_BLOB and hashlib.sha256(blob).digest() == ask.sha256  # the client would refuse a longer one
        fits = valid and self._may_move(client, len(blob))
        return self._host.serve_payload(client, self._source(client) or HIDDEN, ask.sha256, blob) if fits else b""

    async def _passed_on(self, client: bytes, ask: PullRequest) -> bytes:
        """A payload from its origin, which counts it as ours; empty if our share is used up for PATIENCE_S.

        Until its size is known it is charged as the largest possible payload.
        """
        if ask.peer_id == self._peer_id:
            return await self._host.pull(ask.peer_id, ask.sha256, PATIENCE_S)
        payers, until = (client + ask.peer_id, ask.peer_id), time.monotonic() + PATIENCE_S
        while not self._passed.has(payers):
            if time.monotonic() > until:
                return b""
            await asyncio.sleep(1 / ASKS_RATE)
        self._passed.charge(payers, MAX_BLOB)
        size = FAILED_PULL_COST
        try:
            blob = await self._host.pull(ask.peer_id, ask.sha256, PATIENCE_S)
            size += len(blob)
            return blob
        finally:
            self._passed.charge(payers, size - MAX_BLOB)

    def _may_move(self, client: bytes, size: int) -> bool:
        """Whether so many bytes may come from or go to a client now. Its address range counts too, because names cost nothing."""
        own, source = (self._bytes, client, size), self._source(client)
        return all_allow(own, (self._range_bytes, source.encode(), size)) if source else all_allow(own)

    def _party(self, client: bytes) -> bytes:
        """Who shares a limit with this client: its address range, or the client alone if it has none."""
        return self._source(client).encode() or client

    def _source(self, client: bytes) -> str:
        here = self._clients.get(client)
        return _source(here) if here else ""

    def _checked(self, announced: Announcement, peer_id: bytes) -> Announcement:
        if announced.charter != self._charter or not self._membership.admits(peer_id, announced.certificate):
            raise BadRecord(Fault.OTHER_SWARM)
        return announced

    def _has_place(self, client: bytes, until: float) -> bool:
        """Whether a client may be announced: an address range gets as many names as clients, even if these come and go quickly.

        The directory of a peer has room for that many names from one gateway.
        """
        now, source = time.time(), self._source(client)
        self._named = {name: each for name, each in self._named.items() if each[1] > now}
        if source and client not in self._named and [each for each, _ in self._named.values()].count(source) >= MAX_FROM_ONE:
            return False
        self._named[client] = source, min(until, now + MAX_LIFETIME_S)
        return True

    def _shares(self, peer_id: bytes) -> None:
        if here := self._clients.get(peer_id):  # if not, it has just left
            self._shared[here] = time.monotonic()

    def _store(self, peer_id: bytes, blob: bytes) -> None:
        self._shares(peer_id)
        own = self._uploads.setdefault(peer_id, OrderedDict())
        own[hashlib.sha256(blob).digest()] = blob
        self._uploads.move_to_end(peer_id)
        while len(own) > MAX_PAYLOADS:
            own.popitem(last=False)
        while len(self._uploads) > MAX_CLIENTS:  # a newcomer displaces only clients that have left
            del self._uploads[next(each for each in self._uploads if each not in self._clients)]
        sizes = {client: sum(map(len, each.values())) for client, each in self._uploads.items()}
        while sum(sizes.values()) > MAX_UPLOADED:
            largest = max(sizes, key=sizes.__getitem__)
            sizes[largest] -= len(self._uploads[largest].popitem(last=False)[1])


OpenGateway = Callable[[HostNode], GatewayServer]


def _reason(error: Exception) -> str:
    return error.title if isinstance(error, BadRecord) else type(error).__name__


def _source(connection: MeteredConnection) -> str:
    """The address range of a client; empty on a local network, and behind a web server on this computer."""
    address = connection.remote_address
    return source_of(f"/ip/{address[0]}", relayed=False) if address else ""
