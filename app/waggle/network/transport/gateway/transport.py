"""The transport of a light client: takes part through gateways, where hivemind is missing or only the web is reachable.

This module keeps connections to the gateways open; `network.py` asks them questions.
"""

import asyncio
import logging
import os
import random

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from waggle.network.identity.keys import Identity, verify
from waggle.network.messages import announcement as announcements
from waggle.network.messages import handshake
from waggle.network.messages.events import Reach, ReachChanged
from waggle.network.messages.gateway_frames import DOMAIN, MAX_LISTED, NONCE_BYTES, PROOF, Hello, Welcome
from waggle.network.messages.gateway_paths import WAITING
from waggle.network.messages.invite import MAX_GATEWAYS
from waggle.network.messages.options import SwarmOptions
from waggle.network.messages.rollout_record import MAX_BLOB
from waggle.network.transport.gateway.address import parse_address
from waggle.network.transport.gateway.bounded_connection import BoundedConnection
from waggle.network.transport.gateway.network import CALL_S, FAILURES, GatewayConnection, GatewayNetwork
from waggle.network.transport.interface import Callbacks, PeerAway
from waggle.network.transport.tasks import end, watch

log = logging.getLogger(__name__)

MAX_ANSWER = MAX_BLOB + MAX_LISTED * (announcements.MAX_BYTES + 64)  # bytes
_welcome = msgspec.msgpack.Decoder(Welcome)


class _WithoutRedirects(connect):
    """Connects to the address that a person chose, and nowhere a gateway redirects it to."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class _BoundedClientConnection(BoundedConnection, ClientConnection):
    """A connection to a gateway, which ends if the gateway reads nothing: our questions would fill our memory."""


class GatewayTransport:
    """Keeps the gateways open. Everything runs on the event loop that called `start`."""

    calls_peers = False
    is_away = False  # a light client has no network process

    def __init__(self, options: SwarmOptions, identity: Identity, callbacks: Callbacks) -> None:
        self._options = options
        self._identity = identity
        self._charter = callbacks.services.digest
        self._callbacks = callbacks
        self._network = GatewayNetwork(
            self._charter, callbacks.membership, callbacks.report, callbacks.bandwidth, identity.peer_id
        )
        self._reported_reach: ReachChanged | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def network(self) -> GatewayNetwork:
        """The open gateways. Raises PeerAway if there is none."""
        if not self._network.open:
            raise PeerAway("no gateway is open")
        return self._network

    @property
    def pid(self) -> int:
        """Raises PeerAway: a light client has no network process."""
        raise PeerAway("no process of its own")

    async def start(self) -> None:
        """Begin to call the gateways. Raises SwarmError for a malformed address."""
        addresses = tuple(dict.fromkeys(self._options.gateways))[:MAX_GATEWAYS]
        for address in addresses:
            parse_address(address)
        self._report_reach("connecting" if addresses else "alone")
        self._tasks = [asyncio.create_task(self._stay_connected(address)) for address in addresses]

    async def refresh_peers(self) -> None:
        """Do nothing: a light client is connected to gateways only."""

    async def run(self) -> None:
        """Return when closed."""
        await watch(self._tasks)

    async def close(self) -> None:
        """End the connections. Safe to call twice."""
        await end(self._tasks)
        self._network.open.clear()

    async def _stay_connected(self, address: str) -> None:
        number = self._options.gateways.index(address) + 1
        while True:
            reason = "it closed the connection"
            try:
                await self._connect(address)
            except PeerAway as away:  # it is called again after a pause
                reason = str(away)
            self._report_reach("connected" if self._network.open else "alone")
            pause = self._options.rejoin * random.uniform(0.5, 1.5)
            log.debug("gateway %d is called again in %.0f s: %s", number, pause, reason)
            await asyncio.sleep(pause)

    async def _connect(self, address: str) -> None:
        """Connect to one gateway and serve the connection until it ends. Raises PeerAway if it cannot be used."""
        try:
            url, expected = parse_address(address)
            async with _WithoutRedirects(
                url, create_connection=_BoundedClientConnection, max_size=MAX_ANSWER, max_queue=WAITING, compression=None,
                open_timeout=CALL_S,
            ) as websocket:  # fmt: skip
                async with asyncio.timeout(CALL_S):
                    gateway = GatewayConnection(address, await self._shake_hands(websocket, expected), websocket)
                first = not self._network.open
                self._network.open[address] = gateway
                try:
                    self._report_reach("connected")
                    if first:
                        self._callbacks.on_joined()
                    await gateway.listen()
                finally:
                    self._network.open.pop(address, None)
        except (ImportError, *FAILURES) as error:  # ImportError: websockets needs another package for a SOCKS proxy
            raise PeerAway(f"it does not answer ({type(error).__name__})") from error

    async def _shake_hands(self, websocket: ClientConnection, expected: bytes) -> bytes:
        """The gateway's peer id, after both sides have proved their keys. Raises PeerAway if it is not a gateway for us."""
        welcome = _welcome.decode(await websocket.recv(decode=False))
        if expected and welcome.peer_id != expected:
            raise PeerAway("it has another key than its address names")
        if welcome.peer_id in {gateway.peer_id for gateway in self._network.open.values()}:
            raise PeerAway("it is open by another address")  # a gateway closes the older of two connections of one peer
        if refusal := handshake.refusal(welcome, self._charter):
            if expected:  # without a proved key, anybody could say this in the name of a peer
                self._callbacks.on_handshake(welcome.peer_id, refusal)
            raise PeerAway("it is of another swarm or version")  # `refusal` may quote it: only the page Peers shows that
        if not self._callbacks.membership.admits(welcome.peer_id, welcome.certificate):
            raise PeerAway("it is no member of this private swarm")
        # With a nonce of ours, so that nobody can replay both sides of a handshake. Gateways older than certificates accept none.
        nonce = os.urandom(NONCE_BYTES) if welcome.certificate else b""
        signature = self._identity.sign(DOMAIN, welcome.peer_id + welcome.nonce + nonce)
        certificate = self._callbacks.membership.certificate()
        hello = msgspec.structs.astuple(Hello(self._identity.peer_id, certificate, signature, nonce))
        await websocket.send(msgspec.msgpack.encode(hello if nonce else hello[:-1]))
        if not verify(welcome.peer_id, PROOF, signature, await websocket.recv(decode=False)):
            raise PeerAway("it cannot prove its key")
        self._callbacks.on_handshake(welcome.peer_id, "")
        return welcome.peer_id

    def _report_reach(self, reach: Reach) -> None:
        before, here = self._reported_reach, len(self._network.open)
        event = ReachChanged(reach=reach, peers=here, tried=len(self._options.gateways), way="gateway")
        if before is None or before.reach != reach:
            log.info("the swarm: %s; %d of %d gateways are open", reach, here, len(self._options.gateways))
        if event != before:
            self._reported_reach = event
            self._callbacks.report(event)
