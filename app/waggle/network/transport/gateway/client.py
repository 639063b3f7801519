"""The light client: takes part through gateways, where hivemind cannot be imported or a network blocks everything but the web.

It keeps the gateways open; what is asked of them is in gates.
"""

import asyncio
import logging
import os
import random
import re
from collections.abc import Callable, Sequence

import httpx2
import msgspec
from websockets.asyncio.client import ClientConnection, connect

from waggle.core.errors import CharterError, SwarmError
from waggle.core.peer_id import peer_id_of
from waggle.core.resumable_download import require_way_out
from waggle.network.identity.keys import Identity, verify
from waggle.network.identity.membership import Membership
from waggle.network.limits.bandwidth import BandwidthLimiter
from waggle.network.messages import handshake
from waggle.network.messages.addresses import is_gateway
from waggle.network.messages.events import NetworkEvent, Reach, ReachChanged
from waggle.network.messages.gateway_frames import DOMAIN, NONCE_BYTES, PROOF, Hello, Welcome
from waggle.network.messages.gateway_paths import CHARTER, GATEWAY, WAITING
from waggle.network.messages.invite import MAX_GATEWAYS
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.gateway.bounded_connection import Read
from waggle.network.transport.gateway.pool import CALL_S, FAILURES, Gate, Gates
from waggle.network.transport.interface import Callbacks, PeerAway
from waggle.network.transport.tasks import end, watch
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter

log = logging.getLogger(__name__)

MAX_ANSWER = 4 * 1024 * 1024
_welcome = msgspec.msgpack.Decoder(Welcome)


async def fetch_charter(options: SwarmOptions, digest: bytes) -> Charter:
    """Ask the gateways for the charter of this hash, and check it; raises SwarmError, and CharterError for a wrong one."""
    if not options.gateways:
        raise SwarmError(
            "This computer takes part through gateways alone, and none is named.",
            "Name the gateway of a member in swarm.gateways.",
        )
    charter = await find_charter(options.gateways, digest)
    if charter is None:
        raise SwarmError("No gateway of this swarm answers.", "Check the internet connection, or ask for another gateway.")
    return charter


async def find_charter(gateways: Sequence[str], digest: bytes) -> Charter | None:
    """The same; None where no gateway answers. Raises SwarmError for what stands on this side, and CharterError."""
    wrong: CharterError | None = None
    async with _client() as client:
        for address, _ in map(_pinned, gateways[:MAX_GATEWAYS]):
            try:
                async with asyncio.timeout(CALL_S):  # in all: one that gives a byte now and then is not there
                    document = await _document(client, re.sub(r"^ws", "http", address).removesuffix(GATEWAY) + CHARTER)
                if document:
                    return charters.decode(document, expected=digest)
            except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError):  # the next one may be there
                continue
            except CharterError as error:  # damaged, or a lie: another gateway may have the true one
                wrong = error
    if wrong is not None:
        raise wrong
    return None


def _client() -> httpx2.AsyncClient:
    """Goes to the web by the way that the system names; raises SwarmError."""
    require_way_out(SwarmError)
    return httpx2.AsyncClient(timeout=CALL_S, headers={"Accept-Encoding": "identity"})


def _pinned(address: str) -> tuple[str, bytes]:
    """Where a gateway is, and whose key it must have: wss://example.org/gateway#12D3... Raises SwarmError; empty: anybody's."""
    where, _, who = address.partition("#")
    if not is_gateway(where):
        raise SwarmError(f"{address} is no gateway's address.", "It looks like wss://example.org/gateway.")
    try:
        return where, peer_id_of(who) if who else b""
    except ValueError as error:
        raise SwarmError(f"{who} is no peer's id.", f"Copy the address of the gateway {where} whole.") from error


async def _document(client: httpx2.AsyncClient, page: str) -> bytes:
    """What stands there, up to a little more than any charter; empty where nothing does."""
    document = b""
    async with client.stream("GET", page) as answer:
        async for part in answer.aiter_raw():  # as it came: unpacking would let a gateway choose how much memory it takes
            document += part
            if len(document) > charters.MAX_BYTES:
                break
    return document if answer.status_code == 200 else b""


