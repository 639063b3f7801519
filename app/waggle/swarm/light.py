"""The light client: takes part through gateways, where hivemind cannot be imported or a network blocks everything but the web.

Nothing that a gateway says is believed: signatures are checked here, payloads are compared with their hash. Several gateways
are asked, and their answers put together: one that hides much of what another shows is told of. That detects, it does not prove.
"""

import asyncio
import hashlib
import itertools
import random
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

import httpx2
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from waggle.errors import UNREADABLE, BadRecord, CharterError, SwarmError
from waggle.swarm import announcement as announcements
from waggle.swarm import greeting
from waggle.swarm.admission import Admission
from waggle.swarm.connection import end, watch
from waggle.swarm.dht import Connected, PeerAway
from waggle.swarm.gateway import (
    DOMAIN,
    DONE,
    KEPT,
    MAX_LISTED,
    PROOF,
    Announce,
    Answer,
    Ask,
    Directory,
    Hello,
    Listed,
    Lodge,
    Pull,
    Welcome,
)
from waggle.swarm.identity import Identity, peer_id_of, verify
from waggle.swarm.invite import MAX_GATEWAYS
from waggle.swarm.news import GatewayDoubted, News, Reach, ReachFound
from waggle.swarm.options import SwarmOptions
from waggle.swarm.shim import has_hivemind
from waggle.swarm.traffic import PAY_S, Traffic
from waggle.swarm.web import CHARTER, GATEWAY, WAITING, Read
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter

MAX_ANSWER = 4 * 1024 * 1024
CALL_S = 10.0
LATE_S = 1.0  # that the others are waited for after the first gateway has answered
HIDES = 3  # times in a row that one shows less than half of what another does
ENOUGH = 4  # announcements elsewhere before a difference says anything
_welcome, _answers = msgspec.msgpack.Decoder(Welcome), msgspec.msgpack.Decoder(Answer)
FAILURES = (WebSocketException, OSError, TimeoutError, EOFError, *UNREADABLE)


def is_light(options: SwarmOptions) -> bool:
    """Whether to take part through gateways alone: by choice, or because there is no hivemind here. Without any it is alone."""
    return options.light or not has_hivemind()


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
    try:
        return httpx2.AsyncClient(timeout=CALL_S, headers={"Accept-Encoding": "identity"})
    except (ImportError, ValueError, httpx2.InvalidURL) as error:  # a SOCKS proxy, or something that is none
        raise SwarmError(
            "This computer's network proxy cannot be used.",
            "Waggle goes through web proxies (HTTP), not through SOCKS: choose one, or none.",
        ) from error


def _pinned(address: str) -> tuple[str, bytes]:
    """Where a gateway is, and whose key it must have: wss://example.org/gateway#12D3... Raises SwarmError; empty: anybody's."""
    where, _, who = address.partition("#")
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


class Gate:
    """One open connection to a gateway. Questions may overlap."""

    def __init__(self, address: str, peer_id: bytes, connection: ClientConnection) -> None:
        self.address = address
        self.peer_id = peer_id
        self.lodged: deque[bytes] = deque(maxlen=KEPT)  # what it holds of ours: as much as it keeps, and until it goes
        self.missed = 0  # questions that it left unanswered
        self._connection = connection
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}

    async def ask(self, make: Callable[[int], Ask]) -> Answer:
        """Ask, and wait for the answer; raises PeerAway."""
        number = next(self._ids)
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            async with asyncio.timeout(CALL_S):
                await self._connection.send(msgspec.msgpack.encode(make(number)))
                return await waiting
        except FAILURES as error:
            self.missed += 1
            raise PeerAway(f"gateway: {type(error).__name__}") from error
        finally:
            self._waiting.pop(number, None)

    async def listen(self) -> None:
        """Hand out answers until the connection ends."""
        try:
            while True:
                answer = _answers.decode(await self._connection.recv(decode=False))
                waiting = self._waiting.get(answer.id)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        except FAILURES:  # it closed, or does not speak as agreed: it is opened again later
            for each in self._waiting.values():
                if not each.done():
                    each.set_exception(EOFError())
                    each.exception()  # whoever still sends its question never looks at it
            await self._connection.close()


