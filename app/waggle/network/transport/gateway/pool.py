"""The gateways that are open now: what a light client asks of them, and how their answers are put together.

Nothing that a gateway says is believed: signatures are checked here, payloads are compared with their hash. Several gateways
are asked, and one that hides much of what another shows is told of. That detects, it does not prove. What they show also says
how late it is: a light client pings nobody.
"""

import asyncio
import hashlib
import itertools
import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import suppress

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException

from waggle.core.errors import UNREADABLE, BadRecord
from waggle.network.identity.membership import Membership
from waggle.network.limits.bandwidth import PAY_S, BandwidthLimiter
from waggle.network.messages import announcement as announcements
from waggle.network.messages.announcement import LIFETIME_S, RENEW_S
from waggle.network.messages.clock_skew import ClockSkewMonitor
from waggle.network.messages.events import GatewayHidesPeers, NetworkEvent
from waggle.network.messages.gateway_frames import (
    MAX_LISTED,
    AnnounceRequest,
    DirectoryEntry,
    DirectoryRequest,
    PullRequest,
    Request,
    Response,
    UploadRequest,
)
from waggle.network.transport.gateway.server import DONE, MAX_PAYLOADS, PULLS
from waggle.network.transport.interface import PeerAway

CALL_S = 10.0
FORGET_S = 300.0  # after which it is held against none that it left a question unanswered: it may have slept
IN_A_ROW = 32  # signatures, before others have their turn
LATE_S = 1.0  # that the others are waited for after the first gateway has answered
HIDES = 3  # times in a row that one shows less than half of what another does
ENOUGH = 4  # announcements elsewhere before a difference says anything
FAILURES = (WebSocketException, OSError, TimeoutError, EOFError, *UNREADABLE)
LASTS_S = LIFETIME_S - RENEW_S / 2  # an announcement yet, on the average
_answers = msgspec.msgpack.Decoder(Response)


