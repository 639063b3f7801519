"""The publisher: keeps the newest payloads of this node, and announces the last one in the directory."""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from waggle.network.exchange.node_context import NodeContext
from waggle.network.exchange.outbox_log import OutboxLog
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory
from waggle.network.messages.announcement import LIFETIME_S, MAX_LIFETIME_S, RENEW_S, Announcement
from waggle.network.messages.consent import Holder
from waggle.network.messages.rollout_record import RolloutRecord, encode, merge, specialties_of
from waggle.network.transport.interface import PeerAway, Transport
from waggle.tasks.questions import epoch_at

log = logging.getLogger(__name__)

MAX_PAYLOADS = 4  # a peer may still hold the announcement of an earlier round


@dataclass(frozen=True)
class PublishedRecord:
    """One payload, ready to be pulled: one round, or the quick rounds since the last announcement."""

    blob: bytes
    record: RolloutRecord


class RolloutPublisher:
    """The last few payloads by sha256. Belongs to the loop's thread.

    `answer_sheet` gives our newest answer sheet and its sha256, both empty if there is none.
    """

    def __init__(
        self,
        context: NodeContext,
        outbox: OutboxLog,
        depth: directory.DirectoryDepth,
        answer_sheet: Callable[[], tuple[bytes, bytes]] = lambda: (b"", b""),
    ) -> None:
        self._context = context
        self._outbox = outbox
        self._depth = depth
        self._answer_sheet = answer_sheet
        self._name = context.membership.sealed_name(context.options.member_name)
        self._pending: dict[int, RolloutRecord] = {}  # by epoch: groups of two epochs cannot travel together
        self._published: OrderedDict[bytes, PublishedRecord] = OrderedDict()
        self._due = asyncio.Event()
        self.expires = 0  # of the newest announcement, unix milliseconds
        self.announced = b""  # the newest announcement, signed; empty: nothing is announced

    def add(self, record: RolloutRecord) -> None:
        """Publish a round's groups. A small model plays many rounds a second: they travel together, at the swarm's tempo."""
        waiting = self._pending.get(record.epoch)
        self._pending[record.epoch] = record if waiting is None else merge(waiting, record)
        self.renew()

    def get(self, sha256: bytes) -> PublishedRecord | None:
        """The payload with this hash, while it is kept."""
        return self._published.get(sha256)

    def renew(self) -> None:
        """Announce soon: there is a new payload, or there are new peers to announce it to."""
        self._due.set()

    async def run(self, transport: Transport) -> None:
        """Keep the newest payload announced for as long as others accept it."""
        while True:
            with suppress(TimeoutError):  # nothing new: the same announcement is renewed before it expires
                async with asyncio.timeout(RENEW_S):
                    await self._due.wait()
            self._due.clear()
            self._seal()
            try:
                await self._announce(transport)
            except PeerAway as away:  # the network restarts; joining it calls `renew`
                log.debug("the announcement was not published: %r", away)
            await asyncio.sleep(self._depth.pause(self._context.options.tempo))

    def _seal(self) -> None:
        """Make a payload of the pending record of the oldest epoch; the others have their turn next."""
        if not self._pending:
            return
        pending = self._pending.pop(min(self._pending))
        blob = encode(pending, self._context.charter)
        self._published[hashlib.sha256(blob).digest()] = PublishedRecord(blob, pending)
        if self._pending:
            self.renew()
        while len(self._published) > MAX_PAYLOADS:
            self._published.popitem(last=False)

    async def _announce(self, transport: Transport) -> None:
        if not self._published:
            return
        sha256, newest = next(reversed(self._published.items()))
        holders = await transport.network.upload(sha256, newest.blob)
        for holder in holders:
            self._outbox.add("groups", newest.blob, holder.peer_id)
        signed, announced = self._signed(sha256, newest, holders, await self._upload_answer_sheet(transport))
        if not directory.is_current(announced, self._context.charter, self._context.clock()):
            self.announced = b""
            return
        self.announced = self._outbox.add("announcement", signed)
        await self.put(transport, self._context.identity.peer_id, signed, announced.expires_at)

    async def put(self, transport: Transport, peer_id: bytes, signed: bytes, expires_at: float) -> bool:
        """Put an announcement under each of a peer's keys in the directory; raises PeerAway if no key can be reached.

        Returns whether any key took it.
        """
        accepted: list[bool] = []
        for key in self.places(peer_id):
            try:
                accepted.append(await transport.network.announce(key, peer_id, signed, expires_at))
            except PeerAway as away:  # strangers that surround one key must not block the others
                log.debug("one key of the directory was not reached: %r", away)
        if not accepted:
            raise PeerAway("no key of the directory is reached")
        return any(accepted)

    async def _upload_answer_sheet(self, transport: Transport) -> bytes:
        """The sha256 of the answer sheet to announce; empty if no gateway takes it: the groups are announced all the same."""
        sheet, sha256 = self._answer_sheet()
        if not sheet:
            return sha256
        try:
            for holder in await transport.network.upload(sha256, sheet):
                self._outbox.add("sheet", sheet, holder.peer_id)
        except PeerAway as away:
            log.debug("the answer sheet is not announced: %r", away)
            return b""
        return sha256

    def places(self, peer_id: bytes) -> list[str]:
        """The keys of the directory under which a peer announces itself."""
        epoch = epoch_at(self._context.clock())
        digest = self._context.charter.digest
        return directory.keys_to_publish(digest, peer_id, self._depth.bits, self._depth.peers_in_shard, epoch)

    def _signed(
        self, sha256: bytes, newest: PublishedRecord, holders: tuple[Holder, ...], sheet: bytes
    ) -> tuple[bytes, Announcement]:
        # The DHT uses real time, whatever clock counts epochs, and replaces an entry only by one that expires later.
        now = time.time()
        if self.expires > (now + MAX_LIFETIME_S) * 1000:  # announced while our clock was fast: no node has accepted it
            self.expires = 0
        self.expires = max(self.expires + 1, int((now + LIFETIME_S) * 1000))
        announced = Announcement(
            charter=self._context.charter.digest,
            sha256=sha256,
            size=len(newest.blob),
            round=newest.record.round,
            epoch=newest.record.epoch,
            specialties=specialties_of(newest.record.groups, self._context.charter),
            model=newest.record.model,
            expires=self.expires,
            depth=self._depth.bits,
            via=tuple(holder.peer_id for holder in holders),
            consents=tuple(holder.consent for holder in holders),
            certificate=self._context.membership.certificate(),
            sheet=sheet,
            name=self._name,
        )
        return announcements.signed(announced, self._context.identity), announced
