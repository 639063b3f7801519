"""Gathering: look into the directory, pull from a few peers at random, judge what came, fill the pool. In the background."""

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
from waggle.core.peer_id import short_id
from waggle.network.exchange.pool import Pool
from waggle.network.exchange.verification import Judged, Watch, judge
from waggle.network.identity.duplicate_node import Twins
from waggle.network.identity.membership import Admission
from waggle.network.limits.bandwidth import PAY_S, Traffic
from waggle.network.limits.rate_limits import Accounts, Payers
from waggle.network.limits.reputation import Trust
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory, handshake
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.events import GroupsArrived, IdentityTwice, News, RecordDropped
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.interface import PeerAway, Transport, fetch, standing_of
from waggle.network.transport.tasks import end
from waggle.tasks.charter import Charter
from waggle.tasks.rollout_group import NEWCOMERS, JudgedGroup
from waggle.tasks.sandbox.verifier import Verifier

log = logging.getLogger(__name__)

REMEMBERED = 4096  # payloads tried: each is pulled once
MAX_READ = 256  # announcements considered at one look
REST_S = 15.0  # before a peer that did not answer is asked again, at the earliest
SLOWER = 4.0  # times the tempo, while the pool holds plenty that promises to be of use
MOST_PULLS = 32  # under way at once: slow peers fill places for seconds, and must not fill all
MAX_PULL = 4 * 1024 * 1024  # bytes that one call brings, whatever was announced
UNKNOWN = 2  # greeted at one look, beside K / 2 trusted peers


class Unanswered(NamedTuple):
    """A payload that did not come: not asked for again until then (monotonic), after so many seconds of rest."""

    until: float
    sha256: bytes
    rest: float