class Gate:
    """One open connection to a gateway. Questions may overlap."""

    def __init__(self, address: str, peer_id: bytes, connection: ClientConnection) -> None:
        self.address = address
        self.peer_id = peer_id
        self.lodged: deque[bytes] = deque(maxlen=MAX_PAYLOADS)  # what it holds of ours: as much as it keeps, and until it goes
        self.pulls = asyncio.Semaphore(PULLS)  # else what it asks of silent peers for us would hold up all else that we ask it
        self._missed_at = 0.0  # monotonic
        self._connection = connection
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Response]] = {}  # until it is answered, though nobody may wait any more

    @property
    def missed(self) -> float:
        """When it last left a question unanswered; 0 where that is long ago. Whoever did so last is asked last."""
        return self._missed_at if time.monotonic() - self._missed_at < FORGET_S else 0.0

    async def ask(self, make: Callable[[int], Request]) -> Response:
        """Ask, and wait for the answer; raises PeerAway."""
        number = next(self._ids)
        waiting: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            async with asyncio.timeout(CALL_S):
                await self._connection.drain()  # what was asked before goes first, and piles up nowhere
                await self._connection.send(msgspec.msgpack.encode(make(number)))
                return await waiting
        except FAILURES as error:
            if not self._connection.paused:  # else it may be our way that is slow
                self._missed_at = time.monotonic()
            raise PeerAway(f"gateway: {type(error).__name__}") from error

    async def listen(self) -> None:
        """Hand out answers until the connection ends."""
        try:
            while True:
                answer = _answers.decode(await self._connection.recv(decode=False))
                waiting = self._waiting.pop(answer.id, None)
                if waiting is None:  # it could fill our line with that for ever
                    raise EOFError("an answer that nobody asked for")
                if not waiting.done():
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
        self,
        charter: bytes,
        admission: Membership,
        tell: Callable[[NetworkEvent], None],
        traffic: BandwidthLimiter | None = None,
        own: bytes = b"",
    ) -> None:
        self.open: dict[str, Gate] = {}
        self._charter = charter
        self._admission = admission
        self._tell = tell
        self._traffic = traffic or BandwidthLimiter()
        self._hiding: dict[str, int] = {}
        self._known: dict[bytes, tuple[float, bytes]] = {}  # what was found last, of all of them
        self._own = own  # peer id: what we announced says nothing of other clocks
        self._skew = ClockSkewMonitor(tell)

    async def announce(self, _key: str, _peer_id: bytes, signed: bytes, _expires_at: float) -> bool:
        """Each gateway puts it where its directory needs it."""
        answers = await self._of_all(lambda number: AnnounceRequest(number, signed))
        return any(answer.blob == DONE for answer in answers.values())

    async def read(self, _key: str) -> dict[bytes, bytes]:
        """What all of them show, put together."""
        answers = await self._of_all(DirectoryRequest)
        signed = {address: await self._verified(answer.listed) for address, answer in answers.items()}
        now = time.time()
        self._check_clock(now, signed.values())
        current = {address: {o: each for o, each in listed.items() if each[0] > now} for address, listed in signed.items()}
        self._compare(current)
        newest: dict[bytes, tuple[float, bytes]] = {}
        for origin, each in itertools.chain.from_iterable(listed.items() for listed in current.values()):
            newest[origin] = max(newest.get(origin, each), each)
        self._known = newest
        return {origin: blob for origin, (_, blob) in newest.items()}

    @property
    def copies(self) -> int:
        """Every gateway shows all that it knows."""
        return len(self.open)

    async def lodge(self, sha256: bytes, blob: bytes) -> tuple[bytes, ...]:
        """Leave it with up to two gateways that take it, each as soon as a limit that the person set lets so much out.

        Where two leave it unanswered, no other is asked now: the way there may be slow, and each time takes the whole of it.
        """
        holders, silent = list[bytes](), 0
        for gate in sorted(self.open.values(), key=lambda gate: gate.missed):
            try:
                if sha256 in gate.lodged or await self._takes(gate, sha256, blob):
                    holders.append(gate.peer_id)
            except PeerAway:  # another one may take it
                silent += 1
            if 2 in (len(holders), silent):
                break
        if not holders:
            raise PeerAway("no gateway takes our groups")
        return tuple(holders)

    async def _takes(self, gate: Gate, sha256: bytes, blob: bytes) -> bool:
        while not self._traffic.may_send(gate.peer_id):
            await asyncio.sleep(PAY_S)
        self._traffic.count_sent(gate.peer_id, len(blob))
        done = (await gate.ask(lambda number: UploadRequest(number, blob))).blob == DONE
        if done:
            gate.lodged.append(sha256)
        return done

    async def pull(self, peer_id: bytes, sha256: bytes, seconds: float, certificate: bytes = b"") -> bytes:
        """From whichever gateway has or finds it, those that answer first; what has another hash is no answer."""
        for gate in sorted(
            random.sample([*self.open.values()], len(self.open)), key=lambda gate: (gate.missed, gate.pulls.locked())
        ):
            with suppress(PeerAway):  # the next one may know
                async with gate.pulls:
                    blob = (await gate.ask(lambda number: PullRequest(number, peer_id, sha256))).blob
                if hashlib.sha256(blob).digest() == sha256:
                    return blob
        return b""

    async def greet(self, peer_id: bytes) -> bytes:
        raise PeerAway("peers are not called from here")

    async def addresses(self) -> list[str]:
        return []

    async def _of_all(self, make: Callable[[int], Request]) -> dict[str, Response]:
        asking = {asyncio.create_task(gate.ask(make)): gate.address for gate in self.open.values()}
        answers: dict[str, Response] = {}
        try:
            unfinished = set(asking)
            while unfinished:
                done, unfinished = await asyncio.wait(
                    unfinished, timeout=LATE_S if answers else None, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:  # a silent one holds up neither the others nor this node
                    break
                for each in done:
                    with suppress(PeerAway):  # another may answer
                        answers[asking[each]] = each.result()
        finally:
            for each in asking:
                each.cancel()
        if not answers:
            raise PeerAway("no gateway answers")
        return answers

    async def _verified(self, listed: Sequence[DirectoryEntry]) -> dict[bytes, tuple[float, bytes]]:
        """What origins of this swarm have signed, with when it expires by their clocks, in unix seconds.

        What was found before is not verified again, and an answer is given up once much in it was forged.
        """
        verified, forged = dict[bytes, tuple[float, bytes]](), 0
        for number, each in enumerate(listed):
            before = self._known.get(each.peer_id)
            try:
                verified[each.peer_id] = before if before and before[1] == each.signed else self._read(each)
            except announcements.ForgedAnnouncement:
                forged += 1
            except BadRecord:  # not for us, or of another version: nobody is told of it
                continue
            if forged > announcements.MOST_FORGED:
                break
            if number % IN_A_ROW == 0:
                await asyncio.sleep(0)  # others have their turn
        return verified

    def _read(self, listed: DirectoryEntry) -> tuple[float, bytes]:
        announced = announcements.parse(listed.signed)
        if announced.charter != self._charter:
            raise BadRecord("another charter")
        announcements.read(listed.signed, listed.peer_id)
        if not self._admission.admits(listed.peer_id, announced.certificate):
            raise announcements.ForgedAnnouncement("no member of this private swarm")
        return announced.expires_at, listed.signed

    def _check_clock(self, now: float, signed: Iterable[Mapping[bytes, tuple[float, bytes]]]) -> None:
        """One gateway by which our clock is right is enough: another one may show what has long been over."""
        remaining = [[until - now for origin, (until, _) in listed.items() if origin != self._own] for listed in signed]
        offsets = [_skew_by(each) for each in remaining if each]
        self._skew.observe([min(offsets, key=abs)] if offsets else [])

    def _compare(self, listings: Mapping[str, Sized]) -> None:
        """Tell of a gateway that goes on hiding what another shows. A full answer is a sample, and says nothing."""
        most = max(len(each) for each in listings.values())
        for address, each in listings.items():
            hides = ENOUGH <= most < MAX_LISTED and 2 * len(each) < most
            self._hiding[address] = self._hiding.get(address, 0) + 1 if hides else 0
            if self._hiding[address] == HIDES:
                self._tell(GatewayHidesPeers(address=address, listed=len(each), known=most))


def _skew_by(remaining: Sequence[float]) -> float:
    """How far our clock is off where a gateway shows what lasts so many seconds yet; 0 where that is well for half of it.

    Who goes is shown until what it announced is over, and no longer; nothing lasts longer than it did at first.
    """
    longer, shorter = statistics.median_high(remaining), statistics.median_low(remaining)
    if longer < 0:
        return longer - LASTS_S
    return shorter - LASTS_S if shorter > LIFETIME_S else 0.0
