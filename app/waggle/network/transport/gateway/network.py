"""The network through gateways: what a light client asks of them, and how it combines their answers.

No gateway is trusted: signatures are verified here, and payloads are compared with their hash. Several gateways are asked, and
one that keeps hiding much of what another shows is reported. That detects hiding, it does not prove it. A light client pings
nobody, so it reads from the announcements how far its own clock is off.
"""

import asyncio
import hashlib
import itertools
import logging
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
from waggle.core.peer_id import short_id
from waggle.network.identity.membership import Membership
from waggle.network.limits.bandwidth import PAY_S, BandwidthLimiter
from waggle.network.messages import announcement as announcements
from waggle.network.messages import consent
from waggle.network.messages.announcement import LIFETIME_S, RENEW_S
from waggle.network.messages.clock_skew import REPORTED_S, ClockSkewMonitor
from waggle.network.messages.consent import Holder
from waggle.network.messages.events import GatewayHidesPeers, NetworkEvent
from waggle.network.messages.faults import Fault
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

log = logging.getLogger(__name__)

CALL_S = 10.0
SLOW_S = 3.0  # an answer that takes longer is logged
FORGET_S = 300.0  # after which an unanswered question no longer counts against a gateway: it may have slept
IN_A_ROW = 32  # signatures verified before other tasks have their turn
LATE_S = 1.0  # that the other gateways are waited for after the first has answered
HIDES = 3  # times in a row that a gateway shows less than half of what another does, before it is reported
ENOUGH = 4  # announcements at another gateway, before a difference says anything
FAILURES = (WebSocketException, OSError, TimeoutError, EOFError, *UNREADABLE)
REMAINING_S = LIFETIME_S - RENEW_S / 2  # how long an announcement is still valid on average, as it is renewed every RENEW_S
UPLOADS = 2  # gateways that serve a payload of ours
_answers = msgspec.msgpack.Decoder(Response)


class GatewayConnection:
    """One open connection to a gateway. Questions may overlap."""

    def __init__(self, address: str, peer_id: bytes, websocket: ClientConnection) -> None:
        self.address = address
        self.peer_id = peer_id
        self.uploaded: deque[bytes] = deque(maxlen=MAX_PAYLOADS)  # hashes of the payloads that it keeps for us
        self.consent = b""  # to be named in our announcements; empty: it has taken nothing
        self.pulls = asyncio.Semaphore(PULLS)  # pulls from silent peers must not hold up our other questions
        self._missed_at = 0.0  # monotonic
        self._websocket = websocket
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Response]] = {}  # kept until the answer comes, even if nobody waits any more

    @property
    def missed(self) -> float:
        """When it last left a question unanswered (monotonic); 0 if that is long ago. Later ones are asked last."""
        return self._missed_at if time.monotonic() - self._missed_at < FORGET_S else 0.0

    async def ask(self, make: Callable[[int], Request]) -> Response:
        """Send the question that `make` returns for a number, and wait for its answer. Raises PeerAway."""
        number, asked_at = next(self._ids), time.monotonic()
        waiting: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            async with asyncio.timeout(CALL_S):
                await self._websocket.drain()  # earlier questions go first, and do not pile up in our buffer
                await self._websocket.send(msgspec.msgpack.encode(make(number)))
                answer = await waiting
        except FAILURES as error:
            if not self._websocket.paused:  # if it is paused, our own line may be slow
                self._missed_at = time.monotonic()
            log.debug("gateway %s leaves a question unanswered: %s", short_id(self.peer_id), type(error).__name__)
            raise PeerAway(f"gateway: {type(error).__name__}") from error
        if (seconds := time.monotonic() - asked_at) > SLOW_S:
            log.debug("gateway %s answers after %.1f s", short_id(self.peer_id), seconds)
        return answer

    async def listen(self) -> None:
        """Hand out answers until the connection ends."""
        try:
            while True:
                answer = _answers.decode(await self._websocket.recv(decode=False))
                waiting = self._waiting.pop(answer.id, None)
                if waiting is None:  # a gateway could use up our bandwidth with these
                    raise EOFError("an answer that nobody asked for")
                if not waiting.done():
                    waiting.set_result(answer)
        except FAILURES:  # it closed, or sent something malformed: it is connected again later
            for each in self._waiting.values():
                if not each.done():
                    each.set_exception(EOFError())
                    each.exception()  # marks it as retrieved, for questions that are still being sent
            await self._websocket.close()


