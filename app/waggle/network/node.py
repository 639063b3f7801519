"""A node of a swarm: shares what each round made, and collects what peers made, in the background.

`share`, `waiting`, `take` and `discard` are called from the round's thread and never block; everything else runs on one asyncio
loop. A round never waits for a peer.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from waggle.core.peer_id import is_peer_id, short_id
from waggle.core.text.round_number import round_number
from waggle.network.exchange.collector import RolloutCollector
from waggle.network.exchange.directory_cache import DirectoryCache
from waggle.network.exchange.node_context import NodeContext, PeerAccounts
from waggle.network.exchange.outbox_log import OutboxLog
from waggle.network.exchange.pool import GroupPool
from waggle.network.exchange.publisher import RolloutPublisher
from waggle.network.identity import membership
from waggle.network.leaderboard.exchange import AnswerSheetExchange
from waggle.network.limits import reputation_file
from waggle.network.limits.named_calls import CLIENTS, CLIENTS_LEAVE
from waggle.network.limits.rate_limits import AddressRangeRateLimit
from waggle.network.limits.reputation import Choice, ReputationTable, trusted_peers
from waggle.network.limits.reputation_changes import ReputationChanges
from waggle.network.messages import directory, handshake, rollout_record
from waggle.network.messages.announcement import MAX_BITS, Announcement
from waggle.network.messages.directory import DirectoryDepth
from waggle.network.messages.events import DuplicateIdentity, NetworkEvent, PeerChanged, ReputationsLost, TrafficMeasured
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.network.transport.gateway.server import HostNode, OpenGateway
from waggle.network.transport.interface import Callbacks, ConnectedPeer, OpenTransport, PeerAway, Pong, Services, fetch
from waggle.network.transport.tasks import end, watch
from waggle.network.web import class_page
from waggle.network.web.class_statistics import ClassStatistics, ClassStatus
from waggle.network.web.server import WebServer
from waggle.network.web.statistics import SwarmStatistics, SwarmStatus
from waggle.tasks import charter as charters
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.rollout_group import Group, JudgedGroup

log = logging.getLogger(__name__)

DIGEST_BYTES = 32
MAX_ADDRESSES = 3  # of our addresses, on the status page
REPORT_EVERY_S = 1.0  # traffic and changes of reputations
SAVE_EVERY_S = 60.0  # reputations
UPLOAD_RATE, UPLOAD_BURST = 1e6, 16e6  # bytes of payloads, per second and at once, to any one address range


class SwarmNode:
    """One participant in a swarm, with the parts that work for it.

    `outbox` holds the newest messages that left this computer, `leaderboard` the comparison of models, `web` the status page, if
    the options ask for one.
    """

    def __init__(self, context: NodeContext, open_transport: OpenTransport, open_gateway: OpenGateway) -> None:
        options, charter = context.options, context.charter
        self._statistics = SwarmStatistics(charter)
        self._class = ClassStatistics(charter)
        self._addresses: tuple[str, ...] = ()
        self._pass_on = context.report
        self._context = replace(context, report=self._report)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks = list[asyncio.Task[None]]()
        self._saving, self._duplicate_reported = threading.Lock(), False
        known = reputation_file.read(options.reputation_file)
        self._reputations_lost = known is None
        self._accounts = PeerAccounts(reputations=ReputationTable(known=known or ()))
        self._reputations, self._bandwidth = self._accounts.reputations, self._accounts.bandwidth
        self._changes = ReputationChanges(self._reputations)
        self._pieces = PieceStore(options.questions_folder, charter)
        self._upload_limit = AddressRangeRateLimit(UPLOAD_RATE, UPLOAD_BURST)
        self._address_ranges: dict[bytes, str] = {}  # of every connected peer
        self._pool = GroupPool(charter, options.pool_capacity, context.clock)
        self.outbox = OutboxLog(context.clock)
        self.transport = open_transport(self._callbacks())
        self._gateway = open_gateway(self._host_node())
        depth = DirectoryDepth(most=MAX_BITS if self.transport.calls_peers else 0)
        self._publisher = RolloutPublisher(self._context, self.outbox, depth, answer_sheet=self._own_answer_sheet)
        self.leaderboard = AnswerSheetExchange(
            self._context, self._accounts, call_in_loop=self._call_in_loop, on_published=self._publisher.renew,
            uploaded=self._gateway.uploaded,
        )  # fmt: skip
        self._collector = RolloutCollector(
            self._context, self._accounts, self._pool, depth, uploaded=self._gateway.uploaded,
            own_expiry=self._own_expiry, on_announcements=self.leaderboard.on_announcements,
        )  # fmt: skip
        self._directory = DirectoryCache(self._read_directory, self._reputations, self._bandwidth)
        self.web = self._web_server() if options.web_port is not None else None

    def _host_node(self) -> HostNode:
        return HostNode(
            read_directory=self._directory_entries, announce=self._announce_for, pull=self._pull_for,
            admits=self._admits, serve_payload=self._give, may_receive=self._accept_upload,
            may_send_directory=self._bandwidth.may_send_directory,
        )  # fmt: skip

    def _callbacks(self) -> Callbacks:
        return Callbacks(
            services=self._services(), report=self._context.report, membership=self._context.membership,
            on_peers=self._update_connections, on_joined=self._renew_announcement,
            on_handshake=self._reputations.record_handshake, trusted_peers=partial(trusted_peers, self._reputations),
            bandwidth=self._bandwidth,
        )  # fmt: skip

    def _services(self) -> Services:
        return Services(
            payload=self._give_payload, charter=self._give_charter, handshake=self._give_handshake, admits=self._admits,
            source=self._connected_from, refresh_peers=self._refresh_peers,
            may_send_directory=self._bandwidth.may_send_directory, digest=self._context.charter.digest,
            member=self._context.membership.admits, useful=self._is_useful,
        )  # fmt: skip

    def _web_server(self) -> WebServer:
        # A gateway knows its client by one name: an announcement for another peer would end the client's own connection.
        serve = self._gateway.serve if self._context.options.gateway and self.transport.calls_peers else None
        in_class = self._class_status if self._context.options.class_page else None
        return WebServer(self._status, serve, charters.encode(self._context.charter), in_class)

    async def start(self) -> None:
        """Start the transport and the work in the background; raises SwarmError. Waits for no peer."""
        options = self._context.options
        membership.require_key(self._context.charter, options.key)
        await self.transport.start()
        if self.web is not None:
            await self.web.start(options.web_host, options.web_port or 0)
        self._loop = asyncio.get_running_loop()
        if self._reputations_lost:
            self._context.report(ReputationsLost())
        parts = (self._publisher, self._collector, self.leaderboard)
        work = (*(part.run(self.transport) for part in parts), self._report_and_save(), self.transport.run())
        self._tasks = [asyncio.create_task(each) for each in work]

    async def run(self) -> None:
        """Watch the work in the background: raise what only a bug of ours can raise, return when the node is closed."""
        await watch(self._tasks)

    async def close(self) -> None:
        """Leave the swarm and end the transport. Safe to call twice."""
        self._loop = None
        if self.web is not None:
            await self.web.close()
        await end(self._tasks)
        await self._directory.close()
        await self._collector.finish()
        await self.leaderboard.finish()
        await self.transport.close()
        self._save_reputations()

    async def addresses(self) -> list[str]:
        """Where others reach this node, the most useful first; empty while the network restarts, and behind gateways."""
        try:
            return await self.transport.network.addresses()
        except PeerAway:  # the caller asks again
            return []

    def limit(self, rate: float | None) -> None:
        """Limit payloads to `rate` bytes per second, each way; None: no limit."""
        self._bandwidth.limit = rate

    @property
    def is_limited(self) -> bool:
        """Whether something had to wait for the limit of payloads just now."""
        return self._bandwidth.is_short

    @property
    def is_away(self) -> bool:
        """Whether the network process ended and has not started again."""
        return self.transport.is_away

    def choose(self, peer_id: bytes, choice: Choice) -> None:
        """Mute or block a peer, or neither (""): from now on, and after a restart. From any thread."""
        self._reputations.set_choice(peer_id, choice)
        if choice:
            self._pool.drop(peer_id)
        self._save_reputations()

    def share(self, number: int, epoch: int, groups: Sequence[Group], model: str) -> tuple[int, int]:
        """Publish groups of this node. Returns how many travel, and the bytes of their record: (0, 0) if none may.

        From any thread. Raises ValueError for groups of another node or epoch.
        """
        candidates = (rollout_record.shareable(group, self._context.charter) for group in groups)
        sound = [group for group in candidates if group is not None]
        if len(sound) < len(groups):
            log.debug(
                "round %d: %d groups are not shared: their size, or the length or characters of a text, may not travel",
                round_number(number),
                len(groups) - len(sound),
            )
        if not sound or self._loop is None:
            return 0, 0
        record = RolloutRecord(
            origin=self._context.identity.peer_id,
            round=number,
            epoch=epoch,
            model=rollout_record.model_name(model),
            groups=tuple(sound[: rollout_record.MAX_GROUPS]),
        )
        size = len(rollout_record.encode(record, self._context.charter))
        return (len(record.groups), size) if self._call_in_loop(lambda: self._publisher.add(record)) else (0, 0)

    def waiting(self) -> tuple[JudgedGroup, ...]:
        """The groups of peers that wait to be trained on, oldest first. From any thread."""
        return self._pool.waiting()

    def take(self, groups: Sequence[JudgedGroup]) -> None:
        """Remove groups that are being trained on from the pool, and count them for their origins. From any thread."""
        self._pool.take(groups)
        for origin, count in Counter(judged.group.origin for judged in groups).items():
            self._reputations.record_training(origin, used=count)

    def discard(self, groups: Sequence[JudgedGroup]) -> None:
        """Remove groups that nothing can be learned from, and count them against their origins. From any thread."""
        self._pool.take(groups)
        for origin, count in Counter(judged.group.origin for judged in groups).items():
            self._reputations.record_training(origin, idle=count)

    def _report(self, event: NetworkEvent) -> None:
        """Count an event for the status page and pass it on."""
        if isinstance(event, DuplicateIdentity):  # by announcements and by statements of presence
            if self._duplicate_reported:
                return
            self._duplicate_reported = True
        self._statistics.add(event)
        if self._context.options.class_page:
            self._class.add(event)
        self._pass_on(event)

    def _status(self) -> SwarmStatus:
        return self._statistics.status(self._addresses[:MAX_ADDRESSES], self._context.training())

    def _class_status(self) -> ClassStatus:
        options, port = self._context.options, self.web.port if self.web is not None else 0
        return self._class.status(
            own_name=options.member_name, training=self._context.training(), link=self._context.invite(self._addresses),
            page=class_page.address(options.web_host, port, self._addresses),
        )  # fmt: skip

    def _renew_announcement(self) -> None:
        self._publisher.renew()

    def _own_expiry(self) -> int:
        """When our newest announcement expires (unix milliseconds)."""
        return self._publisher.expires

    def _own_answer_sheet(self) -> tuple[bytes, bytes]:
        return self.leaderboard.own

    async def _refresh_peers(self) -> None:
        await self.transport.refresh_peers()

    async def _read_directory(self) -> dict[bytes, bytes]:
        return await self._collector.read(self.transport)

    async def _directory_entries(self) -> dict[bytes, bytes]:
        return await self._directory.entries()

    def _call_in_loop(self, function: Callable[[], None]) -> bool:
        """Call a function on the loop's thread; False if the node is not started, or closed."""
        loop = self._loop
        if loop is None:
            return False
        try:
            loop.call_soon_threadsafe(function)
        except RuntimeError:  # the loop has just ended
            return False
        return True

    def _admits(self, peer_id: bytes) -> bool:
        """Whether this node answers calls of a peer."""
        return not self._reputations.of(peer_id).blocked

    async def _give_payload(self, peer_id: bytes, request: bytes) -> bytes:
        if not self._context.membership.admits(peer_id, request[DIGEST_BYTES:]):
            log.debug("peer %s gets no payload: its certificate does not hold here now", short_id(peer_id))
            return b""
        sha256 = request[:DIGEST_BYTES]
        blob = await self._own_payload(sha256) or self._gateway.uploaded(sha256)
        return self._give(peer_id, self._address_range(peer_id), sha256, blob)

    async def _own_payload(self, sha256: bytes) -> bytes:
        """A payload that this node serves itself: groups, its answer sheet, or a piece of the swarm's own questions."""
        published = self._publisher.get(sha256)
        if blob := published.blob if published else self.leaderboard.get(sha256):
            return blob
        return await asyncio.to_thread(self._pieces.get, sha256) if self._pieces.names(sha256) else b""

    def _give(self, peer_id: bytes, source: str, sha256: bytes, blob: bytes) -> bytes:
        """A payload for a peer or a light client, counted; b"" if the share of its address range, or a limit, is used up."""
        receiver = source.encode() or peer_id
        if not blob:
            log.debug("peer %s gets no payload: it is not here, or no more", short_id(peer_id))
            return b""
        if not self._bandwidth.may_send(receiver) or not self._upload_limit.allows(peer_id, source, len(blob)):
            log.debug("peer %s gets no payload now: its share of our upload is used up", short_id(peer_id))
            return b""
        self._bandwidth.count_sent(receiver, len(blob))
        published = self._publisher.get(sha256)
        if self._pieces.names(sha256):
            return self.outbox.add("questions", blob, peer_id)
        if published is None:  # an answer sheet of ours, or something that a light client uploaded
            return self.outbox.add("sheet", blob, peer_id) if blob == self.leaderboard.get(sha256) else blob
        self._reputations.record_pull(peer_id, len(published.record.groups))
        return self.outbox.add("groups", blob, peer_id)

    def _accept_upload(self, source: bytes, size: int) -> bool:
        """Whether a light client may upload `size` bytes now under the person's limit; if so they are counted."""
        allowed = self._bandwidth.may_accept_upload(source, size)
        if allowed:
            self._bandwidth.count_received(size)
        return allowed

    async def _announce_for(self, peer_id: bytes, signed: bytes, expires_at: float) -> bool:
        return await self._publisher.put(self.transport, peer_id, signed, expires_at)

    async def _pull_for(self, peer_id: bytes, sha256: bytes, seconds: float) -> bytes:
        if blob := await self._own_payload(sha256):
            return blob
        if not is_peer_id(peer_id) or not self._bandwidth.may_receive():
            return b""
        unmet = not self._accounts.is_met((peer_id,))
        if unmet and not self._accounts.unmet_calls.begin(CLIENTS):
            return b""
        # The light client alone names this peer, so it counts as a holder, not as the origin.
        blob = await fetch(
            self.transport, self._bandwidth, origin=b"", via=(peer_id,), sha256=sha256, seconds=seconds,
            certificate=self._context.membership.certificate(), named=self._accounts.named_calls, leave=CLIENTS_LEAVE,
        )  # fmt: skip
        if unmet and blob:
            self._accounts.unmet_calls.gave(CLIENTS)
        return blob

    def _is_useful(self, announced: Announcement) -> bool:
        return directory.is_useful(announced, self._context.charter, self._context.clock())

    def _give_charter(self, sha256: bytes) -> bytes:
        charter = self._context.charter
        return self.outbox.add("charter", charters.encode(charter)) if sha256 == charter.digest else b""

    def _give_handshake(self) -> bytes:
        return self.outbox.add("greeting", handshake.write(self._context.charter.digest, self._publisher.announced))

    def _connected_from(self, peer_id: bytes) -> str | None:
        """The address range of a connected peer; None for others."""
        return self._address_ranges.get(peer_id)

    def _address_range(self, peer_id: bytes) -> str:
        """The address range whose share of our upload a peer uses, so that a new name brings no new share."""
        source = self._connected_from(peer_id)
        return self._reputations.of(peer_id).source if source is None else source

    def _save_reputations(self) -> None:
        with self._saving:
            reputation_file.write(self._context.options.reputation_file, list(self._reputations))

    def _update_connections(self, peers: list[ConnectedPeer], pongs: dict[bytes, Pong]) -> None:
        self._address_ranges = {peer.peer_id: peer.source for peer in peers}  # of all; the table holds some of them
        self._reputations.update_connections({peer.peer_id: (peer.route, peer.source) for peer in peers})
        for peer_id, pong in pongs.items():
            self._reputations.record_ping(peer_id, pong.delay_ms)

    async def _report_and_save(self) -> None:
        saved_at, reported_rates = time.monotonic(), (0.0, 0.0)
        while True:
            for peer in self._changes.since_last():
                self._context.report(PeerChanged(peer=peer))
            rates = self._bandwidth.rates()
            if rates != reported_rates:
                reported_rates = rates
                self._context.report(TrafficMeasured(up=rates[0], down=rates[1]))
            if self.web is not None:
                with suppress(PeerAway):  # the network restarts: the page shows the addresses known before
                    self._addresses = tuple(await self.transport.network.addresses())
            if time.monotonic() - saved_at > SAVE_EVERY_S:
                saved_at = time.monotonic()
                self._save_reputations()
            await asyncio.sleep(REPORT_EVERY_S)
