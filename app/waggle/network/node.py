"""The swarm room's door for a node: shares what the round made, and gathers what peers made, in the background.

`share`, `waiting` and `take` are called from the round's thread and never block; everything else runs on one asyncio
loop. A round never waits for a peer.
"""

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from waggle.network.exchange.collector import Gathering
from waggle.network.exchange.outbox_log import Message, Sent
from waggle.network.exchange.pool import Pool
from waggle.network.exchange.publisher import Offers
from waggle.network.identity import membership
from waggle.network.identity.keys import Identity
from waggle.network.identity.membership import Admission
from waggle.network.leaderboard.exchange import Marking
from waggle.network.limits import reputation_file
from waggle.network.limits.bandwidth import Traffic
from waggle.network.limits.rate_limits import Accounts, Shares
from waggle.network.limits.reputation import Choice, Trust
from waggle.network.messages import handshake, rollout_record
from waggle.network.messages.announcement import MAX_BITS
from waggle.network.messages.directory import Depth
from waggle.network.messages.events import News, PeerSeen, StandingsLost, TrafficCounted
from waggle.network.messages.options import SwarmOptions
from waggle.network.messages.rollout_record import Record
from waggle.network.transport.availability import is_light
from waggle.network.transport.gateway.server import GatewayServer, HostNode
from waggle.network.transport.interface import Callbacks, ConnectedPeer, OpenTransport, PeerAway, Pong, Services, fetch
from waggle.network.transport.tasks import end, watch
from waggle.network.web.server import WebServer
from waggle.network.web.statistics import SwarmStatistics
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup
from waggle.tasks.sandbox.exam import Exams
from waggle.tasks.sandbox.verifier import Verifier

DIGEST_BYTES = 32
LISTED_S = 1.0
STALE_S = 120.0  # that a list is told yet while the directory cannot be read
MAX_ADDRESSES = 3  # of our addresses, on the status page
COUNT_S = 1.0  # between two tellings of traffic and standings
KEEP_S = 60.0  # between two writings of the standings
BYTES_RATE, BYTES_BURST = 1e6, 16e6  # of payload, to any one source


