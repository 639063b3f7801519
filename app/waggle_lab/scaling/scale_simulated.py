"""One simulated measurement of `waggle-lab scale`: the nodes' own directory, sampling and trust over a DHT in memory.

What a call costs in bytes was fitted to real nodes (`scale_real.py`); how many calls a search takes is played on routing tables
of the size that hivemind keeps. Left out: seconds, loss, and the copying of values to nodes that join.
"""

import bisect
import hashlib
import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from waggle.core.peer_id import PEER_ID_BYTES, PEER_ID_PREFIX
from waggle.network.exchange.collector import MAX_READ
from waggle.network.limits.reputation import ReputationTable
from waggle.network.messages import directory
from waggle.network.messages.announcement import Announcement
from waggle.network.transport.hivemind.dht_validator import SHARD_CAP
from waggle.network.transport.hivemind.network import NEIGHBOURS
from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict
from waggle_lab.scaling.propagation import MOST_ROUNDS, Spread

CALL_BYTES = 1300.0  # of one call and its answer: encryption, streams, acknowledgements
NEIGHBOUR_BYTES = 62.0  # of one neighbour named in an answer
ENTRY_BYTES = 270.0  # of one announcement in an answer
GREETING_BYTES = 300.0
REPLICAS = 5
WANTED = 8  # K
GREETED = 6  # peers at one look
LIVES = 300.0  # seconds, of an entry
OBSERVERS = 200  # nodes that keep a ReputationTable: it is for 500 peers each
ID_BITS = 64
FOLLOWED = 16  # groups, to see how far they travel
FEW = 0.25  # of those who hear a group learn it, in the second count

USEFUL = JudgedGroup(
    group=Group(origin=b"", id=QuestionId("bf", 1, 1), completions=(Completion(text="a", ended=True),) * 2),
    question=Question(dataset="bf", seed=1, text="?"),
    verdicts=(Verdict(reward=1.0, reason=""), Verdict(reward=0.0, reason="")),
)


@dataclass
class Node:
    """One simulated participant."""

    peer_id: bytes
    trust: ReputationTable | None
    depth: directory.DirectoryDepth
    tried: set[directory.PayloadKey] = field(default_factory=set)


@dataclass(frozen=True)
class Cost:
    """Per node and round: kB and calls; payloads pulled; entries in the shards read, and the largest shard.

    `half` are the rounds in which a group reaches half of the nodes, if all who hear it pass it on; `half_by_few`, if few do.
    """

    kb: float
    calls: float
    payloads: float
    shard: float
    largest: int
    kb_all_gather: float
    half: int
    half_by_few: int


class Searches:
    """How many nodes a search asks, and how many neighbours they name, in a DHT of this size."""

    def __init__(self, count: int, draw: random.Random, samples: int = 60) -> None:
        self._ids = sorted(draw.getrandbits(ID_BITS) for _ in range(count))
        self._draw = draw
        found = [self._search(draw.getrandbits(ID_BITS)) for _ in range(samples)]
        self.asked = sum(asked for asked, _ in found) / samples
        self.named = sum(named for _, named in found) / samples

    def _search(self, key: int) -> tuple[int, int]:
        asked, named = set[int](), 0
        best = self._nearest(self._draw.choice(self._ids), key)
        while fresh := [each for each in heapq.nsmallest(NEIGHBOURS, best, key=lambda one: one ^ key) if each not in asked]:
            asked.add(fresh[0])
            told = self._nearest(fresh[0], key)
            named += len(told)
            best = list({*best, *told})
        return len(asked), named

    def _nearest(self, owner: int, key: int) -> list[int]:
        """What `owner` names: the nearest of those it knows, a bucket for each length of common prefix."""
        known: list[int] = []
        draw = random.Random(owner)
        for bits in range(ID_BITS):
            shift = ID_BITS - bits - 1
            first = ((owner >> shift) ^ 1) << shift
            low, high = bisect.bisect_left(self._ids, first), bisect.bisect_left(self._ids, first + (1 << shift))
            known += self._ids[low:high] if high - low <= NEIGHBOURS else draw.sample(self._ids[low:high], NEIGHBOURS)
            low, high = (
                bisect.bisect_left(self._ids, owner & -(1 << shift)),
                bisect.bisect_right(self._ids, owner | ((1 << shift) - 1)),
            )
            if high - low <= 1:
                break
        return heapq.nsmallest(NEIGHBOURS, known, key=lambda one: one ^ key)


