"""The gateway: serves light clients, which reach nothing but a WebSocket, with the directory and with payloads.

It can withhold, not forge: announcements are signed by their origins, payloads are named by their hash. A client shows first
that its key is its own, and then the gateway that its own is; what the client may use here is counted by that key. In a private
swarm both show that they are members. Whoever passes all of this on between the two reads what they say: nothing here is hidden.
"""

import asyncio
import hashlib
import logging
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from waggle.core.errors import UNREADABLE, BadRecord
from waggle.core.peer_id import short_id
from waggle.network.identity.keys import Identity, verify
from waggle.network.identity.membership import Membership
from waggle.network.limits.address_ranges import HIDDEN, source_of
from waggle.network.limits.rate_limits import JointRateLimit, RateLimit, all_allow, of_largest_holder
from waggle.network.messages import announcement as announcements
from waggle.network.messages import handshake
from waggle.network.messages.announcement import LIFETIME_S, MAX_LIFETIME_S, Announcement
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
from waggle.network.transport.interface import DEPOSIT, PeerAway
from waggle.tasks.charter import PROTOCOL

log = logging.getLogger(__name__)

AT_ONCE = 4  # questions of one client, of which PULLS: those from silent peers must not hold up the others
PULLS = AT_ONCE - 1
MAX_CLIENTS = 64  # then some make room for others
MAX_FROM_ONE = 32  # of them from one address range: a school, or somebody who makes up names
GREETING_S = 10.0  # for a stranger to say who it is
GREETINGS_RATE, GREETINGS_BURST = 1.0, 64.0  # of one address range: every new name brings a full quota
MAX_PAYLOADS = 3  # payloads of one client: the newest, the one before it, and its answer sheet
MAX_LODGED = 64 * 1024 * 1024  # bytes of all clients: beyond that whoever holds most loses its oldest
MAX_UNSENT = 64 * 1024 * 1024  # bytes of all that clients have asked for and not taken
ASKS_RATE, ASKS_BURST = 10.0, 60.0  # of one client, a second and at once
ANNOUNCES_RATE, ANNOUNCES_BURST = 2.0, 20.0  # of all from one range: each is stored at many nodes, which count it as ours
PASSED_RATE, PASSED_BURST = 62.5e3, 1e6  # bytes pulled of any one peer for one client
ALL = 8.0  # times as much of both, for all clients: half of what that peer gives us is left for ourselves
BYTES_RATE, BYTES_BURST = 0.5e6, 8e6  # to and from one client
RANGE = 4.0  # times as much: all clients of one address range together
PATIENCE_S = 4.0  # for one pull on its behalf


DONE = b"1"
CLIENTS = "all clients"
_hello, _ask = msgspec.msgpack.Decoder(Hello), msgspec.msgpack.Decoder(Request)


