"""The gateway: serves light clients, which reach nothing but a WebSocket, with the directory and with payloads.

It can withhold, not forge: announcements are signed by their origins, payloads are named by their hash. A client shows first
that its key is its own; what it may use here is counted by that key.
"""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from waggle.errors import UNREADABLE, BadRecord
from waggle.swarm import announcement as announcements
from waggle.swarm.admission import CERTIFICATE_BYTES, Admission
from waggle.swarm.announcement import Announcement
from waggle.swarm.dht import PeerAway
from waggle.swarm.identity import PEER_ID_BYTES, SIGNATURE_BYTES, verify
from waggle.swarm.quota import Quota
from waggle.swarm.record import MAX_BLOB
from waggle.tasks.charter import PROTOCOL

DOMAIN = b"waggle/gateway/1\0"
NONCE_BYTES = 32
MAX_CLIENTS = 64
KEPT = 2  # payloads of one client: the newest, and the one before it
MAX_LISTED = 256  # announcements in one answer
ASKS_RATE, ASKS_BURST = 10.0, 60.0  # of one client, a second and at once
BYTES_RATE, BYTES_BURST = 0.5e6, 8e6  # to and from one client
PATIENCE_S = 4.0  # for one pull on its behalf

PeerId = Annotated[bytes, msgspec.Meta(min_length=PEER_ID_BYTES, max_length=PEER_ID_BYTES)]
Digest = announcements.Digest


class Welcome(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The gateway's first word: who it is, for which charter, and what to sign."""

    protocol: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    peer_id: PeerId
    charter: Digest
    nonce: Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]


class Hello(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The client's first word. `signature` is over gateway | nonce, so that no gateway can pass it on to another."""

    peer_id: PeerId
    certificate: Annotated[bytes, msgspec.Meta(max_length=CERTIFICATE_BYTES)]
    signature: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]


class Directory(msgspec.Struct, frozen=True, array_like=True, tag="d", forbid_unknown_fields=True):
    """Who announces what?"""

    id: int


class Announce(msgspec.Struct, frozen=True, array_like=True, tag="a", forbid_unknown_fields=True):
    """Put this into the directory for me."""

    id: int
    signed: Annotated[bytes, msgspec.Meta(max_length=announcements.MAX_BYTES)]


class Lodge(msgspec.Struct, frozen=True, array_like=True, tag="l", forbid_unknown_fields=True):
    """Give this out for me."""

    id: int
    blob: Annotated[bytes, msgspec.Meta(min_length=1, max_length=MAX_BLOB)]


class Pull(msgspec.Struct, frozen=True, array_like=True, tag="p", forbid_unknown_fields=True):
    """Fetch me what this peer calls so."""

    id: int
    peer_id: PeerId
    sha256: Digest


Ask = Directory | Announce | Lodge | Pull


