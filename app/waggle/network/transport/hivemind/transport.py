"""The transport of a node that calls peers itself: keeps one `HivemindNetwork` open.

It starts p2pd again when that dies, and joins the swarm again when nobody answers or a part of the swarm is missing.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from waggle.core.errors import SwarmError
from waggle.core.peer_id import short_id, text_of
from waggle.network.identity.keys import Identity
from waggle.network.messages.addresses import is_address, own_port, peer_of
from waggle.network.messages.clock_skew import ClockSkewMonitor
from waggle.network.messages.events import DuplicateIdentity, NetworkRestarted, OwnSeed, Reach, ReachChanged, Way
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport import peer_cache
from waggle.network.transport.hivemind.lan_discovery import LanDiscovery
from waggle.network.transport.hivemind.memory_limit import MOST_MEMORY
from waggle.network.transport.hivemind.network import HivemindNetwork, is_reached_by, open_network
from waggle.network.transport.hivemind.peer_polling import CpuTimer
from waggle.network.transport.hivemind.presence_exchange import PresenceExchange
from waggle.network.transport.hivemind.reachability import QUESTIONS_RATE
from waggle.network.transport.interface import Callbacks, ConnectedPeer, PeerAway, Pong
from waggle.network.transport.tasks import end, watch

log = logging.getLogger(__name__)

ANSWER_COUNTS_S = 30.0  # "connected" means that a peer answered within this time
LAN_S = 30.0  # between two checks whether our address on the local network has changed
CHECK_S = 1.0  # between two checks of who is connected, which ask p2pd only
PINGED, RELIED = 8, 3  # peers pinged at a time, and how many of them are seeds or trusted peers if so many are connected
PRESENCE_S = 30.0  # between two statements of presence to the same peers; see presence_exchange.py
PEERS_ASKED = 3  # peers at a time that we ask whether they can call us
ASK_AGAIN_S = 1 / QUESTIONS_RATE  # before a peer that did not say is asked again
CALLED = 2  # known addresses called at a time while a peer is connected
SLOW_MS = 1000.0  # a ping that takes longer is logged
FULL = "the network process took too much memory"
RESTART_S = 60.0  # between two restarts that we did not choose: whoever can end p2pd must not keep the computer busy with it
PATIENCE = 3  # checks in a row that p2pd may take too much memory, while strangers are hung up on, before it is restarted
CLOCK_JUMP_S = 5.0  # if wall clock and monotonic clock drift apart by this, the computer slept
Answer = TypeVar("Answer")


class HivemindTransport:
    """Owns the network. Everything runs on the event loop that called `start`."""

    calls_peers = True

    def __init__(self, options: SwarmOptions, identity: Identity, callbacks: Callbacks) -> None:
        self._options = options
        self._identity = identity
        self._callbacks = callbacks
        self._network: HivemindNetwork | None = None
        self._port = options.port
        self._known = peer_cache.read(options.known_peers)
        self._suggested: tuple[str, ...] = ()
        self._tried = 0
        self._answered_at = -math.inf  # monotonic, as `_join_at`
        self._join_at = -math.inf
        self._pinged: set[bytes] = set()
        self._clock_offset = 0.0
        self._skew = ClockSkewMonitor(callbacks.report)
        self._reported_reach: ReachChanged | None = None
        self._way: Way = "relay" if options.through == "relay" and options.seeds else ""  # empty: not known here
        self._relayed = self._way == "relay"  # whether p2pd runs behind relays; follows `_way` once that is known
        self._changing = False  # p2pd ends because we want to start it in another way
        self._full = False  # p2pd ends because it took too much memory
        self._restart_at = -math.inf  # not before, unless we choose to (monotonic)
        # Peers that we asked whether they can call us, and when they may be asked again (monotonic).
        self._ask_again_at: dict[bytes, float] = {}
        self._presence, self._own_seed_reported = PresenceExchange(identity, home_salt=options.home_salt), False
        self._tasks: list[asyncio.Task[None]] = []
        self._lan = LanDiscovery(callbacks.services.digest, identity.peer_id, self.suggest) if options.lan else None

    @property
    def network(self) -> HivemindNetwork:
        """The open network. Raises PeerAway while p2pd starts again."""
        if self._network is None:
            raise PeerAway("the network process is starting again")
        return self._network

    @property
    def pid(self) -> int:
        """The process id of p2pd. Raises PeerAway while it starts again."""
        return self.network.daemon.pid

    @property
    def is_away(self) -> bool:
        """Whether p2pd ended and has not started again: it rests, or cannot start."""
        return self._network is None and bool(self._tasks)

    async def start(self) -> None:
        """Start p2pd. Raises SwarmError for a port in use or a malformed seed, but not for seeds that do not answer."""
        for address in self._options.seeds:
            peer_of(address)
        self._known = tuple(filter(is_address, self._known))
        self._network = await self._open()
        await self._learn_port(self._network)
        self._clock_offset = time.time() - time.monotonic()
        self._report_reach("connecting", [], "")
        work = (self._supervise(), self._stay_joined(), self._limit_memory(), self._state_presence())
        self._tasks = [asyncio.create_task(each) for each in work]
        if self._lan is not None:
            with suppress(PeerAway):  # p2pd died at once: `_supervise` replaces it
                await self._lan.advertise(await self._network.addresses(), self._options.host)
            self._tasks.append(asyncio.create_task(self._stay_on_lan(self._lan)))

    async def refresh_peers(self) -> None:
        """Report who is connected now. Raises PeerAway."""
        self._callbacks.on_peers(await self.network.daemon.peers(), {})

    def suggest(self, address: str) -> None:
        """Call this address soon, where a peer may be."""
        self._suggested = tuple(dict.fromkeys((address, *self._suggested)))[: peer_cache.MAX_KEPT]
        self._join_at = -math.inf

    async def run(self) -> None:
        """Return when closed. Raise an exception that a task of ours did not expect."""
        await watch(self._tasks)

    async def close(self) -> None:
        """End the tasks and p2pd. Safe to call twice."""
        await end(self._tasks)
        if self._lan is not None:
            await self._lan.close()
        network, self._network = self._network, None
        if network is not None:
            await network.close()

    async def _open(self) -> HivemindNetwork:
        relays = self._options.seeds if self._relayed else ()
        services = self._callbacks.services
        return await open_network(self._options, self._identity, services, port=self._port, relays=relays)

    async def _learn_port(self, network: HivemindNetwork) -> None:
        """Keep the port that p2pd chose for later starts: peers know it now."""
        with suppress(PeerAway):  # it died at once: `_supervise` replaces it
            self._port = self._port or own_port(await network.addresses())

    async def _stay_on_lan(self, lan: LanDiscovery) -> None:
        """Advertise this node again if the local network comes up late, or is another one after the computer slept."""
        while True:
            await asyncio.sleep(LAN_S)
            with suppress(PeerAway, SwarmError):  # p2pd starts again, or there is no local network now
                await lan.advertise(await self.network.addresses(), self._options.host)

    async def _supervise(self) -> None:
        while True:
            network = self.network
            code = await network.daemon.wait_until_exit()
            self._network = None
            self._report_reach("connecting", [], "")
            await network.close()
            deliberate, self._changing = self._changing, False
            full, self._full = self._full, False
            if not deliberate:
                if (rest := self._restart_at - time.monotonic()) > 0:
                    log.info("the network process ended again; the next start is in %.0f s", rest)
                    await asyncio.sleep(rest)
                self._restart_at = time.monotonic() + RESTART_S
            await self._start_again()
            self._rejoin_now()
            if deliberate:
                log.info("the network process was started again %s", "behind relays" if self._relayed else "without relays")
            else:
                log.info("the network process was started again: %s", FULL if full else f"it ended with code {code}")
                self._forget_way()
                self._callbacks.report(NetworkRestarted(reason=FULL if full else f"the network process ended ({code})"))

    async def _start_again(self) -> None:
        pause = 0.1
        while self._network is None:
            try:
                self._network = await self._open()
                await self._learn_port(self._network)
            except SwarmError as error:  # the port is not free yet, or the disk is full: the node is alone until a try succeeds
                log.info("the network process cannot start: %s; next try in %g s", error.title, pause)
                self._port = self._options.port
                await asyncio.sleep(pause)
                pause = min(self._options.rejoin, pause * 2)

    async def _stay_joined(self) -> None:
        while True:
            timer = CpuTimer()
            with suppress(PeerAway):  # p2pd is ending; `_supervise` replaces it
                await timer.measure(self._check_peers())
            await asyncio.sleep(max(min(CHECK_S, self._options.rejoin), timer.rest))

    async def _limit_memory(self) -> None:
        """Keep p2pd below its limit. A task of its own, because strangers can delay the other checks.

        First strangers are hung up on, which ends what they began; peers that we rely on stay connected. A restart cuts all off:
        it comes only if that does not help, and seldom.
        """
        above = 0
        while True:
            network = self._network
            above = above + 1 if network is not None and network.daemon.memory > MOST_MEMORY else 0
            if network is not None and above > PATIENCE and time.monotonic() >= self._restart_at:
                self._full = True
                network.daemon.terminate()
            elif network is not None and above:
                with suppress(PeerAway):  # it has just ended
                    await self._hang_up_on_strangers(network)
            await asyncio.sleep(CHECK_S)

    async def _state_presence(self) -> None:
        """Find out from connected peers whether another computer uses our identity."""
        while True:
            peers: list[ConnectedPeer] = []
            with suppress(PeerAway):  # p2pd starts again
                network = self.network
                peers, relied = await network.daemon.peers(), self._relied()
                order = sorted(random.sample(peers, len(peers)), key=lambda peer: peer.peer_id not in relied)[:PEERS_ASKED]
                asking = (self._presence.ask(peer.peer_id, network.state_presence) for peer in order)
                if True in await asyncio.gather(*asking):
                    log.info("another computer connects to the same peers under our identity")
                    self._callbacks.report(DuplicateIdentity())
            await asyncio.sleep(min(PRESENCE_S, 10 * self._options.rejoin) if peers else CHECK_S)

    async def _hang_up_on_strangers(self, network: HivemindNetwork) -> None:
        relied = self._relied()
        strangers = [peer.peer_id for peer in await network.daemon.peers() if peer.peer_id not in relied]
        log.info("the network process takes %d MiB: %d strangers are hung up on", network.daemon.memory >> 20, len(strangers))
        await asyncio.gather(*map(network.daemon.hang_up, strangers))

    async def _check_peers(self) -> None:
        network = self.network
        peers = await network.daemon.peers()
        if self._computer_slept():
            log.info("the clock jumped, as it does when a computer wakes up: the swarm is joined again")
            self._rejoin_now()
            self._forget_way()
        self._pinged &= {peer.peer_id for peer in peers}
        if len(self._pinged) < len(peers) or time.monotonic() - self._answered_at > ANSWER_COUNTS_S / 2:
            await self._ping(network, peers)
        if time.monotonic() >= self._join_at:
            if not self._is_reached(peers) and self._reported_reach is not None and self._reported_reach.reach == "connected":
                self._forget_way()
                self._report_reach("alone", [], self._reported_reach.address)  # before the attempts, which may take a while
            await self._join(network, peers)
            peers = await network.daemon.peers()
        await self._find_way(network, peers)
        addresses = await network.addresses()
        if self._relayed:
            addresses = [address for address in addresses if "/p2p-circuit/" in address]
        self._report_reach("connected" if self._is_reached(peers) else "alone", peers, addresses[0] if addresses else "")
        self._callbacks.on_peers(peers, {})

    async def _find_way(self, network: HivemindNetwork, peers: list[ConnectedPeer]) -> None:
        """Find out whether others can call us, and use the seeds as relays if not. Done again in each new place."""
        if self._way or self._options.relay or not self._port:
            return
        # Only seeds are asked, if there are any: a peer at home can say only what is true at home, and a stranger may lie.
        seeds = self._seeds()
        now = time.monotonic()
        connected = {peer.peer_id for peer in peers}
        self._ask_again_at = {peer_id: until for peer_id, until in self._ask_again_at.items() if peer_id in connected}
        here = [peer.peer_id for peer in peers if not peer.relayed and self._ask_again_at.get(peer.peer_id, now) <= now]
        candidates = [peer_id for peer_id in here if not seeds or peer_id in seeds][:PEERS_ASKED]
        answers = await asyncio.gather(*(_answer(is_reached_by(network.daemon, peer_id, self._port)) for peer_id in candidates))
        for peer_id, answer in zip(candidates, answers, strict=True):  # a peer that did not say was busy, or we asked too often
            self._ask_again_at[peer_id] = math.inf if answer is not None else now + ASK_AGAIN_S
            if answer is None:
                log.debug("peer %s does not say whether it can call us; it is asked again", short_id(peer_id))
        if True in answers:
            self._way = "direct"
        elif False in answers and self._options.through == "auto" and seeds:
            self._way = "relay"
        if self._way and self._relayed != (self._way == "relay"):
            self._relayed, self._changing = not self._relayed, True
            network.daemon.terminate()

    def _forget_way(self) -> None:
        """Ask again whether others can call us: we may be in another place now."""
        self._ask_again_at.clear()
        if self._options.through != "relay":
            self._way = ""

    def _is_reached(self, peers: list[ConnectedPeer]) -> bool:
        return bool(peers) and self._is_answered()

    def _is_answered(self) -> bool:
        return time.monotonic() - self._answered_at <= ANSWER_COUNTS_S

    def _rejoin_now(self) -> None:
        """Forget what was known about the connections, and join at once."""
        self._answered_at = self._join_at = -math.inf
        self._pinged.clear()

    def _computer_slept(self) -> bool:
        offset = time.time() - time.monotonic()
        jumped = abs(offset - self._clock_offset) > CLOCK_JUMP_S
        self._clock_offset = offset
        return jumped

    async def _ping(self, network: HivemindNetwork, peers: list[ConnectedPeer]) -> None:
        # A few that we rely on, then those that were never pinged, then the others, in random order.
        order, relied = random.sample(peers, len(peers)), self._relied()
        known = [peer for peer in order if peer.peer_id in relied][:RELIED]
        chosen = list(dict.fromkeys([*known, *sorted(order, key=lambda peer: peer.peer_id in self._pinged)]))[:PINGED]
        self._pinged |= {peer.peer_id for peer in chosen}
        answers = await asyncio.gather(*(_answer(network.ping(peer.peer_id)) for peer in chosen))
        pongs = {peer.peer_id: pong for peer, pong in zip(chosen, answers, strict=True) if pong is not None}
        for peer in chosen:
            _log_late(peer, pongs.get(peer.peer_id))
        if not pongs:
            return
        self._on_answer()
        self._callbacks.on_peers(peers, pongs)
        self._check_clock(pongs, peers)
        self._remember([peer for peer in peers if peer.peer_id in pongs])

    async def _join(self, network: HivemindNetwork, peers: list[ConnectedPeer]) -> None:
        """Call all known addresses; if a peer is connected already, two of them at random, unless they are connected.

        If a swarm falls apart, each part keeps running and none of its nodes is alone: only these calls bring the parts together.
        They are few, because p2pd waits longer after each failed call to a peer, up to minutes, before it tries that peer again.
        """
        self._join_at = time.monotonic() + self._options.rejoin * random.uniform(1, 2)
        await self._report_own_seed(network, peers)
        every = dict.fromkeys((*self._options.seeds, *self._suggested, *self._known))
        addresses = [each for each in every if not self._is_own(each)]
        if self._is_reached(peers):
            here = {peer.peer_id for peer in peers}
            drawn = random.sample(addresses, min(len(addresses), CALLED))
            addresses = [each for each in drawn if peer_of(each) not in here]
        else:
            self._tried = len(addresses)
        pongs: dict[bytes, Pong] = {}

        async def call(address: str) -> bool:
            pong = await _answer(network.connect(address))
            if pong is not None:
                pongs[peer_of(address)] = pong
            else:
                log.debug("peer %s does not answer at a known address", short_id(peer_of(address)))
            return pong is not None

        for attempt in asyncio.as_completed(map(call, addresses)):
            if await attempt:
                self._on_answer()  # before the slower ones answer
                await _answer(network.find_neighbours())
        if pongs:
            self._check_clock(pongs, peers)
            self._remember(await network.daemon.peers())

    async def _report_own_seed(self, network: HivemindNetwork, peers: list[ConnectedPeer]) -> None:
        """Report once that no seed can be called, because all have our own identity and are elsewhere: one is a copy."""
        seeds = self._options.seeds
        if self._own_seed_reported or peers or not seeds or not all(map(self._is_own, seeds)):
            return
        here = set(await network.addresses())
        if strange := [seed for seed in seeds if seed not in here]:
            self._own_seed_reported = True
            self._callbacks.report(OwnSeed(address=strange[0]))

    def _remember(self, peers: list[ConnectedPeer]) -> None:
        met = [peer.address for peer in peers if is_address(peer.address)]
        self._known = peer_cache.update(self._options.known_peers, self._known, met, self._callbacks.trusted_peers())

    def _is_own(self, address: str) -> bool:
        return address.endswith(f"/p2p/{text_of(self._identity.peer_id)}")

    def _on_answer(self) -> None:
        """Note that a peer answered."""
        if not self._is_answered():
            self._callbacks.on_joined()
        self._answered_at = time.monotonic()

    def _seeds(self) -> set[bytes]:
        return {peer_of(address) for address in self._options.seeds}

    def _relied(self) -> set[bytes]:
        """Seeds, which a person chose, and trusted peers: new names cost a stranger nothing, but these are not new."""
        return self._seeds() | self._callbacks.trusted_peers()

    def _check_clock(self, pongs: Mapping[bytes, Pong], peers: Sequence[ConnectedPeer]) -> None:
        """Compare our clock with the median of those we rely on; with the median of all who answered if none of those is here."""
        relied = self._relied() & {*pongs, *(peer.peer_id for peer in peers)}
        skews = [pong.skew_s for peer_id, pong in pongs.items() if not relied or peer_id in relied]
        self._skew.observe(skews)

    def _report_reach(self, reach: Reach, peers: list[ConnectedPeer], address: str) -> None:
        here = len(peers) if reach == "connected" else 0
        before, event = (
            self._reported_reach,
            ReachChanged(reach=reach, peers=here, tried=self._tried, address=address, way=self._way),
        )
        if before is None or before.reach != reach:
            log.info("the swarm: %s; %d peers, %d known addresses were called", reach, here, self._tried)
        if event != before:
            self._reported_reach = event
            self._callbacks.report(event)


def _log_late(peer: ConnectedPeer, pong: Pong | None) -> None:
    """Log a peer that answers a ping late or not at all."""
    way = "through a relay" if peer.relayed else "directly"
    if pong is None:
        log.debug("peer %s, connected %s, does not answer a ping", short_id(peer.peer_id), way)
    elif pong.delay_ms > SLOW_MS:
        log.debug("peer %s, connected %s, answers a ping after %.1f s", short_id(peer.peer_id), way, pong.delay_ms / 1000)


async def _answer(call: Coroutine[Any, Any, Answer]) -> Answer | None:
    """What a peer answers; None if it is away, leaving, or of a version that does not know the question."""
    try:
        return await call
    except PeerAway:
        return None