class SwarmNode:
    """One participant's place in the swarm. `tell` is called on the loop's thread; `clock` counts epochs.

    While it is `held`, nothing is pulled from peers or judged.
    """

    def __init__(
        self,
        options: SwarmOptions,
        charter: Charter,
        identity: Identity,
        verifier: Verifier,
        tell: Callable[[News], None],
        open_transport: OpenTransport,
        clock: Callable[[], float] = time.time,
        is_resting: Callable[[], bool] = lambda: False,
    ) -> None:
        self._options = options
        self._charter = charter
        self._digest = charter.digest
        self._identity = identity
        self._board = SwarmStatistics(charter)
        self._addresses: tuple[str, ...] = ()

        def hear(news: News) -> None:
            self._board.add(news)
            tell(news)

        self._tell = hear
        self._pool = Pool(charter, options.pool_capacity, clock)
        self._standings, self._keeping = options.standings, threading.Lock()
        known = reputation_file.read(options.standings)
        self._trust = Trust(known=known or ())
        self._lost = known is None
        self._quota, self._sources = Shares(BYTES_RATE, BYTES_BURST), dict[bytes, str]()  # of everybody connected
        self._traffic = Traffic()
        self._admission = Admission(charter, identity.peer_id, options.key)
        self._sent, depth = Sent(clock), Depth(most=0 if is_light(options) else MAX_BITS)
        accounts = Accounts()
        self._offers = Offers(
            identity, charter, self._admission, clock, options.tempo, self._sent, depth, sheet=lambda: self._marking.own
        )  # fmt: skip
        self._gateway = self._door_for_others()
        self._marking = Marking(
            options, charter, identity, self._admission, verifier, hear, clock,
            trust=self._trust, traffic=self._traffic, accounts=accounts, lodged=self._gateway.uploaded,
        )  # fmt: skip
        self._gathering = Gathering(
            options, charter, self._admission, identity.peer_id, verifier, hear, clock,
            pool=self._pool, trust=self._trust, traffic=self._traffic, depth=depth, accounts=accounts,
            lodged=self._gateway.uploaded, mine=lambda: self._offers.expires,
            on_announcements=self._marking.on_announcements, is_resting=is_resting,
        )  # fmt: skip
        # When the directory was asked, monotonic; when it answered last, by the clock that goes on in sleep, and what.
        self._looked_at, self._listed = -LISTED_S, (0.0, dict[bytes, bytes]())
        self._listing: asyncio.Task[None] | None = None
        self._connection = open_transport(self._callbacks(hear))
        self._web = self._page() if options.web_port is not None else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks, self._reported_rates = list[asyncio.Task[None]](), (0.0, 0.0)

    def _door_for_others(self) -> GatewayServer:
        host = HostNode(
            read_directory=self._list, announce=self._announce_for, pull=self._pull_for, admits=self._trust.admits,
            serve_payload=self._give, may_receive=self._take, may_tell=self._traffic.may_tell,
        )  # fmt: skip
        return GatewayServer(self._digest, self._identity, self._admission, host)

    def _callbacks(self, report: Callable[[News], None]) -> Callbacks:
        return Callbacks(
            services=self._services(), report=report, admission=self._admission, on_peers=self._meet,
            on_joined=self._offers.renew, on_handshake=self._trust.greeted, trusted_peers=self._trust.trusted,
            traffic=self._traffic,
        )  # fmt: skip

    def _services(self) -> Services:
        return Services(
            payload=self._give_payload, charter=self._give_charter, handshake=self._greet, admits=self._trust.admits,
            source=lambda peer_id: self._sources.get(peer_id), refresh_peers=lambda: self._connection.refresh_peers(),
            may_tell=self._traffic.may_tell, digest=self._digest, member=self._admission.admits,
        )  # fmt: skip

    def _page(self) -> WebServer:
        # A client of a gateway has one name there: an announcement for somebody else would end its own connection.
        serve = self._gateway.serve if self._options.gateway and self._connection.calls_peers else None
        return WebServer(lambda: self._board.status(self._addresses), serve, charters.encode(self._charter))

    async def start(self) -> None:
        """Start p2pd and the work in the background; raises SwarmError. Waits for no peer."""
        membership.require(self._charter, self._options.key)
        await self._connection.start()
        if self._web is not None:
            await self._web.start(self._options.web_host, self._options.web_port or 0)
        self._loop = asyncio.get_running_loop()
        if self._lost:
            self._tell(StandingsLost())
        ways = (self._offers, self._gathering, self._marking)
        work = (*(each.run(self._connection) for each in ways), self._count(), self._connection.run())
        self._tasks = [asyncio.create_task(each) for each in work]

    async def run(self) -> None:
        """Watch the work in the background: raise what only a fault of ours can raise, return when the node is closed."""
        await watch(self._tasks)

    async def close(self) -> None:
        """Leave the swarm, ending p2pd. Safe to call twice."""
        self._loop = None
        if self._web is not None:
            await self._web.close()
        await end([*self._tasks, *([self._listing] if self._listing else [])])
        await self._gathering.finish()
        await self._marking.finish()
        await self._connection.close()
        self._keep_standings()

    @property
    def pid(self) -> int:
        """The process id of p2pd; raises PeerAway while it is being started again."""
        return self._connection.pid

    @property
    def web_port(self) -> int:
        """Where the status page is, of a node that offers one."""
        assert self._web is not None, "options.web_port"
        return self._web.port

    async def addresses(self) -> list[str]:
        """Where others reach this node, the most useful first; none while the network starts again, and behind gateways."""
        try:
            return await self._connection.network.addresses()
        except PeerAway:  # who needs one is told, and asks again
            return []

    def limit(self, rate: float | None) -> None:
        """Hold payloads to so many bytes a second, each way; None: as many as there are."""
        self._traffic.limit = rate

    def choose(self, peer_id: bytes, choice: Choice) -> None:
        """A person mutes or blocks a peer, or takes that back (""). It holds at once, and after a restart. From any thread."""
        self._trust.choose(peer_id, choice)
        if choice:
            self._pool.drop(peer_id)
        self._keep_standings()

    def share(self, number: int, epoch: int, groups: Sequence[Group], model: str) -> tuple[int, int]:
        """Offer own groups to the swarm: how many of them travel, and the bytes of their record; (0, 0) when none of them may.

        From any thread. Raises ValueError for groups of another node or epoch.
        """
        sound = [group for group in (rollout_record.shareable(each, self._charter) for each in groups) if group is not None]
        loop = self._loop
        if not sound or loop is None:
            return 0, 0
        record = Record(
            origin=self._identity.peer_id,
            round=number,
            epoch=epoch,
            model=rollout_record.model_name(model),
            groups=tuple(sound[: rollout_record.MAX_GROUPS]),
        )
        size = len(rollout_record.encode(record, self._charter))
        try:
            loop.call_soon_threadsafe(self._offers.add, record)
        except RuntimeError:  # the loop has just ended: the node is leaving, and there is nobody to tell
            return 0, 0
        return len(record.groups), size

    @property
    def exams(self) -> Exams:
        """What every epoch asks of everybody."""
        return self._marking.exams

    @property
    def compares(self) -> bool:
        """Whether answer sheets are published and marked here."""
        return self._marking.on

    def compare(self, *, on: bool) -> None:
        """Publish answer sheets and mark those of peers from now on, or no more."""
        self._marking.turn(on=on)

    def publish(self, epoch: int, number: int, learned: int, model: str, answers: Sequence[Completion], right: int) -> int:
        """Publish the answers to an epoch's exam and return the bytes of the sheet; 0 where the person did not choose to.

        From any thread.
        """
        loop = self._loop
        if loop is None or not self._marking.on:
            return 0
        blob = self._marking.signed(epoch, number, learned, model, answers)
        try:
            loop.call_soon_threadsafe(self._publish, blob, right)
        except RuntimeError:  # the loop has just ended: the node is leaving, and there is nobody to tell
            return 0
        return len(blob)

    def _publish(self, blob: bytes, right: int) -> None:
        self._marking.publish(blob, right)
        self._offers.renew()

    def sent(self) -> tuple[Message, ...]:
        """The last few messages that left this computer, newest first."""
        return self._sent.newest()

    def waiting(self) -> tuple[JudgedGroup, ...]:
        """The groups of peers that wait to be trained on, oldest first. From any thread."""
        return self._pool.waiting()

    def take(self, groups: Sequence[JudgedGroup]) -> None:
        """These are being trained on: they leave the pool, and count for their origins. From any thread."""
        self._pool.take(groups)
        for origin, count in Counter(judged.group.origin for judged in groups).items():
            self._trust.used(origin, count)

    def discard(self, groups: Sequence[JudgedGroup]) -> None:
        """Nothing can be learned from these here: they leave the pool. From any thread."""
        self._pool.take(groups)
        for origin, count in Counter(judged.group.origin for judged in groups).items():
            self._trust.idle(origin, count)

    async def _give_payload(self, peer_id: bytes, request: bytes) -> bytes:
        if not self._admission.admits(peer_id, request[DIGEST_BYTES:]):
            return b""
        sha256 = request[:DIGEST_BYTES]
        offer = self._offers.get(sha256)
        blob = offer.blob if offer else self._marking.get(sha256) or self._gateway.uploaded(sha256)
        return self._give(peer_id, self._source(peer_id), sha256, blob)

    def _give(self, peer_id: bytes, source: str, sha256: bytes, blob: bytes) -> bytes:
        """A payload for a peer or a light client, counted; empty where its source's share, or a limit of traffic, is used up."""
        to = source.encode() or peer_id
        if not blob or not self._traffic.may_send(to) or not self._quota.allows(peer_id, source, len(blob)):
            return b""
        self._traffic.sent(to, len(blob))
        offer = self._offers.get(sha256)
        if offer is None:
            return self._sent.note("sheet", blob, peer_id) if blob == self._marking.get(sha256) else blob
        self._trust.record_pull(peer_id, len(offer.record.groups))
        return self._sent.note("groups", blob, peer_id)

    def _take(self, source: bytes, size: int) -> bool:
        """Whether so much may come from a light client here now, by the limit that the person set; if so it is counted."""
        allowed = self._traffic.may_lodge(source, size)
        if allowed:
            self._traffic.received(size)
        return allowed

    async def _list(self) -> dict[bytes, bytes]:
        """The directory for a light client: of now, or of the last second, or older where a limit or strangers say no."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._read_list())
        await asyncio.shield(self._listing)  # however many ask, it is read once, and whoever leaves ends it for nobody
        read_at, listed = self._listed
        return listed if abs(time.time() - read_at) < STALE_S else {}  # by what is long over a client thinks its clock off

    async def _read_list(self) -> None:
        if time.monotonic() - self._looked_at < LISTED_S or not self._traffic.may_read():
            return
        with suppress(PeerAway):
            entries, trusted = await self._gathering.read(self._connection), self._trust.trusted()
            # A client is told of so many: a crowd of made-up names must not crowd out those who were of use.
            order = sorted(entries, key=lambda origin: (origin not in trusted, random.random()))
            self._listed = time.time(), {origin: entries[origin] for origin in order}
        self._looked_at = time.monotonic()  # the next one asks as late again: nobody waits for several such reads

    async def _announce_for(self, peer_id: bytes, signed: bytes, expires_at: float) -> bool:
        return await self._offers.put(self._connection, peer_id, signed, expires_at)

    async def _pull_for(self, peer_id: bytes, sha256: bytes, seconds: float) -> bytes:
        own = self._offers.get(sha256)
        if blob := own.blob if own else self._marking.get(sha256):
            return blob
        if not self._traffic.may_receive():
            return b""
        return await fetch(
            self._connection, self._traffic, origin=peer_id, via=(), sha256=sha256, seconds=seconds,
            certificate=self._admission.certificate(),
        )  # fmt: skip

    def _give_charter(self, sha256: bytes) -> bytes:
        return self._sent.note("charter", charters.encode(self._charter)) if sha256 == self._digest else b""

    def _source(self, peer_id: bytes) -> str:
        """Whose share of our upload a peer uses: that of its address range, so that new names do not bring new shares."""
        source = self._sources.get(peer_id)
        return self._trust.of(peer_id).source if source is None else source

    def _greet(self) -> bytes:
        return self._sent.note("greeting", handshake.write(self._digest, self._offers.announced))

    def _keep_standings(self) -> None:
        with self._keeping:
            reputation_file.write(self._standings, self._trust.all())

    def _meet(self, peers: list[ConnectedPeer], pongs: dict[bytes, Pong]) -> None:
        self._sources = {peer.peer_id: peer.source for peer in peers}  # trust keeps the standing of some
        self._trust.connected({peer.peer_id: (peer.route, peer.source) for peer in peers})
        for peer_id, pong in pongs.items():
            self._trust.answered(peer_id, pong.delay_ms)

    async def _count(self) -> None:
        saved_at = time.monotonic()
        while True:
            for standing in self._trust.changed():
                self._tell(PeerSeen(peer=standing))
            rates = self._traffic.rates()
            if rates != self._reported_rates:
                self._reported_rates = rates
                self._tell(TrafficCounted(up=rates[0], down=rates[1]))
            if self._web is not None:
                with suppress(PeerAway):  # the network starts again: those known before are shown
                    self._addresses = tuple(await self._connection.network.addresses())[:MAX_ADDRESSES]
            if time.monotonic() - saved_at > KEEP_S:
                saved_at = time.monotonic()
                self._keep_standings()
            await asyncio.sleep(COUNT_S)