class Gathering:
    """Fills `pool` and `trust`. Belongs to the loop's thread; judging runs in a thread of its own."""

    def __init__(
        self,
        options: SwarmOptions,
        charter: Charter,
        admission: Admission,
        peer_id: bytes,
        verifier: Verifier,
        tell: Callable[[News], None],
        clock: Callable[[], float],
        *,
        pool: Pool,
        trust: Trust,
        traffic: Traffic,
        depth: directory.Depth,
        accounts: Accounts,
        lodged: Callable[[bytes], bytes] = lambda sha256: b"",
        mine: Callable[[], int] = lambda: 0,
        on_announcements: Callable[[Mapping[bytes, Announcement]], None] = lambda announced: None,
        is_resting: Callable[[], bool] = lambda: False,
    ) -> None:
        self._on_announcements = on_announcements
        self._is_resting = is_resting  # whether this computer is to rest: then nothing is pulled or judged
        self._options = options
        self._charter = charter
        self._digest = charter.digest
        self._admission = admission
        self._peer_id = peer_id
        self._verifier = verifier
        self._tell = tell
        self._clock = clock
        self._pool = pool
        self._trust = trust
        self._traffic = traffic
        self._lodged = lodged
        self._twins = Twins(mine)
        self._depth = depth
        self._random = random.Random()
        self._tried: OrderedDict[directory.Payload, None] = OrderedDict()
        self._unanswered: dict[bytes, Unanswered] = {}  # by origin
        self._silent: dict[bytes, float] = {}  # peer id -> not greeted until, monotonic
        self._pulling: dict[bytes, asyncio.Task[None]] = {}
        self._accounts = accounts
        self._one_at_a_time, self._not_trusted = asyncio.Lock(), asyncio.Lock()
        self._judging: asyncio.Future[Judged] | None = None

    async def run(self, connection: Transport) -> None:
        """Look, pull, judge, wait; for ever."""
        while True:
            while not self._traffic.may_read():  # a limit that the person set
                await asyncio.sleep(PAY_S)
            with suppress(PeerAway):  # the network starts again: the next look finds it
                await self._look(connection)
            plenty = len(promising(self._pool.waiting(), self._trust.barren())) >= self._options.pool_capacity // 4
            await asyncio.sleep(self._options.tempo * (SLOWER if plenty else 1.0))

    async def finish(self) -> None:
        """End the pulls, and wait for the judging under way: closing the verifier would end it in the middle."""
        await end(list(self._pulling.values()))
        if self._judging is not None:
            await asyncio.gather(self._judging, return_exceptions=True)  # a refusal no longer interests anybody

    async def _look(self, connection: Transport) -> None:
        self._finished()
        greeted = await self._greet(connection)
        announced = dict(greeted)
        for origin, each in (await self._read(connection)).items():
            if origin not in announced or announced[origin].expires < each.expires:
                announced[origin] = each
        if self._peer_id in announced and self._twins.observe(announced[self._peer_id].expires):
            log.info("another computer announces itself under our own identity")
            self._tell(IdentityTwice())
        self._trust.agree(announced)
        now = self._clock()
        current = {o: each for o, each in announced.items() if directory.is_current(each, self._charter, now)}
        self._on_announcements(current)
        if self._is_resting():
            return
        resting = {origin for origin in current if self._accounts.rest(self._trust.of(origin).payers)}
        chosen = directory.choose(
            current,
            avoid={self._peer_id, *self._pulling, *self._resters(connection, current), *self._trust.avoided(), *resting},
            tried=self._tried,
            known=self._trust.trusted() | greeted.keys(),
            count=self._options.peers_per_pull,
            random=self._random,
        )[: MOST_PULLS - len(self._pulling)]
        self._begin(connection, {origin: current[origin] for origin in chosen}, now)

    async def read(self, connection: Transport) -> dict[bytes, bytes]:
        """What stands under one key of the directory, paid for out of the limit of traffic; raises PeerAway."""
        network = connection.network
        entries = await network.read_directory(directory.key_to_read(self._digest, self._depth.bits, self._random))
        self._traffic.read(network.replicas * sum(len(origin) + len(blob) for origin, blob in entries.items()))
        return entries

    async def _read(self, connection: Transport) -> dict[bytes, Announcement]:
        """What the directory says, of a sample where that is much."""
        try:
            entries = await self.read(connection)
        except PeerAway as away:  # too much in it, or nobody who holds it: those greeted are still there
            log.debug("the directory was not read: %r", away)
            return {}
        announced = {origin: announcements.parse(blob) for origin, blob in entries.items()}
        depths = [each.depth for each in announced.values() if not each.via]
        self._depth.observe(depths, light=len(announced) - len(depths))
        sample = self._random.sample(sorted(announced), min(len(announced), MAX_READ))
        return {origin: announced[origin] for origin in sample}

    async def _greet(self, connection: Transport) -> dict[bytes, Announcement]:
        """What trusted peers, and a few of those connected, say themselves."""
        # Only of those connected: p2pd waits longer after each vain call, and `connection` calls the others now and then.
        trusted, company = self._trust.trusted(), self._trust.welcome() - _lasting(self._silent)
        callees = [
            *self._some(company & trusted, self._options.peers_per_pull // 2),
            *self._some(company - trusted, UNKNOWN),
        ]
        announcements_heard = await asyncio.gather(*(self._hear(connection, peer_id) for peer_id in callees))
        return {peer_id: each for peer_id, each in zip(callees, announcements_heard, strict=True) if each is not None}

    async def _hear(self, connection: Transport, peer_id: bytes) -> Announcement | None:
        try:
            blob = await connection.network.fetch_handshake(peer_id)
            if not blob:  # it does not speak of itself
                return None
            greeting = handshake.read(blob)
            refusal = handshake.refusal(greeting, self._digest)
            if refusal:
                log.debug("peer %s takes no part here: %r", short_id(peer_id), refusal)
            self._trust.greeted(peer_id, refusal)
            if greeting.announced and greeting.charter == self._digest:
                announced = announcements.read(greeting.announced, peer_id)
                if self._admission.admits(peer_id, announced.certificate):
                    return announced
                log.info("the announcement of peer %s is refused: its certificate does not hold here now", short_id(peer_id))
                self._silent[peer_id] = time.monotonic() + REST_S  # no offence: its clock or ours may be wrong
        except PeerAway as away:  # the directory may know of it
            log.debug("peer %s did not answer a greeting: %r; next try in %g s", short_id(peer_id), away, REST_S)
            self._silent[peer_id] = time.monotonic() + REST_S
        except BadRecord as bad:  # counted and told; the others are heard
            self._silent[peer_id] = time.monotonic() + REST_S
            self._reject(peer_id, bad.title)
        return None

    def _some(self, peers: set[bytes], count: int) -> list[bytes]:
        return self._random.sample(sorted(peers), min(len(peers), count))

    def _begin(self, connection: Transport, chosen: dict[bytes, Announcement], now: float) -> None:
        """Pull from them at once, in the background: a slow one holds up neither the others nor the next look.

        What was announced is only said: each is paid for as the largest until it is here. Who cannot is chosen at a later look.
        """
        for origin, announced in chosen.items():
            payers = self._trust.of(origin).payers
            if self._accounts.pulls.has(payers):
                self._accounts.pulls.charge(payers, MAX_PULL)
                self._pulling[origin] = asyncio.create_task(self._pull_one(connection, origin, announced, payers, now))

    def _finished(self) -> None:
        """Forget the pulls that have ended; raises what only a fault of ours can raise in one."""
        for origin in [origin for origin, pull in self._pulling.items() if pull.done()]:
            self._pulling.pop(origin).result()

    async def _pull_one(self, connection: Transport, origin: bytes, announced: Announcement, payers: Payers, now: float) -> None:
        with suppress(PeerAway):  # the network has just ended: the next look finds it again
            try:
                blob = await self._pull(connection, origin, announced, payers)
            finally:
                self._accounts.pulls.charge(payers, -MAX_PULL)  # what came is paid for
            if not blob:
                return
            # Of all others one at most stands in line with those of trusted peers, which so wait for two records only.
            line = nullcontext() if self._trust.of(origin).trusted else self._not_trusted
            async with line, self._one_at_a_time:  # the round's own judging never waits for more than one of ours
                await self._accept(connection, origin, announced, blob, now)

    async def _pull(self, connection: Transport, origin: bytes, announced: Announcement, payers: Payers) -> bytes:
        while not self._traffic.may_receive():  # a limit that the person set
            await asyncio.sleep(PAY_S)
        blob = self._lodged(announced.sha256) or await fetch(  # by a light client, with us
            connection, self._traffic, origin=origin, via=announced.via, sha256=announced.sha256,
            seconds=self._options.patience, certificate=self._admission.certificate(),
            paid=lambda size: self._accounts.pulls.charge(payers, size),
        )  # fmt: skip
        if not blob:
            before = self._unanswered.get(origin)
            rest = 2 * before.rest if before and before.sha256 == announced.sha256 else REST_S
            log.debug("a payload of peer %s did not come; next try in %g s at the earliest", short_id(origin), rest)
            self._unanswered[origin] = Unanswered(time.monotonic() + rest, announced.sha256, rest)
        return blob

    async def _accept(self, connection: Transport, origin: bytes, announced: Announcement, blob: bytes, now: float) -> None:
        """Judge it as of `now`, when it was chosen: a queue before it must not make it too old."""
        payers, watch = (await standing_of(origin, self._trust, connection)).payers, Watch()
        if self._is_resting() or not self._accounts.work.has(payers):  # since it was chosen; it may be chosen again
            why = "this computer rests" if self._is_resting() else "its share of judging is used up"
            log.debug("a record of peer %s is dropped unjudged: %s", short_id(origin), why)
            return
        self._remember((origin, announced.sha256))
        work = asyncio.to_thread(
            judge, blob, announced, origin=origin, charter=self._charter, verifier=self._verifier, now=now, watch=watch
        )
        self._judging = asyncio.ensure_future(work)
        try:
            judged = await asyncio.shield(self._judging)
        except BadRecord as bad:  # counted and told; the swarm goes on
            self._reject(origin, bad.title)
            return
        except VerifierError as error:  # our own trouble, which the verifier has told: nobody is to blame
            log.info("a record of peer %s was not judged: %s", short_id(origin), error.title)
            return
        finally:  # also for a verifier that ended over what was sent
            self._accounts.work.charge(payers, watch.seconds)
        if judged.reserved:
            self._reject(origin, "reserved question", judged.reserved)
        self._keep(origin, judged)

    def _keep(self, origin: bytes, judged: Judged) -> None:
        standing = self._trust.of(origin)
        if standing.choice:  # a person has just decided
            log.info("the groups of peer %s are dropped: the person muted or blocked it", short_id(origin))
            return
        source = standing.party
        fresh = tuple(self._pool.add(msgspec.structs.replace(group, source=source) for group in judged.groups))
        if fresh:
            record = judged.record
            self._trust.received(origin, record.round, record.model, fresh)
            self._tell(GroupsArrived(origin=origin, round=record.round, model=record.model, groups=fresh))

    def _reject(self, origin: bytes, reason: str, count: int = 1) -> None:
        log.info("a message of peer %s is refused: %s", short_id(origin), reason)
        self._trust.rejected(origin, reason, count)
        if not self._trust.of(origin).trusted:  # then nothing else of it is worth a risk
            self._pool.drop(origin)
        self._tell(RecordDropped(origin=origin, reason=reason))

    def _remember(self, payload: directory.Payload) -> None:
        self._tried[payload] = None
        if len(self._tried) > REMEMBERED:
            self._tried.popitem(last=False)

    def _resters(self, connection: Transport, current: Mapping[bytes, Announcement]) -> list[bytes]:
        self._unanswered = {origin: each for origin, each in self._unanswered.items() if origin in current}
        called = {origin: current[origin].via or (origin,) for origin in self._unanswered}
        here = {
            origin
            for origin, givers in called.items()
            if not connection.calls_peers or any(self._trust.of(giver).connection != "gone" for giver in givers)
        }
        return resters(self._unanswered, current, here, time.monotonic())


def resters(
    unanswered: Mapping[bytes, Unanswered], current: Mapping[bytes, Announcement], here: Collection[bytes], now: float
) -> list[bytes]:
    """What did not come: left alone for a while, ever longer, and then until whoever gives it is connected, or else is offered.

    p2pd waits longer after each vain call to a peer, up to minutes, before it makes the next: a swarm that was cut in two
    would wait as long when it is whole again.
    """
    return [
        origin
        for origin, each in unanswered.items()
        if now < each.until or (origin not in here and each.sha256 == current[origin].sha256)
    ]


def promising(waiting: Iterable[JudgedGroup], barren: Collection[bytes]) -> list[JudgedGroup]:
    """What a round may count on: neither a flood under new names nor what was never of use makes it stop looking for more."""
    return [group for group in waiting if group.source != NEWCOMERS and group.group.origin not in barren]


def _lasting(rests: dict[bytes, float]) -> set[bytes]:
    """Who still rests; the others are forgotten."""
    now = time.monotonic()
    for over in [peer_id for peer_id, until in rests.items() if until <= now]:
        del rests[over]
    return set(rests)
