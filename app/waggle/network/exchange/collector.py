"""The collector: reads the directory, pulls records of a few random peers, judges them, and fills the pool. In the background."""

import asyncio
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext, suppress
from typing import NamedTuple

import msgspec

from waggle.core.errors import BadRecord, VerifierError
from waggle.core.message import Message, as_message
from waggle.core.peer_id import short_id
from waggle.network.exchange.node_context import NodeContext, PeerAccounts, is_unmet
from waggle.network.exchange.pool import GroupPool
from waggle.network.exchange.verification import VerifiedRecord, VerifierStopwatch, verify_record
from waggle.network.identity.duplicate_node import DuplicateNodeDetector
from waggle.network.limits.bandwidth import PAY_S
from waggle.network.limits.named_calls import OWN
from waggle.network.limits.rate_limits import Payers
from waggle.network.limits.reputation import trusted_peers
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory, handshake
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.events import DuplicateIdentity, GroupsArrived, RecordRejected
from waggle.network.messages.faults import Fault
from waggle.network.transport.interface import PeerAway, Transport, fetch, reputation_of
from waggle.network.transport.tasks import end
from waggle.tasks.rollout_group import NEWCOMERS, JudgedGroup

log = logging.getLogger(__name__)

REMEMBERED = 4096  # payloads: each is pulled once
MAX_READ = 256  # announcements considered in one look
REST_S = 15.0  # before a peer that did not answer is asked again, at the earliest
SLOWER = 4.0  # times the tempo, while the pool holds many useful groups
MAX_PULLS = 32  # at the same time: slow peers hold a place for seconds, and must not hold all
MAX_PULL_BYTES = 4 * 1024 * 1024  # of one call, whatever was announced
SLOW_PULL_S = 2.0  # a pull that takes longer is logged
STRANGERS_PER_LOOK = 2  # connected strangers that are asked for a handshake, beside K / 2 trusted peers


class FailedPull(NamedTuple):
    """A payload that did not come: it is not asked for before `until` (monotonic), after `rest` seconds."""

    until: float
    sha256: bytes
    rest: float