class Listed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One entry of the directory, as its origin signed it."""

    peer_id: PeerId
    signed: Annotated[bytes, msgspec.Meta(max_length=announcements.MAX_BYTES)]


class Answer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """To the question of the same id; what was not asked for stays empty."""

    id: int
    blob: Annotated[bytes, msgspec.Meta(max_length=MAX_BLOB)] = b""
    listed: Annotated[tuple[Listed, ...], msgspec.Meta(max_length=MAX_LISTED)] = ()


DONE = b"1"
_hello, _ask = msgspec.msgpack.Decoder(Hello), msgspec.msgpack.Decoder(Ask)


class Gateway:
    """What a full node lends to light clients: `listed`, `announce`, `pull` are its own ways into the swarm."""

    def __init__(
        self,
        charter: bytes,
        peer_id: bytes,
        admission: Admission,
        *,
        listed: Callable[[], Awaitable[dict[bytes, bytes]]],
        announce: Callable[[bytes, bytes, float], Awaitable[bool]],
        pull: Callable[[bytes, bytes, float], Awaitable[bytes]],
    ) -> None:
        self._charter = charter
        self._peer_id = peer_id
        self._admission = admission
        self._listed, self._announce, self._pull = listed, announce, pull
        self._asks, self._bytes = Quota(ASKS_RATE, ASKS_BURST), Quota(BYTES_RATE, BYTES_BURST)
        self._clients: dict[bytes, ServerConnection] = {}
        self._lodged: OrderedDict[bytes, OrderedDict[bytes, bytes]] = OrderedDict()  # client -> sha256 -> payload

    def get(self, sha256: bytes) -> bytes:
        """A payload lodged by a client; empty where there is none."""
        return next((each[sha256] for each in self._lodged.values() if sha256 in each), b"")

    async def serve(self, connection: ServerConnection) -> None:
        """Serve one client until it leaves or breaks a rule. Never raises for anything that it sends."""
        peer_id = b""
        try:
            peer_id = await self._greet(connection)
            while True:
                message = await connection.recv(decode=False)
                if not self._asks.allows(peer_id) or not self._bytes.allows(peer_id, len(message)):
                    await connection.close(1008, "too much")
                    return
                await connection.send(msgspec.msgpack.encode(await self._answer(peer_id, _ask.decode(message))))
        except (BadRecord, *UNREADABLE):  # it does not speak as agreed
            await connection.close(1008, "not understood")
        except ConnectionClosed:  # it left
            return
        finally:
            if self._clients.get(peer_id) is connection:
                del self._clients[peer_id]

    async def _greet(self, connection: ServerConnection) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        await connection.send(msgspec.msgpack.encode(Welcome(PROTOCOL, self._peer_id, self._charter, nonce)))
        hello = _hello.decode(await connection.recv(decode=False))
        if not verify(hello.peer_id, DOMAIN, self._peer_id + nonce, hello.signature):
            raise BadRecord("not its key")
        if not self._admission.admits(hello.peer_id, hello.certificate):
            raise BadRecord("no member of this private swarm")
        if hello.peer_id not in self._clients and len(self._clients) >= MAX_CLIENTS:
            raise BadRecord("full")
        before = self._clients.get(hello.peer_id)
        self._clients[hello.peer_id] = connection
        if before is not None:  # it came back before we noticed that it had gone
            await before.close(1008, "came again")
        await connection.send(DONE)
        return hello.peer_id

    async def _answer(self, peer_id: bytes, ask: Ask) -> Answer:
        try:
            match ask:
                case Directory():
                    found = list((await self._listed()).items())[:MAX_LISTED]
                    return Answer(ask.id, listed=tuple(Listed(origin, signed) for origin, signed in found))
                case Announce():
                    announced = self._checked(announcements.read(ask.signed, peer_id), peer_id)
                    done = await self._announce(peer_id, ask.signed, announced.expires_at)
                    return Answer(ask.id, DONE if done else b"")
                case Lodge():
                    self._keep(peer_id, ask.blob)
                    return Answer(ask.id, DONE)
                case Pull():
                    blob = self.get(ask.sha256) or await self._pull(ask.peer_id, ask.sha256, PATIENCE_S)
                    fits = hashlib.sha256(blob).digest() == ask.sha256 and self._bytes.allows(peer_id, len(blob))
                    return Answer(ask.id, blob if fits else b"")
        except PeerAway:  # somebody is away: the client asks again, or somewhere else
            return Answer(ask.id)

    def _checked(self, announced: Announcement, peer_id: bytes) -> Announcement:
        if announced.charter != self._charter or not self._admission.admits(peer_id, announced.certificate):
            raise BadRecord("another swarm's announcement")
        return announced

    def _keep(self, peer_id: bytes, blob: bytes) -> None:
        own = self._lodged.setdefault(peer_id, OrderedDict())
        own[hashlib.sha256(blob).digest()] = blob
        self._lodged.move_to_end(peer_id)
        while len(own) > KEPT:
            own.popitem(last=False)
        while len(self._lodged) > MAX_CLIENTS:
            self._lodged.popitem(last=False)
