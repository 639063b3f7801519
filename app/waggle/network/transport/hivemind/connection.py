"""Keeps a node connected: one Dht at a time, started again when it dies, joined again when nobody answers or some are missing."""

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from waggle.core.errors import SwarmError
from waggle.core.peer_id import text_of
from waggle.network.identity.keys import Identity
from waggle.network.messages.addresses import is_address, own_port, peer_of
from waggle.network.messages.clock_skew import ClockSkewMonitor
from waggle.network.messages.events import NetworkEvent, NetworkRestarted, Reach, ReachChanged, Way
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind import peer_cache
from waggle.network.transport.hivemind.lan_discovery import Lan
from waggle.network.transport.hivemind.node import Dht, open_dht
from waggle.network.transport.hivemind.peer_polling import Effort
from waggle.network.transport.hivemind.reachability import ASKED_RATE
from waggle.network.transport.interface import Callbacks, Connected, PeerAway, Pong, Services
from waggle.network.transport.tasks import end, watch

log = logging.getLogger(__name__)

ANSWER_COUNTS_S = 30.0  # "connected" means that a peer answered within this time
LAN_S = 30.0  # between two checks whether our address on the local network has changed
LOOK_S = 1.0  # between two looks at who is connected: p2pd alone is asked
PINGED, RELIED = 8, 3  # peers at a time, and how many of them are seeds or trusted, where so many are here
PEERS_ASKED = 3  # peers at a time, whether they can call us
ASK_AGAIN_S = 1 / ASKED_RATE  # who did not say
CALLED = 2  # known addresses at a time, while somebody is connected
# Bytes of p2pd, which keeps each call that a stranger begins and never ends: up to 4 MiB of it, as many as there come.
MOST_MEMORY = 1024 * 1024 * 1024
SHORT_LIFE_S = 10.0  # of p2pd: after less it is given a pause
FULL = "the network process took too much memory"
RESTART_S, LONGEST_RESTART_S = 2.0, 300.0  # before the next one: twice as long after each short life
CLOCK_JUMP_S = 5.0  # between wall clock and monotonic clock: the computer slept
Answer = TypeVar("Answer")