class RolloutCollector:
    """Fills the pool. Belongs to the loop's thread; judging runs in a thread of its own.

    `uploaded` gives the payload with a hash that a light client uploaded to this node, or b"". `own_expiry` is the expiry of our
    newest announcement (unix milliseconds). `on_announcements` hears the current announcements of each look.
    """

    def __init__(
        self,
        context: NodeContext,
        accounts: PeerAccounts,
        pool: GroupPool,
        depth: directory.DirectoryDepth,
        *,
        uploaded: Callable[[bytes], bytes] = lambda sha256: b"",
        own_expiry: Callable[[], int] = lambda: 0,
        on_announcements: Callable[[Mapping[bytes, Announcement]], None] = lambda announced: None,
    ) -> None:
        self._context = context
        self._options = context.options
        self._digest = context.charter.digest
        self._accounts = accounts
        self._reputations, self._bandwidth, self._rate_limits = accounts.reputations, accounts.bandwidth, accounts.rate_limits
        self._pool = pool
        self._depth = depth
        self._uploaded = uploaded
        self._duplicate = DuplicateNodeDetector(own_expiry)
        self._on_announcements = on_announcements
        self._random = random.Random()
        self._tried: OrderedDict[directory.PayloadKey, None] = OrderedDict()
        self._failed: dict[bytes, FailedPull] = {}  # by origin
        self._no_handshake: dict[bytes, float] = {}  # peer id -> not asked for a handshake until, monotonic
        self._pulling: dict[bytes, asyncio.Task[None]] = {}
        self._judging_line, self._strangers_line = asyncio.Lock(), asyncio.Lock()
        self._judging: asyncio.Future[VerifiedRecord] | None = None

    async def run(self, transport: Transport) -> None:
        """Look, pull, judge, wait, until cancelled."""
        while True:
            while not self._bandwidth.may_read_directory():  # a limit that the person set
                await asyncio.sleep(PAY_S)
            try:
                await self._look(transport)
            except PeerAway as away:  # the network restarts: the next look works again
                log.debug("groups of peers were not looked for: %r", away)
            barren = {peer.id for peer in self._reputations if peer.barren}
            plenty = len(useful_groups(self._pool.waiting(), barren)) >= self._options.pool_capacity // 4
            await asyncio.sleep(self._options.tempo * (SLOWER if plenty else 1.0))

    async def finish(self) -> None:
        """End the pulls, and wait for the judging under way: closing the verifier would break it off."""
        await end(list(self._pulling.values()))
        if self._judging is not None:
            await asyncio.gather(self._judging, return_exceptions=True)  # a refusal no longer matters

    async def _look(self, transport: Transport) -> None:
        self._collect_finished_pulls()
        by_handshake = await self._ask_for_handshakes(transport)
        announced = dict(by_handshake)
        for origin, each in (await self._read(transport)).items():
            if origin not in announced or announced[origin].expires < each.expires:
                announced[origin] = each
        own_id = self._context.identity.peer_id
        if own_id in announced and self._duplicate.observe(announced[own_id].expires):
            log.info("another computer announces itself under our identity")
            self._context.report(DuplicateIdentity())
        self._reputations.clear_refusals(announced)
        now = self._context.clock()
        current = {o: each for o, each in announced.items() if directory.is_current(each, self._context.charter, now)}
        for origin, each in current.items():
            self._reputations.record_name(origin, self._context.membership.member_name(origin, each.name))
        self._on_announcements(current)
        if self._context.is_paused():
            return
        resting = {origin for origin, each in current.items() if self._rests(transport, origin, each)}
        chosen = directory.choose_peers(
            current,
            avoid={own_id, *self._pulling, *self._peers_to_skip(transport, current), *self._reputations.avoided(), *resting},
            tried=self._tried,
            known=trusted_peers(self._reputations) | by_handshake.keys(),
            count=self._options.peers_per_pull,
            random=self._random,
        )[: MAX_PULLS - len(self._pulling)]
        self._begin(transport, {origin: current[origin] for origin in chosen}, now)

    def _rests(self, transport: Transport, origin: bytes, announced: Announcement) -> bool:
        """Whether nothing may be asked for now, of the payers of this origin or of all who give out its payload."""
        if self._rate_limits.used_up(self._reputations.of(origin).payers):
            return True
        if not self._accounts.unmet_calls.may(OWN) and is_unmet(self._context, self._accounts, transport, origin, announced):
            return True
        return bool(announced.via) and not any(map(self._accounts.named_calls.may, announced.via))

    async def read(self, transport: Transport) -> dict[bytes, bytes]:
        """The signed announcements of one shard of the directory, charged to the bandwidth limit; raises PeerAway."""
        network = transport.network
        entries = await network.read_directory(directory.key_to_read(self._digest, self._depth.bits, self._random))
        self._bandwidth.charge_directory(network.replicas * sum(len(origin) + len(blob) for origin, blob in entries.items()))
        return entries

    async def _read(self, transport: Transport) -> dict[bytes, Announcement]:
        """The announcements of one shard of the directory; a sample of them if there are many."""
        try:
            entries = await self.read(transport)
        except PeerAway as away:  # the shard is too large, or no peer that holds it answers: the handshakes remain
            log.debug("the directory was not read: %r", away)
            return {}
        announced = {origin: announcements.parse(blob) for origin, blob in entries.items()}
        depths = [each.depth for each in announced.values() if not each.via]
        self._depth.observe(depths, light=len(announced) - len(depths))
        sample = self._random.sample(sorted(announced), min(len(announced), MAX_READ))
        return {origin: announced[origin] for origin in sample}

    async def _ask_for_handshakes(self, transport: Transport) -> dict[bytes, Announcement]:
        """The announcements that some trusted and some other connected peers give in their handshakes."""
        # Only connected peers: p2pd waits longer after each failed call. The transport calls the others now and then.
        now = time.time()
        welcome = {
            peer.id for peer in self._reputations if peer.connection != "gone" and not (peer.choice or peer.is_doubted(now))
        }
        trusted, callees = trusted_peers(self._reputations), welcome - _still_resting(self._no_handshake)
        sample = [
            *self._sample(callees & trusted, self._options.peers_per_pull // 2),
            *self._sample(callees - trusted, STRANGERS_PER_LOOK),
        ]
        answers = await asyncio.gather(*(self._handshake(transport, peer_id) for peer_id in sample))
        return {peer_id: each for peer_id, each in zip(sample, answers, strict=True) if each is not None}

    async def _handshake(self, transport: Transport, peer_id: bytes) -> Announcement | None:
        try:
            blob = await transport.network.fetch_handshake(peer_id)
            if not blob:  # it says nothing about itself
                return None
            answer = handshake.read(blob)
            refusal = handshake.refusal(answer, self._digest)
            if refusal:
                log.debug("peer %s takes no part here: %r", short_id(peer_id), refusal)
            self._reputations.record_handshake(peer_id, refusal)
            if answer.announced and answer.charter == self._digest:
                announced = announcements.read(answer.announced, peer_id)
                if self._context.membership.admits(peer_id, announced.certificate):
                    return announced
                log.debug("the announcement of peer %s is refused: its certificate does not hold here now", short_id(peer_id))
                self._no_handshake[peer_id] = time.monotonic() + REST_S  # no offence: its clock or ours may be wrong
        except PeerAway as away:  # the directory may know of it
            log.debug("peer %s gave no handshake: %r; next try in %g s", short_id(peer_id), away, REST_S)
            self._no_handshake[peer_id] = time.monotonic() + REST_S
        except BadRecord as bad:  # counted against the peer and reported; the others are asked all the same
            self._no_handshake[peer_id] = time.monotonic() + REST_S
            self._reject(peer_id, bad.title, cause=bad.__cause__)
        return None

    def _sample(self, peers: set[bytes], count: int) -> list[bytes]:
        return self._random.sample(sorted(peers), min(len(peers), count))

    def _begin(self, transport: Transport, chosen: dict[bytes, Announcement], now: float) -> None:
        """Start pulls from these peers in the background: a slow one delays neither the others nor the next look.

        An announced size is only a claim, so each pull is charged as the largest until it has come. A peer that cannot pay
        is chosen in a later look.
        """
        for origin, announced in chosen.items():
            payers = self._reputations.of(origin).payers
            unmet = is_unmet(self._context, self._accounts, transport, origin, announced)
            if self._rate_limits.pulls.has(payers) and (not unmet or self._accounts.unmet_calls.begin(OWN)):
                self._rate_limits.pulls.charge(payers, MAX_PULL_BYTES)
                pull = self._pull_one(transport, origin, announced, payers, now, unmet=unmet)
                self._pulling[origin] = asyncio.create_task(pull)

    def _collect_finished_pulls(self) -> None:
        """Remove the pulls that have ended; raises what only a bug of ours can raise in one."""
        for origin in [origin for origin, pull in self._pulling.items() if pull.done()]:
            self._pulling.pop(origin).result()

    async def _pull_one(
        self, transport: Transport, origin: bytes, announced: Announcement, payers: Payers, now: float, *, unmet: bool
    ) -> None:
        with suppress(PeerAway):  # our own network just ended: the next look finds it again
            try:
                blob = await self._pull(transport, origin, announced, payers)
            finally:
                self._rate_limits.pulls.charge(payers, -MAX_PULL_BYTES)  # `_pull` charged what really came
            if not blob:
                return
            if unmet:
                self._accounts.unmet_calls.gave(OWN)
            if len(blob) != announced.size:  # it must not wait here for its turn: a call brings more than a record may have
                self._remember((origin, announced.sha256))
                self._reject(origin, as_message(Fault.OTHER_PAYLOAD))
                return
            # At most one stranger waits in the line of the trusted peers, so these wait for two records at most.
            line = nullcontext() if self._reputations.of(origin).trusted else self._strangers_line
            async with line, self._judging_line:  # the round's own judging never waits for more than one record
                await self._accept(transport, origin, announced, blob, now)

    async def _pull(self, transport: Transport, origin: bytes, announced: Announcement, payers: Payers) -> bytes:
        while not self._bandwidth.may_receive():  # a limit that the person set
            await asyncio.sleep(PAY_S)
        began, calls = time.monotonic(), list[int]()

        def pay(size: int) -> None:
            calls.append(size)
            self._rate_limits.pulls.charge(payers, size)

        blob = self._uploaded(announced.sha256) or await fetch(
            transport, self._bandwidth, origin=origin, via=announced.via, sha256=announced.sha256,
            seconds=self._options.patience, certificate=self._context.membership.certificate(),
            paid=pay, named=self._accounts.named_calls,
        )  # fmt: skip
        seconds = time.monotonic() - began
        if not blob and calls:  # without a call, nobody failed: those who give it out rest, or were called enough
            before = self._failed.get(origin)
            rest = 2 * before.rest if before and before.sha256 == announced.sha256 else REST_S
            log.debug(
                "a payload of peer %s did not come within %.1f s; next try in %g s at the earliest",
                short_id(origin),
                seconds,
                rest,
            )
            self._failed[origin] = FailedPull(time.monotonic() + rest, announced.sha256, rest)
        elif seconds > SLOW_PULL_S:
            log.debug("peer %s is slow: %d bytes took %.1f s", short_id(origin), len(blob), seconds)
        return blob

    async def _accept(self, transport: Transport, origin: bytes, announced: Announcement, blob: bytes, now: float) -> None:
        """Judge a record as of `now`, when it was chosen: waiting in line must not make it too old."""
        payers, watch = (await reputation_of(origin, self._reputations, transport)).payers, VerifierStopwatch()
        if self._context.is_paused() or not self._rate_limits.work.has(payers):  # since it was chosen
            reason = "this computer rests" if self._context.is_paused() else "its share of judging is used up"
            log.debug("a record of peer %s is dropped unjudged: %s", short_id(origin), reason)
            return
        self._remember((origin, announced.sha256))
        work = asyncio.to_thread(
            verify_record, blob, announced, origin=origin, charter=self._context.charter, verifier=self._context.verifier,
            now=now, watch=watch,
        )  # fmt: skip
        self._judging = asyncio.ensure_future(work)
        try:
            verified = await asyncio.shield(self._judging)
        except BadRecord as bad:  # counted against the peer and reported
            self._reject(origin, bad.title, cause=bad.__cause__)
            return
        except VerifierError as error:  # our own trouble, which the verifier has reported: no peer is to blame
            log.info("a record of peer %s was not judged: %s", short_id(origin), error.title)
            return
        finally:  # also if the record ended the verifier
            self._rate_limits.work.charge(payers, watch.seconds)
        if verified.reserved:
            self._reject(origin, as_message(Fault.RESERVED_QUESTION), verified.reserved)
        self._add_to_pool(origin, verified)

    def _add_to_pool(self, origin: bytes, verified: VerifiedRecord) -> None:
        peer = self._reputations.of(origin)
        if peer.choice:  # the person has just decided
            log.info("the groups of peer %s are dropped: the person muted or blocked it", short_id(origin))
            return
        fresh = tuple(self._pool.add(msgspec.structs.replace(group, source=peer.party) for group in verified.groups))
        if len(fresh) < len(verified.groups):
            log.debug("%d groups of peer %s are dropped: they came before", len(verified.groups) - len(fresh), short_id(origin))
        if fresh:
            record = verified.record
            self._reputations.record_groups(origin, record.round, record.model, fresh)
            self._context.report(GroupsArrived(origin=origin, round=record.round, model=record.model, groups=fresh))

    def _reject(self, origin: bytes, reason: Message, count: int = 1, *, cause: BaseException | None = None) -> None:
        self._accounts.reject(origin, reason, count, cause=cause)
        if not self._reputations.of(origin).trusted:  # the rest of what it sent is not worth the risk
            self._pool.drop(origin)
        self._context.report(RecordRejected(origin=origin, reason=reason, count=count))

    def _remember(self, payload: directory.PayloadKey) -> None:
        self._tried[payload] = None
        if len(self._tried) > REMEMBERED:
            self._tried.popitem(last=False)

    def _peers_to_skip(self, transport: Transport, current: Mapping[bytes, Announcement]) -> list[bytes]:
        self._failed = {origin: each for origin, each in self._failed.items() if origin in current}
        givers_of = {origin: current[origin].via or (origin,) for origin in self._failed}
        here = {
            origin
            for origin, givers in givers_of.items()
            if not transport.calls_peers or any(self._reputations.of(giver).connection != "gone" for giver in givers)
        }
        return peers_to_skip(self._failed, current, here, time.monotonic())


def peers_to_skip(
    failed: Mapping[bytes, FailedPull], current: Mapping[bytes, Announcement], here: Collection[bytes], now: float
) -> list[bytes]:
    """The origins not to ask at `now` (monotonic): those that rest, and afterwards those whose giver is not connected.

    `here` holds the origins of which a giver is connected. An origin that offers another payload is always asked. p2pd waits
    longer after each failed call to a peer, up to minutes: without this, a swarm that was split would stay so as long when the
    parts can reach each other again.
    """
    return [
        origin
        for origin, each in failed.items()
        if now < each.until or (origin not in here and each.sha256 == current[origin].sha256)
    ]


def useful_groups(waiting: Iterable[JudgedGroup], barren: Collection[bytes]) -> list[JudgedGroup]:
    """The waiting groups that a round can count on: neither newcomers' nor those of peers whose groups taught nothing so far."""
    return [group for group in waiting if group.source != NEWCOMERS and group.group.origin not in barren]


def _still_resting(rests: dict[bytes, float]) -> set[bytes]:
    """The peers that still rest; removes the others."""
    now = time.monotonic()
    for peer_id in [peer_id for peer_id, until in rests.items() if until <= now]:
        del rests[peer_id]
    return set(rests)