class Swarm:
    """All simulated nodes and their DHT, and what its calls cost."""

    def __init__(self, count: int, *, payload_bytes: float, seconds: float, churn: float, seed: int) -> None:
        self._draw = random.Random(seed)
        self._payload_bytes, self._seconds, self._churn = payload_bytes, seconds, churn
        self._searches = Searches(count + 1, self._draw)
        self._charter = hashlib.sha256(b"scale").digest()
        self._entries: dict[str, dict[bytes, Announcement]] = {}
        self._born, self._now = 0, 0.0
        self._nodes = [self._node() for _ in range(count)]
        self._alive = {node.peer_id for node in self._nodes}
        self._spreads = tuple(Spread(chance, random.Random(seed)) for chance in (1.0, FEW))
        self._clear()

    def play(self, rounds: int, warm: int) -> Cost:
        """Rounds after a while of settling in, in which the directory finds its depth."""
        for number in range(warm + rounds):
            if number == warm:
                self._clear()
                self._follow()
            self._round(number)
            self._count(number - warm + 1)
        each_round = len(self._nodes) * rounds
        sizes = [len(each) for each in self._entries.values()]
        cost = Cost(
            kb=self._bytes / each_round / 1e3, calls=self._calls / each_round, payloads=self._pulled / each_round,
            shard=self._read / each_round, largest=max(sizes), kb_all_gather=self._all_gather() / 1e3, half=-1, half_by_few=-1,
        )  # fmt: skip
        played = rounds
        while not self._count(played) and played < MOST_ROUNDS:
            self._round(warm + played)
            played += 1
        return replace(cost, half=self._spreads[0].rounds(), half_by_few=self._spreads[1].rounds())

    def _round(self, number: int) -> None:
        now = self._now = number * self._seconds
        for key, each in list(self._entries.items()):
            self._entries[key] = {peer: one for peer, one in each.items() if one.expires_at > now}
        for node in self._draw.sample(self._nodes, len(self._nodes)):
            self._act(node, number, now)
        self._leave_and_come()

    def _follow(self) -> None:
        origins = [node.peer_id for node in self._draw.sample(self._nodes, min(FOLLOWED, len(self._nodes)))]
        for spread in self._spreads:
            spread.follow(origins)

    def _count(self, rounds: int) -> bool:
        halves = [spread.count(rounds, self._alive) for spread in self._spreads]  # each of them counts
        return all(halves)

    def _clear(self) -> None:
        self._bytes = self._calls = 0.0
        self._pulled = self._read = 0

    def _node(self) -> Node:
        self._born += 1
        peer_id = PEER_ID_PREFIX + hashlib.sha256(self._born.to_bytes(8, "big")).digest()
        assert len(peer_id) == PEER_ID_BYTES
        trust = ReputationTable(clock=lambda: 0.0) if self._born <= OBSERVERS else None
        return Node(peer_id, trust, directory.DirectoryDepth(clock=lambda: self._now))

    def _leave_and_come(self) -> None:
        for place in range(len(self._nodes)):
            if self._draw.random() < self._churn:
                self._alive.discard(self._nodes[place].peer_id)
                self._nodes[place] = self._node()
                self._alive.add(self._nodes[place].peer_id)

    def _act(self, node: Node, number: int, now: float) -> None:
        """One round of one node: announce, greet, look, pull."""
        offer = Announcement(
            charter=self._charter, sha256=hashlib.sha256(node.peer_id + number.to_bytes(4, "big")).digest(), size=1, round=number,
            epoch=1, specialties=1, model="starter", expires=int((now + LIVES) * 1000), depth=node.depth.bits,
        )  # fmt: skip
        for spread in self._spreads:
            spread.shared(node.peer_id, offer.sha256)
        for key in directory.keys_to_publish(
            self._charter, node.peer_id, node.depth.bits, node.depth.peers_in_shard, int(now // 600)
        ):
            place = self._entries.setdefault(key, {})
            if node.peer_id in place or len(place) < SHARD_CAP:  # as the guard has it
                place[node.peer_id] = offer
            self._search(replicas=REPLICAS, each=ENTRY_BYTES)
        self._call(min(GREETED, len(self._nodes) - 1), GREETING_BYTES)
        shard = self._entries.get(directory.key_to_read(self._charter, node.depth.bits, self._draw), {})
        self._read += len(shard)
        self._search(replicas=0, each=0.0)
        self._bytes += min(REPLICAS, len(self._nodes)) * len(shard) * ENTRY_BYTES
        node.depth.observe([one.depth for one in shard.values()])
        found = {origin: shard[origin] for origin in self._draw.sample(list(shard), min(len(shard), MAX_READ))}
        trusted = node.trust.trusted() if node.trust else ()
        for origin in directory.choose_peers(
            found, avoid={node.peer_id}, tried=node.tried, known=trusted, count=WANTED, random=self._draw
        ):
            self._pull(node, origin, found[origin])

    def _pull(self, node: Node, origin: bytes, offer: Announcement) -> None:
        here = origin in self._alive
        self._call(1, self._payload_bytes if here else 0.0)
        if here:
            self._pulled += 1
            node.tried.add((origin, offer.sha256))
            for spread in self._spreads:
                spread.pulled(node.peer_id, offer.sha256)
            if node.trust:
                node.trust.record_groups(origin, offer.round, offer.model, [USEFUL])

    def _search(self, *, replicas: int, each: float) -> None:
        self._call(self._searches.asked, 0.0)
        self._bytes += self._searches.named * NEIGHBOUR_BYTES
        self._call(min(replicas, len(self._nodes)), each)

    def _call(self, count: float, each: float) -> None:
        self._calls += count
        self._bytes += count * (CALL_BYTES + each)

    def _all_gather(self) -> float:
        """What the published way costs a node a round: everybody's payload under one key, read whole by everybody."""
        count, searches = len(self._nodes), 2 * (self._searches.asked * CALL_BYTES + self._searches.named * NEIGHBOUR_BYTES)
        stored = min(REPLICAS, count) * (CALL_BYTES + self._payload_bytes)
        return searches + stored + min(REPLICAS, count) * count * self._payload_bytes


def simulate(counts: Sequence[int], *, rounds: int, payload_kb: float, seconds: float, churn: float) -> dict[int, Cost]:
    """The cost in swarms of these sizes."""
    found = {}
    for count in counts:
        swarm = Swarm(count, payload_bytes=payload_kb * 1e3, seconds=seconds, churn=churn, seed=count)
        found[count] = swarm.play(rounds, warm=12)
    return found