class GatewayNetwork:
    """The gateways that are open now. Implements `Network`."""

    def __init__(
        self,
        charter: bytes,
        membership: Membership,
        report: Callable[[NetworkEvent], None],
        bandwidth: BandwidthLimiter | None = None,
        own: bytes = b"",
    ) -> None:
        self.open: dict[str, GatewayConnection] = {}  # by address
        self._charter = charter
        self._membership = membership
        self._report = report
        self._bandwidth = bandwidth or BandwidthLimiter()
        self._hiding: dict[str, int] = {}  # by address: times in a row that it hid something
        self._known: dict[bytes, tuple[float, bytes]] = {}  # by origin: the last announcements of all gateways
        self._own = own  # our peer id: our own announcement says nothing about other clocks
        self._skew = ClockSkewMonitor(report)

    async def announce(self, _key: str, _peer_id: bytes, signed: bytes, _expires_at: float) -> bool:
        """Give it to every gateway, each of which puts it into the directory."""
        answers = await self._of_all(lambda number: AnnounceRequest(number, signed))
        return any(answer.blob == DONE for answer in answers.values())

    async def read_directory(self, _key: str) -> dict[bytes, bytes]:
        """What all gateways list, combined. A gateway has no shards, so the key does not matter."""
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
    def replicas(self) -> int:
        """Every gateway lists all that it knows."""
        return len(self.open)

    async def upload(self, sha256: bytes, blob: bytes) -> tuple[Holder, ...]:
        """Give a payload to two gateways that take it, as soon as the limit that the person set allows. Raises PeerAway.

        After two that do not answer it gives up for now: our own line may be slow, and each upload takes all of it.
        """
        holders, silent = list[Holder](), 0
        for gateway in sorted(self.open.values(), key=lambda gateway: gateway.missed):
            try:
                if (sha256 in gateway.uploaded and self._agrees(gateway)) or await self._takes(gateway, sha256, blob):
                    holders.append(Holder(gateway.peer_id, gateway.consent))
            except PeerAway:  # another one may take it
                silent += 1
            if UPLOADS in (len(holders), silent):
                break
        if not holders:
            raise PeerAway("no gateway takes our groups")
        return tuple(holders)

    async def _takes(self, gateway: GatewayConnection, sha256: bytes, blob: bytes) -> bool:
        while not self._bandwidth.may_send(gateway.peer_id):
            await asyncio.sleep(PAY_S)
        self._bandwidth.count_sent(gateway.peer_id, len(blob))
        gateway.consent = (await gateway.ask(lambda number: UploadRequest(number, blob))).blob
        if self._agrees(gateway):
            gateway.uploaded.append(sha256)
        return self._agrees(gateway)

    def _agrees(self, gateway: GatewayConnection) -> bool:
        """Whether the gateway agrees to be named in an announcement that is renewed for some time."""
        return consent.is_valid(gateway.consent, gateway.peer_id, self._charter, self._own, time.time() + 2 * LIFETIME_S)

    async def pull(self, peer_id: bytes, sha256: bytes, seconds: float, certificate: bytes = b"") -> bytes:
        """A payload with this hash from the first gateway that has or gets it; empty if none does."""
        for gateway in sorted(
            random.sample([*self.open.values()], len(self.open)), key=lambda gateway: (gateway.missed, gateway.pulls.locked())
        ):
            with suppress(PeerAway):  # the next one may have it
                async with gateway.pulls:
                    blob = (await gateway.ask(lambda number: PullRequest(number, peer_id, sha256))).blob
                if hashlib.sha256(blob).digest() == sha256:
                    return blob
                if blob:
                    log.debug("gateway %s gives a payload with another hash", short_id(gateway.peer_id))
        return b""

    async def fetch_handshake(self, peer_id: bytes) -> bytes:
        """Raises PeerAway: gateways pass no handshakes on."""
        raise PeerAway("peers are not called from here")

    async def addresses(self) -> list[str]:
        """No address: nobody can call a light client."""
        return []

    async def _of_all(self, make: Callable[[int], Request]) -> dict[str, Response]:
        """The answers of all gateways by address, without those that are LATE_S later than the first. Raises PeerAway if none."""
        asking = {asyncio.create_task(gateway.ask(make)): gateway.address for gateway in self.open.values()}
        answers: dict[str, Response] = {}
        try:
            unfinished = set(asking)
            while unfinished:
                done, unfinished = await asyncio.wait(
                    unfinished, timeout=LATE_S if answers else None, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:  # a silent gateway must not hold up this node
                    late = [self.open[asking[each]].peer_id for each in unfinished if asking[each] in self.open]
                    log.debug("gateways %s answer too late for this question", ", ".join(map(short_id, late)))
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
        """The valid announcements of this swarm, by origin, with their expiry by the origins' clocks (unix seconds).

        Those that were known before are not verified again. Much that is forged ends the reading of an answer.
        """
        verified, forged = dict[bytes, tuple[float, bytes]](), 0
        for number, each in enumerate(listed):
            before = self._known.get(each.peer_id)
            try:
                verified[each.peer_id] = before if before and before[1] == each.signed else self._read(each)
            except announcements.ForgedAnnouncement:
                forged += 1
            except BadRecord:  # of another swarm or version: a gateway may list these honestly
                continue
            if forged > announcements.MOST_FORGED:
                break
            if number % IN_A_ROW == 0:
                await asyncio.sleep(0)  # other tasks have their turn
        if forged:
            log.debug("a gateway lists %d forged announcements", forged)
        return verified

    def _read(self, listed: DirectoryEntry) -> tuple[float, bytes]:
        announced = announcements.parse(listed.signed)
        if announced.charter != self._charter:
            raise BadRecord(Fault.OTHER_CHARTER)
        announcements.read(listed.signed, listed.peer_id)
        if not self._membership.admits(listed.peer_id, announced.certificate):
            raise announcements.ForgedAnnouncement(Fault.NO_MEMBER)
        return announced.expires_at, listed.signed

    def _check_clock(self, now: float, signed: Iterable[Mapping[bytes, tuple[float, bytes]]]) -> None:
        """Compare our clock with the expiry of announcements.

        The gateway by which our clock is closest to right decides: another one may list what expired long ago.
        """
        remaining = [[until - now for origin, (until, _) in listed.items() if origin != self._own] for listed in signed]
        offsets = [_skew_by(each) for each in remaining if each]
        least = min(offsets, key=abs, default=0.0)  # one gateway that lies must not make our clock look wrong
        self._skew.observe([least for each in offsets if abs(each - least) <= REPORTED_S])

    def _compare(self, listings: Mapping[str, Sized]) -> None:
        """Report a gateway that keeps hiding what another lists. A full answer is a sample, and says nothing."""
        most = max(len(each) for each in listings.values())
        for address, each in listings.items():
            hides = ENOUGH <= most < MAX_LISTED and 2 * len(each) < most
            self._hiding[address] = self._hiding.get(address, 0) + 1 if hides else 0
            if self._hiding[address] == HIDES:
                self._report(GatewayHidesPeers(address=address, listed=len(each), known=most))


def _skew_by(remaining: Sequence[float]) -> float:
    """How far our clock is off (s), by the remaining lifetimes of a gateway's announcements; 0 if half of them are plausible.

    A node that left is listed until its announcement expires and no longer, and no lifetime grows. So a median below 0 means
    that our clock is ahead, and a median above the full lifetime that it is behind.
    """
    longer, shorter = statistics.median_high(remaining), statistics.median_low(remaining)
    if longer < 0:
        return longer - REMAINING_S
    return shorter - REMAINING_S if shorter > LIFETIME_S else 0.0
