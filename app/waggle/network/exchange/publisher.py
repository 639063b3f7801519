"""What this node offers: its newest payloads, and the announcement that it keeps true in the directory."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from waggle.network.exchange.outbox_log import Sent
from waggle.network.identity.keys import Identity
from waggle.network.identity.membership import Admission
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory
from waggle.network.messages.announcement import LIFETIME_S, MAX_LIFETIME_S, RENEW_S, Announcement
from waggle.network.messages.rollout_record import Record, encode, joined, specialties_of
from waggle.network.transport.interface import PeerAway, Transport
from waggle.tasks.charter import Charter
from waggle.tasks.questions import epoch_at

MAX_OFFERS = 4  # payloads: somebody may still hold the announcement of the round before


@dataclass(frozen=True)
class Offer:
    """One payload, ready to be pulled: a round's, or those of the few quick rounds since the last announcement."""

    blob: bytes
    record: Record


class Offers:
    """The last few payloads by sha256. Belongs to the loop's thread."""

    def __init__(
        self,
        identity: Identity,
        charter: Charter,
        admission: Admission,
        clock: Callable[[], float],
        tempo: float,
        sent: Sent,
        depth: directory.Depth | None = None,
        sheet: Callable[[], tuple[bytes, bytes]] = lambda: (b"", b""),
    ) -> None:
        self._sheet = sheet
        self._depth = depth or directory.Depth()
        self._identity = identity
        self._admission = admission
        self._charter = charter
        self._digest = charter.digest
        self._clock = clock
        self._tempo = tempo
        self._sent = sent
        self._pending: dict[int, Record] = {}  # by epoch: groups of two cannot travel together
        self._offers: OrderedDict[bytes, Offer] = OrderedDict()
        self._due = asyncio.Event()
        self.expires = 0  # of the newest announcement, unix milliseconds
        self.announced = b""  # the newest announcement, signed; empty: nothing is offered

    def add(self, record: Record) -> None:
        """Offer a round's groups. A small model plays many rounds a second: they travel together, at the swarm's tempo."""
        waiting = self._pending.get(record.epoch)
        self._pending[record.epoch] = record if waiting is None else joined(waiting, record)
        self.renew()

    def get(self, sha256: bytes) -> Offer | None:
        """The payload of this hash, while it is kept."""
        return self._offers.get(sha256)

    def renew(self) -> None:
        """Announce at once: there is something new to say, or somebody new to say it to."""
        self._due.set()

    async def run(self, connection: Transport) -> None:
        """Keep the newest payload announced for as long as others would accept it."""
        while True:
            with suppress(TimeoutError):  # nothing new: what was said is said again before it expires
                async with asyncio.timeout(RENEW_S):
                    await self._due.wait()
            self._due.clear()
            self._seal()
            with suppress(PeerAway):  # the network starts again; being joined again renews
                await self._announce(connection)
            await asyncio.sleep(self._depth.pause(self._tempo))

    def _seal(self) -> None:
        """Make what is pending a payload, the oldest epoch first; what remains has its turn next."""
        if not self._pending:
            return
        pending = self._pending.pop(min(self._pending))
        blob = encode(pending, self._charter)
        self._offers[hashlib.sha256(blob).digest()] = Offer(blob, pending)
        if self._pending:
            self.renew()
        while len(self._offers) > MAX_OFFERS:
            self._offers.popitem(last=False)

    async def _announce(self, connection: Transport) -> None:
        if not self._offers:
            return
        sha256, offer = next(reversed(self._offers.items()))
        via = await connection.network.upload(sha256, offer.blob)
        for holder in via:
            self._sent.note("groups", offer.blob, holder)
        signed, announced = self._signed(sha256, offer, via, await self._lodged_sheet(connection))
        if not directory.is_current(announced, self._charter, self._clock()):
            self.announced = b""
            return
        self.announced = self._sent.note("announcement", signed)
        await self.put(connection, self._identity.peer_id, signed, announced.expires_at)

    async def put(self, connection: Transport, peer_id: bytes, signed: bytes, expires_at: float) -> bool:
        """Into the directory, under each of a peer's keys, and whether any took it; raises PeerAway where none is reached."""
        accepted: list[bool] = []
        for key in self.places(peer_id):
            with suppress(PeerAway):  # strangers who are near one key keep nobody from the others
                accepted.append(await connection.network.announce(key, peer_id, signed, expires_at))
        if not accepted:
            raise PeerAway("no key of the directory is reached")
        return any(accepted)

    async def _lodged_sheet(self, connection: Transport) -> bytes:
        """The sha256 of the answer sheet, to be named; empty where nobody takes it: the groups are announced all the same."""
        sheet, named = self._sheet()
        if not sheet:
            return named
        try:
            for holder in await connection.network.upload(named, sheet):
                self._sent.note("sheet", sheet, holder)
        except PeerAway:
            return b""
        return named

    def places(self, peer_id: bytes) -> list[str]:
        """The keys of the directory under which a peer announces itself."""
        epoch = epoch_at(self._clock())
        return directory.keys_to_publish(self._digest, peer_id, self._depth.bits, self._depth.peers_in_shard, epoch)

    def _signed(self, sha256: bytes, offer: Offer, via: tuple[bytes, ...], sheet: bytes) -> tuple[bytes, Announcement]:
        # The DHT runs on real time, whatever clock counts epochs; an entry only gives way to one that expires later.
        now = time.time()
        if self.expires > (now + MAX_LIFETIME_S) * 1000:  # said by a clock that was fast: nobody has taken it in
            self.expires = 0
        self.expires = max(self.expires + 1, int((now + LIFETIME_S) * 1000))
        announced = Announcement(
            charter=self._digest,
            sha256=sha256,
            size=len(offer.blob),
            round=offer.record.round,
            epoch=offer.record.epoch,
            specialties=specialties_of(offer.record.groups, self._charter),
            model=offer.record.model,
            expires=self.expires,
            depth=self._depth.bits,
            via=via,
            certificate=self._admission.certificate(),
            sheet=sheet,
        )
        return announcements.signed(announced, self._identity), announced