class _Straight(connect):
    """Goes to the address that a person chose, and nowhere that a gateway sends it."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class _Read(Read, ClientConnection):
    """To a gateway, which is given up where it reads nothing: else all that it is asked would fill our memory."""


class LightConnection:
    """Keeps the gateways open. Everything runs on the loop that called `start`."""

    calls = False

    def __init__(
        self,
        options: SwarmOptions,
        identity: Identity,
        charter: bytes,
        admission: Membership,
        tell: Callable[[NetworkEvent], None],
        joined: Callable[[], None],
        traffic: BandwidthLimiter | None = None,
        greeted: Callable[[bytes, str], None] = lambda peer_id, refusal: None,
    ) -> None:
        self._greeted = greeted
        self._options = options
        self._identity = identity
        self._charter = charter
        self._admission = admission
        self._tell = tell
        self._joined = joined
        self._gates = Gates(charter, admission, tell, traffic, identity.peer_id)
        self._reported_reach: ReachChanged | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    def of(cls, options: SwarmOptions, identity: Identity, callbacks: Callbacks) -> "LightConnection":
        """The transport of a node that goes through gateways."""
        return cls(
            options, identity, callbacks.services.digest, callbacks.admission, callbacks.report, callbacks.joined,
            callbacks.traffic, callbacks.greeted,
        )  # fmt: skip

    @property
    def dht(self) -> Gates:
        """The open gateways; raises PeerAway where there is none."""
        if not self._gates.open:
            raise PeerAway("no gateway is open")
        return self._gates

    @property
    def pid(self) -> int:
        """There is no network process."""
        raise PeerAway("no process of its own")

    async def start(self) -> None:
        """Begin to call the gateways; raises SwarmError for an address that is none."""
        addresses = tuple(dict.fromkeys(self._options.gateways))[:MAX_GATEWAYS]
        for address in addresses:
            _pinned(address)
        self._say("connecting" if addresses else "alone")
        self._tasks = [asyncio.create_task(self._keep(address)) for address in addresses]

    async def meet(self) -> None:
        """Nobody is met but gateways."""

    async def run(self) -> None:
        """Return when closed."""
        await watch(self._tasks)

    async def close(self) -> None:
        """Leave. Safe to call twice."""
        await end(self._tasks)
        self._gates.open.clear()

    async def _keep(self, address: str) -> None:
        while True:
            reason = "it closed the connection"
            try:
                await self._open(address)
            except PeerAway as away:  # it is called again after a while
                reason = str(away)
            self._say("connected" if self._gates.open else "alone")
            pause = self._options.rejoin * random.uniform(0.5, 1.5)
            log.debug("gateway %d is called again in %.0f s: %r", self._options.gateways.index(address) + 1, pause, reason)
            await asyncio.sleep(pause)

    async def _open(self, address: str) -> None:
        try:
            where, who = _pinned(address)
            async with _Straight(
                where, create_connection=_Read, max_size=MAX_ANSWER, max_queue=WAITING, compression=None, open_timeout=CALL_S
            ) as connection:
                async with asyncio.timeout(CALL_S):
                    gate = Gate(address, await self._introduce(connection, who), connection)
                first = not self._gates.open
                self._gates.open[address] = gate
                try:
                    self._say("connected")
                    if first:
                        self._joined()
                    await gate.listen()
                finally:
                    self._gates.open.pop(address, None)
        except (ImportError, *FAILURES) as error:  # the first: by a SOCKS proxy, for which websockets needs another package
            raise PeerAway(f"it does not answer ({type(error).__name__})") from error

    async def _introduce(self, connection: ClientConnection, who: bytes) -> bytes:
        welcome = _welcome.decode(await connection.recv(decode=False))
        if who and welcome.peer_id != who:
            raise PeerAway("another gateway than the address names")
        if welcome.peer_id in {gate.peer_id for gate in self._gates.open.values()}:
            raise PeerAway("a gateway that is open by another address")  # of two with one name it closes the older
        if refusal := handshake.refusal(welcome, self._charter):
            if who:  # else anybody may say this of anybody
                self._greeted(welcome.peer_id, refusal)
            raise PeerAway(f"a gateway that {refusal}")
        if not self._admission.admits(welcome.peer_id, welcome.certificate):
            raise PeerAway("a gateway that is no member of this private swarm")
        # Our own nonce, or whoever has seen us here could show both again. Gateways older than certificates know none.
        nonce = os.urandom(NONCE_BYTES) if welcome.certificate else b""
        signature = self._identity.sign(DOMAIN, welcome.peer_id + welcome.nonce + nonce)
        hello = msgspec.structs.astuple(Hello(self._identity.peer_id, self._admission.certificate(), signature, nonce))
        await connection.send(msgspec.msgpack.encode(hello if nonce else hello[:-1]))
        if not verify(welcome.peer_id, PROOF, signature, await connection.recv(decode=False)):
            raise PeerAway("a gateway that is not who it says")
        self._greeted(welcome.peer_id, "")
        return welcome.peer_id

    def _say(self, reach: Reach) -> None:
        reach_event = ReachChanged(reach=reach, peers=len(self._gates.open), tried=len(self._options.gateways), way="gateway")
        if reach_event != self._reported_reach:
            self._reported_reach = reach_event
            self._tell(reach_event)