class Connection:
    """Owns the Dht. Everything runs on the loop that called `start`.

    `met` hears who is connected and who answered a ping; `joined`, that peers were found after there were none. Whoever is
    `trusted` is remembered before others.
    """

    calls = True

    def __init__(
        self,
        options: SwarmOptions,
        identity: Identity,
        services: Services,
        tell: Callable[[NetworkEvent], None],
        *,
        met: Callable[[list[Connected], dict[bytes, Pong]], None] = lambda peers, pongs: None,
        joined: Callable[[], None] = lambda: None,
        trusted: Callable[[], set[bytes]] = set,
    ) -> None:
        self._trusted = trusted
        self._options = options
        self._identity = identity
        self._services = services
        self._tell = tell
        self._met = met
        self._joined = joined
        self._dht: Dht | None = None
        self._port = options.port
        self._known = peer_cache.read(options.known_peers)
        self._suggested: tuple[str, ...] = ()
        self._tried = 0
        self._answered_at = -math.inf
        self._join_at = -math.inf
        self._pinged: set[bytes] = set()
        self._clock_offset = 0.0
        self._skew = ClockSkewMonitor(tell)
        self._reported_reach: ReachChanged | None = None
        self._way: Way = "relay" if options.through == "relay" and options.seeds else ""  # empty: not known here
        self._relayed = self._way == "relay"  # how p2pd runs, until it is known that it must run otherwise
        self._changing = False  # p2pd is being started again because we want it
        self._full = False  # it is, because it took too much memory
        self._ask_again_at: dict[
            bytes, float
        ] = {}  # of those connected: whether they can call us, and when they may be asked again
        self._tasks: list[asyncio.Task[None]] = []
        self._lan = Lan(services.digest, identity.peer_id, self.suggest) if options.lan else None

    @classmethod
    def of(cls, options: SwarmOptions, identity: Identity, callbacks: Callbacks) -> "Connection":
        """The transport of a node that calls peers itself."""
        return cls(
            options, identity, callbacks.services, callbacks.report,
            met=callbacks.met, joined=callbacks.joined, trusted=callbacks.trusted,
        )  # fmt: skip

    @property
    def dht(self) -> Dht:
        """The Dht of now; raises PeerAway while it is being started again."""
        if self._dht is None:
            raise PeerAway("the network process is starting again")
        return self._dht

    @property
    def pid(self) -> int:
        """The process id of p2pd; raises PeerAway while it is being started again."""
        return self.dht.pid

    async def start(self) -> None:
        """Start p2pd; raises SwarmError for a port in use or a malformed seed. A seed that is away is no error."""
        for address in self._options.seeds:
            peer_of(address)
        self._known = tuple(filter(is_address, self._known))
        self._dht = await self._open()
        await self._learn_port(self._dht)
        self._clock_offset = time.time() - time.monotonic()
        self._say("connecting", [], "")
        self._tasks = [asyncio.create_task(each) for each in (self._supervise(), self._stay_joined(), self._stay_small())]
        if self._lan is not None:
            with suppress(PeerAway):  # p2pd died at once: the supervisor will see
                await self._lan.be_at(await self._dht.addresses(), self._options.host)
            self._tasks.append(asyncio.create_task(self._stay_on_lan(self._lan)))

    async def _stay_on_lan(self, lan: Lan) -> None:
        """Announce this node again where the local network appears late, or is another one after the computer slept."""
        while True:
            await asyncio.sleep(LAN_S)
            with suppress(PeerAway, SwarmError):  # p2pd starts again, or there is no network just now
                await lan.be_at(await self.dht.addresses(), self._options.host)

    async def _learn_port(self, dht: Dht) -> None:
        """From now on others know this port: it is kept when p2pd is started again."""
        with suppress(PeerAway):  # it died at once: the supervisor will see
            self._port = self._port or own_port(await dht.addresses())

    async def meet(self) -> None:
        """Look who is connected, now; raises PeerAway."""
        self._met(await self.dht.peers(), {})

    def suggest(self, address: str) -> None:
        """Somebody may be at this address; it is called soon."""
        self._suggested = tuple(dict.fromkeys((address, *self._suggested)))[: peer_cache.MAX_KEPT]
        self._join_at = -math.inf

    async def run(self) -> None:
        """Return when closed; raise what only a fault of ours can raise inside its tasks."""
        await watch(self._tasks)

    async def close(self) -> None:
        """Leave: end the tasks and p2pd. Safe to call twice."""
        await end(self._tasks)
        if self._lan is not None:
            await self._lan.close()
        dht, self._dht = self._dht, None
        if dht is not None:
            await dht.close()

    async def _open(self) -> Dht:
        relays = self._options.seeds if self._relayed else ()
        return await open_dht(self._options, self._identity, self._services, port=self._port, relays=relays)

    async def _supervise(self) -> None:
        shortest = rest = min(RESTART_S, self._options.rejoin)
        while True:
            dht, born = self.dht, time.monotonic()
            code = await dht.ended()
            self._dht = None
            self._say("connecting", [], "")
            await dht.close()
            deliberate, self._changing = self._changing, False
            full, self._full = self._full, False
            # One that cannot live must not keep the computer busy; whom others fill is there again at once.
            if not deliberate and not full and time.monotonic() - born < SHORT_LIFE_S:
                await asyncio.sleep(rest)
                rest = min(LONGEST_RESTART_S, 2 * rest)
            else:
                rest = shortest
            await self._start_again()
            self._lose()
            if not deliberate:
                log.info("the network process was started again: %s", FULL if full else f"it ended with code {code}")
                self._forget_way()
                self._tell(NetworkRestarted(reason=FULL if full else f"the network process ended ({code})"))

    async def _start_again(self) -> None:
        pause = 0.1
        while self._dht is None:
            try:
                self._dht = await self._open()
                await self._learn_port(self._dht)
            except SwarmError as error:  # the port is not free yet, or the disk is full: the node stays alone and tries again
                log.info("the network process cannot start: %s; next try in %g s", error.title, pause)
                self._port = self._options.port
                await asyncio.sleep(pause)
                pause = min(self._options.rejoin, pause * 2)

    async def _stay_joined(self) -> None:
        while True:
            effort = Effort()
            with suppress(PeerAway):  # p2pd is just dying; the supervisor replaces it
                await effort.of(self._look())
            await asyncio.sleep(max(min(LOOK_S, self._options.rejoin), effort.rest))

    async def _stay_small(self) -> None:
        """By itself: whatever else is looked at waits for strangers."""
        while True:
            if self._dht is not None and self._dht.memory > MOST_MEMORY:
                self._full = True
                self._dht.end()
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        dht = self.dht
        peers = await dht.peers()
        if self._computer_slept():
            self._lose()
            self._forget_way()
        self._pinged &= {peer.peer_id for peer in peers}
        if len(self._pinged) < len(peers) or time.monotonic() - self._answered_at > ANSWER_COUNTS_S / 2:
            await self._ping(dht, peers)
        if time.monotonic() >= self._join_at:
            if not self._is_reached(peers) and self._reported_reach is not None and self._reported_reach.reach == "connected":
                self._forget_way()
                self._say("alone", [], self._reported_reach.address)  # before the attempts, which may take a while
            await self._join(dht, peers)
            peers = await dht.peers()
        await self._find_way(dht, peers)
        addresses = await dht.addresses()
        if self._relayed:
            addresses = [address for address in addresses if "/p2p-circuit/" in address]
        self._say("connected" if self._is_reached(peers) else "alone", peers, addresses[0] if addresses else "")
        self._met(peers, {})

    async def _find_way(self, dht: Dht, peers: list[Connected]) -> None:
        """Ask whether others can call us, and be called through the seeds where they cannot: again wherever we come to be."""
        if self._way or self._options.relay or not self._port:
            return
        # Seeds alone, where there are any: what a neighbour at home says is true at home only, and a stranger may lie.
        seeds = self._seeds()
        now = time.monotonic()
        connected = {peer.peer_id for peer in peers}
        self._ask_again_at = {peer_id: until for peer_id, until in self._ask_again_at.items() if peer_id in connected}
        here = [peer.peer_id for peer in peers if not peer.relayed and self._ask_again_at.get(peer.peer_id, now) <= now]
        candidates = [peer_id for peer_id in here if not seeds or peer_id in seeds][:PEERS_ASKED]
        answers = await asyncio.gather(*(_answer(dht.is_reached_by(peer_id, self._port)) for peer_id in candidates))
        for peer_id, answer in zip(candidates, answers, strict=True):  # who did not say was busy, or we asked too often
            self._ask_again_at[peer_id] = math.inf if answer is not None else now + ASK_AGAIN_S
        if True in answers:
            self._way = "direct"
        elif False in answers and self._options.through == "auto" and seeds:
            self._way = "relay"
        if self._way and self._relayed != (self._way == "relay"):
            self._relayed, self._changing = not self._relayed, True
            dht.end()

    def _forget_way(self) -> None:
        """We may be somewhere else now."""
        self._ask_again_at.clear()
        if self._options.through != "relay":
            self._way = ""

    def _is_reached(self, peers: list[Connected]) -> bool:
        return bool(peers) and self._is_answered()

    def _is_answered(self) -> bool:
        return time.monotonic() - self._answered_at <= ANSWER_COUNTS_S

    def _lose(self) -> None:
        """Nothing that was known of the connection holds any more: join at once."""
        self._answered_at = self._join_at = -math.inf
        self._pinged.clear()

    def _computer_slept(self) -> bool:
        offset = time.time() - time.monotonic()
        jumped = abs(offset - self._clock_offset) > CLOCK_JUMP_S
        self._clock_offset = offset
        return jumped

    async def _ping(self, dht: Dht, peers: list[Connected]) -> None:
        # Those never asked come first, but for a few relied on; the order among the others is random.
        order, relied = random.sample(peers, len(peers)), self._relied()
        known = [peer for peer in order if peer.peer_id in relied][:RELIED]
        chosen = list(dict.fromkeys([*known, *sorted(order, key=lambda peer: peer.peer_id in self._pinged)]))[:PINGED]
        self._pinged |= {peer.peer_id for peer in chosen}
        answers = await asyncio.gather(*(_answer(dht.ping(peer.peer_id)) for peer in chosen))
        pongs = {peer.peer_id: pong for peer, pong in zip(chosen, answers, strict=True) if pong is not None}
        if not pongs:
            return
        self._on_peers_found()
        self._met(peers, pongs)
        self._check_clock(pongs, peers)
        self._remember([peer for peer in peers if peer.peer_id in pongs])

    async def _join(self, dht: Dht, peers: list[Connected]) -> None:
        """Call everybody known; where somebody is connected, two of them at random, if they are not.

        When a swarm falls apart each part goes on by itself, and nobody in it is alone: only these calls find the others.
        They are few, because p2pd waits longer after each vain call to a peer, up to minutes, before it makes the next.
        """
        self._join_at = time.monotonic() + self._options.rejoin * random.uniform(1, 2)
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
            pong = await _answer(dht.connect(address))
            if pong is not None:
                pongs[peer_of(address)] = pong
            return pong is not None

        for attempt in asyncio.as_completed(map(call, addresses)):
            if await attempt:
                self._on_peers_found()  # before the slower ones are heard
                await _answer(dht.settle())
        if pongs:
            self._check_clock(pongs, peers)
            self._remember(await dht.peers())

    def _remember(self, peers: list[Connected]) -> None:
        met = [peer.address for peer in peers if is_address(peer.address)]
        self._known = peer_cache.keep(self._options.known_peers, self._known, met, self._trusted())

    def _is_own(self, address: str) -> bool:
        return address.endswith(f"/p2p/{text_of(self._identity.peer_id)}")

    def _on_peers_found(self) -> None:
        if not self._is_answered():
            self._joined()
        self._answered_at = time.monotonic()

    def _seeds(self) -> set[bytes]:
        return {peer_of(address) for address in self._options.seeds}

    def _relied(self) -> set[bytes]:
        """Seeds, which a person chose, and whoever has been of use: names cost nothing, but these were not made up just now."""
        return self._seeds() | self._trusted()

    def _check_clock(self, pongs: Mapping[bytes, Pong], peers: Sequence[Connected]) -> None:
        """Tell when our clock is off by the median of those relied on; of all who answered only where none of those is here."""
        relied = self._relied() & {*pongs, *(peer.peer_id for peer in peers)}
        skews = [pong.skew_s for peer_id, pong in pongs.items() if not relied or peer_id in relied]
        self._skew.observe(skews)

    def _say(self, reach: Reach, peers: list[Connected], address: str) -> None:
        here = len(peers) if reach == "connected" else 0
        reach_event = ReachChanged(reach=reach, peers=here, tried=self._tried, address=address, way=self._way)
        if reach_event != self._reported_reach:
            self._reported_reach = reach_event
            self._tell(reach_event)


async def _answer(call: Coroutine[Any, Any, Answer]) -> Answer | None:
    """What a peer answered; None where it is away, just leaving, or of a version that knows no such question."""
    try:
        return await call
    except PeerAway:
        return None