class Gates:
    """The gateways that are open now, as one network."""

    def __init__(
        self, charter: bytes, admission: Admission, tell: Callable[[News], None], traffic: Traffic | None = None
    ) -> None:
        self.open: dict[str, Gate] = {}
        self._charter = charter
        self._admission = admission
        self._tell = tell
        self._traffic = traffic or Traffic()
        self._hiding: dict[str, int] = {}

    async def announce(self, _key: str, _peer_id: bytes, signed: bytes, _expires_at: float) -> bool:
        """Each gateway puts it where its directory needs it."""
        answers = await self._of_all(lambda number: Announce(number, signed))
        return any(answer.blob == DONE for answer in answers.values())

    async def read(self, _key: str) -> dict[bytes, bytes]:
        """What all of them show, put together."""
        answers = await self._of_all(Directory)
        shown = {address: self._verified(answer.listed) for address, answer in answers.items()}
        self._compare(shown)
        found: dict[bytes, bytes] = {}
        for origin, signed in itertools.chain.from_iterable(each.items() for each in shown.values()):
            if origin not in found or announcements.parse(found[origin]).expires < announcements.parse(signed).expires:
                found[origin] = signed
        return found

    @property
    def copies(self) -> int:
        """Every gateway shows all that it knows."""
        return len(self.open)

    async def lodge(self, sha256: bytes, blob: bytes) -> tuple[bytes, ...]:
        """Leave it with up to two gateways that take it, each as soon as a limit that the person set lets so much out."""
        holders: list[bytes] = []
        for gate in sorted(self.open.values(), key=lambda gate: gate.missed):
            with suppress(PeerAway):  # another one may take it
                if sha256 not in gate.lodged:
                    while not self._traffic.may_send(gate.peer_id):
                        await asyncio.sleep(PAY_S)
                    self._traffic.sent(gate.peer_id, len(blob))
                    if (await gate.ask(lambda number: Lodge(number, blob))).blob == DONE:
                        gate.lodged.append(sha256)
            if sha256 in gate.lodged:
                holders.append(gate.peer_id)
            if len(holders) == 2:
                break
        if not holders:
            raise PeerAway("no gateway takes our groups")
        return tuple(holders)

    async def pull(self, peer_id: bytes, sha256: bytes, seconds: float, certificate: bytes = b"") -> bytes:
        """From whichever gateway has or finds it, those that answer first; what has another hash is no answer."""
        for gate in sorted(random.sample([*self.open.values()], len(self.open)), key=lambda gate: gate.missed):
            with suppress(PeerAway):  # the next one may know
                blob = (await gate.ask(lambda number: Pull(number, peer_id, sha256))).blob
                if hashlib.sha256(blob).digest() == sha256:
                    return blob
        return b""

    async def greet(self, peer_id: bytes) -> bytes:
        raise PeerAway("peers are not called from here")

    async def peers(self) -> Sequence[Connected]:
        return ()

    async def addresses(self) -> list[str]:
        return []

    async def _of_all(self, make: Callable[[int], Ask]) -> dict[str, Answer]:
        asking = {asyncio.create_task(gate.ask(make)): gate.address for gate in self.open.values()}
        found: dict[str, Answer] = {}
        try:
            left = set(asking)
            while left:
                done, left = await asyncio.wait(left, timeout=LATE_S if found else None, return_when=asyncio.FIRST_COMPLETED)
                if not done:  # a silent one holds up neither the others nor this node
                    break
                for each in done:
                    with suppress(PeerAway):  # another may answer
                        found[asking[each]] = each.result()
        finally:
            for each in asking:
                each.cancel()
        if not found:
            raise PeerAway("no gateway answers")
        return found

    def _verified(self, listed: Sequence[Listed]) -> dict[bytes, bytes]:
        now, found = time.time(), {}
        for each in listed:
            with suppress(BadRecord):  # forged, or not for us: nobody is told of it
                announced = announcements.read(each.signed, each.peer_id)
                ours = announced.charter == self._charter and announced.expires_at > now
                if ours and self._admission.admits(each.peer_id, announced.certificate):
                    found[each.peer_id] = each.signed
        return found

    def _compare(self, shown: dict[str, dict[bytes, bytes]]) -> None:
        """Tell of a gateway that goes on hiding what another shows. A full answer is a sample, and says nothing."""
        most = max(len(each) for each in shown.values())
        for address, each in shown.items():
            hides = ENOUGH <= most < MAX_LISTED and 2 * len(each) < most
            self._hiding[address] = self._hiding.get(address, 0) + 1 if hides else 0
            if self._hiding[address] == HIDES:
                self._tell(GatewayDoubted(address=address, shown=len(each), known=most))


class LightConnection:
    """Keeps the gateways open. Everything runs on the loop that called `start`."""

    def __init__(
        self,
        options: SwarmOptions,
        identity: Identity,
        charter: bytes,
        admission: Admission,
        tell: Callable[[News], None],
        joined: Callable[[], None],
        traffic: Traffic | None = None,
        greeted: Callable[[bytes, str], None] = lambda peer_id, refusal: None,
    ) -> None:
        self._greeted = greeted
        self._options = options
        self._identity = identity
        self._charter = charter
        self._admission = admission
        self._tell = tell
        self._joined = joined
        self._gates = Gates(charter, admission, tell, traffic)
        self._told: ReachFound | None = None
        self._tasks: list[asyncio.Task[None]] = []

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
        addresses = self._options.gateways[:MAX_GATEWAYS]
        for address in addresses:
            if not address.startswith(("ws://", "wss://")):
                raise SwarmError(f"{address} is no gateway's address.", "It looks like wss://example.org/gateway.")
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
            with suppress(PeerAway):  # it is called again after a while
                await self._open(address)
            self._say("connected" if self._gates.open else "alone")
            await asyncio.sleep(self._options.rejoin * random.uniform(0.5, 1.5))

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
            raise PeerAway(f"{address}: {type(error).__name__}") from error

    async def _introduce(self, connection: ClientConnection, who: bytes) -> bytes:
        welcome = _welcome.decode(await connection.recv(decode=False))
        if who and welcome.peer_id != who:
            raise PeerAway("another gateway than the address names")
        if refusal := greeting.refusal(welcome, self._charter):
            if who:  # else anybody may say this of anybody
                self._greeted(welcome.peer_id, refusal)
            raise PeerAway(f"a gateway that {refusal}")
        signature = self._identity.sign(DOMAIN, welcome.peer_id + welcome.nonce)
        await connection.send(msgspec.msgpack.encode(Hello(self._identity.peer_id, self._admission.certificate(), signature)))
        if not verify(welcome.peer_id, PROOF, signature, await connection.recv(decode=False)):
            raise PeerAway("a gateway that is not who it says")
        self._greeted(welcome.peer_id, "")
        return welcome.peer_id

    def _say(self, reach: Reach) -> None:
        said = ReachFound(reach=reach, peers=len(self._gates.open), tried=len(self._options.gateways), way="gateway")
        if said != self._told:
            self._told = said
            self._tell(said)