class Gateway:
    """What a full node lends to light clients: `listed`, `announce`, `pull` are its own ways into the swarm.

    `admits` says whether a peer is answered at all, `give` counts a payload that goes to a client of a source, `take` one that
    came, `tell` announcements that go to a source: all three refuse what is beyond the limits of this node.
    """

    def __init__(
        self,
        charter: bytes,
        identity: Identity,
        admission: Membership,
        *,
        admits: Callable[[bytes], bool],
        give: Callable[[bytes, str, bytes, bytes], bytes],
        take: Callable[[bytes, int], bool],
        tell: Callable[[bytes, int], bool],
        listed: Callable[[], Awaitable[dict[bytes, bytes]]],
        announce: Callable[[bytes, bytes, float], Awaitable[bool]],
        pull: Callable[[bytes, bytes, float], Awaitable[bytes]],
        patience: float = GREETING_S,
    ) -> None:
        self._patience = patience
        self._charter = charter
        self._identity, self._peer_id = identity, identity.peer_id
        self._admission = admission
        self._admits, self._give, self._take, self._tell = admits, give, take, tell
        self._listed, self._announce, self._pull = listed, announce, pull
        self._asks, self._bytes = RateLimit(ASKS_RATE, ASKS_BURST), RateLimit(BYTES_RATE, BYTES_BURST)
        self._range_bytes = RateLimit(RANGE * BYTES_RATE, RANGE * BYTES_BURST)
        self._announces, self._passed = (
            JointRateLimit(ANNOUNCES_RATE, ANNOUNCES_BURST, ALL),
            JointRateLimit(PASSED_RATE, PASSED_BURST, ALL),
        )
        self._greetings = RateLimit(GREETINGS_RATE, GREETINGS_BURST)
        self._unsent = Counter[ServerConnection]()  # bytes of payloads that clients have yet to take
        self._clients: dict[bytes, ServerConnection] = {}
        self._shared: dict[ServerConnection, float] = {}  # when its client last announced or left something, or came; monotonic
        self._named: dict[
            bytes, tuple[str, float]
        ] = {}  # who was announced, from which address range, and until when; unix seconds
        self._lodged: OrderedDict[bytes, OrderedDict[bytes, bytes]] = OrderedDict()  # client -> sha256 -> payload

    def get(self, sha256: bytes) -> bytes:
        """A payload lodged by a client; empty where there is none."""
        return next((each[sha256] for each in self._lodged.values() if sha256 in each), b"")

    async def serve(self, connection: ServerConnection) -> None:
        """Serve one client until it leaves or breaks a rule. Never raises for anything that it sends."""
        peer_id, answering, sending = b"", set[asyncio.Task[None]](), asyncio.Lock()
        try:
            async with asyncio.timeout(self._patience):
                peer_id, leaver, proof = await self._greet(connection)
            for each in {peer_id, leaver} & self._clients.keys():
                self._clients.pop(each).transport.abort()  # no goodbye: whoever reads nothing would hold up the newcomer
            self._clients[peer_id], self._shared[connection] = connection, time.monotonic()
            connection.protocol.max_message_size = MAX_MESSAGE
            await connection.send(proof)
            while True:
                message = await connection.recv(decode=False)
                if not self._admits(peer_id):
                    raise BadRecord("blocked")
                if not self._asks.allows(peer_id):  # it waits, as does all that it has sent behind this
                    await asyncio.sleep(1 / ASKS_RATE)
                while not self._may_move(peer_id, len(message)):
                    await self._wait(connection)
                ask = _ask.decode(message)
                while isinstance(ask, UploadRequest) and not self._take(self._source(peer_id).encode() or peer_id, len(message)):
                    await self._wait(connection)
                while len(answering) >= AT_ONCE:
                    await asyncio.wait(answering, return_when=asyncio.FIRST_COMPLETED)
                task = asyncio.create_task(self._reply(connection, peer_id, ask, sending))
                answering.add(task)
                task.add_done_callback(answering.discard)
        except (BadRecord, TimeoutError, *UNREADABLE) as error:  # it does not speak as agreed, or not at all
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

    async def _wait(self, connection: ServerConnection) -> None:
        """For more of a share that is used up. Raises BadRecord where the client has gone: it must not leave its message here."""
        if connection.state is not State.OPEN:
            raise BadRecord("gone")
        await asyncio.sleep(1 / ASKS_RATE)

    async def _reply(self, connection: ServerConnection, peer_id: bytes, ask: Request, sending: asyncio.Lock) -> None:
        """Answers come as they are found, each with the number of its question; announcements when there is room for them.

        The next one goes out when the client has taken the last. What is not taken is bounded in all, see `_make_way`.
        """
        unsent = 0
        with suppress(ConnectionClosed):  # it left
            try:
                answer = await self._answer(peer_id, ask)
                unsent = len(answer.blob)
                self._unsent[connection] += unsent
                self._make_way()
                size = sum(len(each.peer_id) + len(each.signed) for each in answer.listed)
                while not self._may_move(peer_id, size):
                    await self._wait(connection)
                if size and not self._tell(self._source(peer_id).encode() or peer_id, size):
                    return  # it asks again, or elsewhere: without them the answer would look as if we hid somebody
                async with sending:
                    await connection.send(msgspec.msgpack.encode(answer))
            except BadRecord as bad:  # it does not speak as agreed
                log.debug("light client %s is refused: %s", short_id(peer_id), bad.title)
                await connection.close(1008, "not understood")
            finally:
                self._unsent -= {connection: unsent}  # which forgets whoever has taken all

    def _make_way(self) -> None:
        """Where clients take too little of what they asked for, one leaves: of the range that waits for most, whoever does."""
        if self._unsent.total() > MAX_UNSENT:
            crowd = of_largest_holder((client, _source(client) or client.id.bytes, size) for client, size in self._unsent.items())
            max(crowd, key=self._unsent.__getitem__).transport.abort()

    async def _greet(self, connection: ServerConnection) -> tuple[bytes, bytes, bytes]:
        """Who the client is, who must leave for it (its own name: nobody), and what shows it who we are."""
        source = _source(connection)
        if source and not self._greetings.allows(source.encode()):
            raise BadRecord("too many from there")
        nonce = os.urandom(NONCE_BYTES)
        welcome = Welcome(PROTOCOL, self._peer_id, self._charter, nonce, handshake.OURS, self._admission.certificate())
        await connection.send(msgspec.msgpack.encode(welcome))
        hello = _hello.decode(await connection.recv(decode=False))
        if not verify(hello.peer_id, DOMAIN, self._peer_id + nonce + hello.nonce, hello.signature):
            raise BadRecord("not its key")
        if not self._admission.admits(hello.peer_id, hello.certificate):
            raise BadRecord("no member of this private swarm")
        if not self._admits(hello.peer_id):
            raise BadRecord("blocked")
        return hello.peer_id, self._leaver(hello.peer_id, source), self._identity.sign(PROOF, hello.signature)

    def _leaver(self, peer_id: bytes, source: str) -> bytes:
        """Who must leave for this client; its own name where there is room. Raises BadRecord where nobody must.

        That is one who has shared nothing for as long as an announcement lasts, in the most crowded range first. Else one of a
        range more crowded than the newcomer's will be: a few ranges cannot keep out all others, whatever they share.
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
            raise BadRecord("full")
        return min(idle or crowded, key=lambda client: (-crowds[ranges[client]], shared[client]))

    async def _answer(self, peer_id: bytes, ask: Request) -> Response:
        try:
            match ask:
                case DirectoryRequest():
                    entries = list((await self._listed()).items())[:MAX_LISTED]
                    return Response(ask.id, listed=tuple(DirectoryEntry(origin, signed) for origin, signed in entries))
                case AnnounceRequest():
                    announced = self._checked(announcements.read(ask.signed, peer_id), peer_id)
                    payers = self._source(peer_id).encode() or peer_id, CLIENTS
                    if not self._announces.has(payers) or not self._has_place(peer_id, announced.expires_at):
                        return Response(ask.id)
                    self._announces.charge(payers, 1.0)
                    self._shares(peer_id)
                    done = await self._announce(peer_id, ask.signed, announced.expires_at)
                    return Response(ask.id, DONE if done else b"")
                case UploadRequest():
                    self._keep(peer_id, ask.blob)
                    return Response(ask.id, DONE)
                case PullRequest():
                    return Response(ask.id, await self._fetched(peer_id, ask))
        except PeerAway as away:  # somebody is away: the client asks again, or somewhere else
            log.debug("light client %s gets no answer: %r", short_id(peer_id), away)
            return Response(ask.id)

    async def _fetched(self, client: bytes, ask: PullRequest) -> bytes:
        if not self._may_move(client, DEPOSIT):
            return b""
        blob = self.get(ask.sha256) or await self._passed_on(client, ask)
        known = len(blob) <= MAX_BLOB and hashlib.sha256(blob).digest() == ask.sha256  # a longer one its client must refuse
        fits = known and self._may_move(client, len(blob))
        return self._give(client, self._source(client) or HIDDEN, ask.sha256, blob) if fits else b""

    async def _passed_on(self, client: bytes, ask: PullRequest) -> bytes:
        """From its origin, which counts it as ours: as the largest there is, until it is here. Waits for its turn for a while."""
        if ask.peer_id == self._peer_id:
            return await self._pull(ask.peer_id, ask.sha256, PATIENCE_S)
        payers, until = (client + ask.peer_id, ask.peer_id), time.monotonic() + PATIENCE_S
        while not self._passed.has(payers):
            if time.monotonic() > until:
                return b""
            await asyncio.sleep(1 / ASKS_RATE)
        self._passed.charge(payers, MAX_BLOB)
        size = DEPOSIT
        try:
            blob = await self._pull(ask.peer_id, ask.sha256, PATIENCE_S)
            size += len(blob)
            return blob
        finally:
            self._passed.charge(payers, size - MAX_BLOB)

    def _may_move(self, client: bytes, size: int) -> bool:
        """Whether so much may come from, or go to, a client now: new names do not bring new shares without end."""
        own, source = (self._bytes, client, size), self._source(client)
        return all_allow(own, (self._range_bytes, source.encode(), size)) if source else all_allow(own)

    def _source(self, client: bytes) -> str:
        here = self._clients.get(client)
        return _source(here) if here else ""

    def _checked(self, announced: Announcement, peer_id: bytes) -> Announcement:
        if announced.charter != self._charter or not self._admission.admits(peer_id, announced.certificate):
            raise BadRecord("another swarm's announcement")
        return announced

    def _has_place(self, client: bytes, until: float) -> bool:
        """Whether it may be announced: as many names from one address range as clients, however soon others come in their place.

        The directory has room for so many that come through one gateway.
        """
        now, source = time.time(), self._source(client)
        self._named = {name: each for name, each in self._named.items() if each[1] > now}
        if source and client not in self._named and [each for each, _ in self._named.values()].count(source) >= MAX_FROM_ONE:
            return False
        self._named[client] = source, min(until, now + MAX_LIFETIME_S)
        return True

    def _shares(self, peer_id: bytes) -> None:
        if here := self._clients.get(peer_id):  # else it has just left
            self._shared[here] = time.monotonic()

    def _keep(self, peer_id: bytes, blob: bytes) -> None:
        self._shares(peer_id)
        own = self._lodged.setdefault(peer_id, OrderedDict())
        own[hashlib.sha256(blob).digest()] = blob
        self._lodged.move_to_end(peer_id)
        while len(own) > MAX_PAYLOADS:
            own.popitem(last=False)
        while len(self._lodged) > MAX_CLIENTS:  # one of them has left: newcomers push out nobody who is here
            del self._lodged[next(each for each in self._lodged if each not in self._clients)]
        sizes = {client: sum(map(len, each.values())) for client, each in self._lodged.items()}
        while sum(sizes.values()) > MAX_LODGED:
            largest = max(sizes, key=sizes.__getitem__)
            sizes[largest] -= len(self._lodged[largest].popitem(last=False)[1])


def _reason(error: Exception) -> str:
    return error.title if isinstance(error, BadRecord) else type(error).__name__


def _source(connection: ServerConnection) -> str:
    """The address range of a client; empty at home, in a classroom, and behind a web server on this computer."""
    address = connection.remote_address
    return source_of(f"/ip/{address[0]}", relayed=False) if address else ""
