"""Simulate a swarm for `waggle-lab scale`: the product's directory, sampling and reputation, over a DHT in memory.

The bytes of a call were fitted to real nodes (`scale_real.py`). The number of calls of a search is simulated with routing tables
as large as hivemind's. Not simulated: time, loss, and the copying of values to nodes that join.
"""

import bisect
import hashlib
import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from waggle.core.message import NOTHING
from waggle.core.peer_id import PEER_ID_BYTES, PEER_ID_PREFIX
from waggle.network.exchange.collector import MAX_READ
from waggle.network.limits.reputation import ReputationTable, trusted_peers
from waggle.network.messages import directory
from waggle.network.messages.announcement import Announcement
from waggle.network.transport.hivemind.dht_validator import SHARD_CAP
from waggle.network.transport.hivemind.network import NEIGHBOURS
from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict
from waggle_lab.scaling.propagation import MAX_ROUNDS, Propagation

CALL_BYTES = 1300.0  # overhead of a call and its answer: encryption, streams, acknowledgements
NEIGHBOUR_BYTES = 62.0  # of a neighbour in an answer
ENTRY_BYTES = 270.0  # of an announcement in an answer
HANDSHAKE_BYTES = 300.0
REPLICAS = 5
PULLS_PER_ROUND = 8
HANDSHAKES_PER_ROUND = 6
ENTRY_LIFETIME_S = 300.0
NODES_WITH_TRUST = 200  # only some, because a ReputationTable with 500 peers in each node would take too much memory
ID_BITS = 64
LESSONS_FOLLOWED = 16  # how many groups are followed through the swarm
FEW_LEARNERS = 0.25  # in the second count, the share of nodes reached that learn a lesson

USEFUL_GROUP = JudgedGroup(
    group=Group(origin=b"", id=QuestionId("bf", 1, 1), completions=(Completion(text="a", ended=True),) * 2),
    question=Question(dataset="bf", seed=1, text="?"),
    verdicts=(Verdict(reward=1.0, reason=NOTHING), Verdict(reward=0.0, reason=NOTHING)),
)


@dataclass
class Node:
    """A simulated node."""

    peer_id: bytes
    trust: ReputationTable | None
    depth: directory.DirectoryDepth
    tried: set[directory.PayloadKey] = field(default_factory=set)


@dataclass(frozen=True)
class NodeCost:
    """The cost per node and round: kB, calls, payloads pulled, entries in the shard read; and the entries of the largest shard.

    `half`: the rounds in which a lesson reaches half of the nodes, if all learn it; `half_by_few`: if one in four does.
    """

    kb: float
    calls: float
    payloads: float
    shard: float
    largest: int
    kb_all_gather: float
    half: int
    half_by_few: int


class SearchCost:
    """How many nodes a search contacts, and how many neighbours they name, in a DHT of `count` nodes: means of some samples."""

    def __init__(self, count: int, random_stream: random.Random, samples: int = 60) -> None:
        self._ids = sorted(random_stream.getrandbits(ID_BITS) for _ in range(count))
        self._random_stream = random_stream
        searches = [self._search(random_stream.getrandbits(ID_BITS)) for _ in range(samples)]
        self.nodes_contacted = sum(contacted for contacted, _ in searches) / samples
        self.neighbours_named = sum(named for _, named in searches) / samples

    def _search(self, key: int) -> tuple[int, int]:
        contacted, named = set[int](), 0
        known = self._nearest(self._random_stream.choice(self._ids), key)
        while unasked := [
            node_id
            for node_id in heapq.nsmallest(NEIGHBOURS, known, key=lambda node_id: node_id ^ key)
            if node_id not in contacted
        ]:
            contacted.add(unasked[0])
            neighbours = self._nearest(unasked[0], key)
            named += len(neighbours)
            known = list({*known, *neighbours})
        return len(contacted), named

    def _nearest(self, owner: int, key: int) -> list[int]:
        """The nearest nodes to `key` that `owner` knows. As in Kademlia, it knows some for each length of common prefix."""
        known: list[int] = []
        random_stream = random.Random(owner)
        for bits in range(ID_BITS):
            shift = ID_BITS - bits - 1
            first = ((owner >> shift) ^ 1) << shift
            low, high = bisect.bisect_left(self._ids, first), bisect.bisect_left(self._ids, first + (1 << shift))
            known += self._ids[low:high] if high - low <= NEIGHBOURS else random_stream.sample(self._ids[low:high], NEIGHBOURS)
            low, high = (
                bisect.bisect_left(self._ids, owner & -(1 << shift)),
                bisect.bisect_right(self._ids, owner | ((1 << shift) - 1)),
            )
            if high - low <= 1:
                break
        return heapq.nsmallest(NEIGHBOURS, known, key=lambda node_id: node_id ^ key)


class SwarmCostSimulation:
    """All simulated nodes, their DHT, and the cost of its calls."""

    def __init__(self, count: int, *, payload_bytes: float, seconds: float, churn: float, seed: int) -> None:
        self._random_stream = random.Random(seed)
        self._payload_bytes, self._seconds, self._churn = payload_bytes, seconds, churn
        self._searches = SearchCost(count + 1, self._random_stream)
        self._charter = hashlib.sha256(b"scale").digest()
        self._entries: dict[str, dict[bytes, Announcement]] = {}
        self._nodes_created, self._now = 0, 0.0
        self._nodes = [self._new_node() for _ in range(count)]
        self._alive = {node.peer_id for node in self._nodes}
        self._propagations = tuple(Propagation(chance, random.Random(seed)) for chance in (1.0, FEW_LEARNERS))
        self._reset_counts()

    def play(self, rounds: int, warm_up_rounds: int) -> NodeCost:
        """Play `rounds` and return their cost; in the warm-up rounds before them the directory finds its depth."""
        for number in range(warm_up_rounds + rounds):
            if number == warm_up_rounds:
                self._reset_counts()
                self._follow()
            self._round(number)
            self._count(number - warm_up_rounds + 1)
        node_rounds = len(self._nodes) * rounds
        sizes = [len(shard) for shard in self._entries.values()]
        cost = NodeCost(
            kb=self._bytes / node_rounds / 1e3, calls=self._calls / node_rounds, payloads=self._payloads_pulled / node_rounds,
            shard=self._entries_read / node_rounds, largest=max(sizes), kb_all_gather=self._all_gather() / 1e3,
            half=-1, half_by_few=-1,
        )  # fmt: skip
        played = rounds
        while not self._count(played) and played < MAX_ROUNDS:
            self._round(warm_up_rounds + played)
            played += 1
        return replace(cost, half=self._propagations[0].rounds(), half_by_few=self._propagations[1].rounds())

    def _round(self, number: int) -> None:
        now = self._now = number * self._seconds
        for key, shard in list(self._entries.items()):
            self._entries[key] = {peer: announcement for peer, announcement in shard.items() if announcement.expires_at > now}
        for node in self._random_stream.sample(self._nodes, len(self._nodes)):
            self._act(node, number, now)
        self._replace_nodes()

    def _follow(self) -> None:
        origins = [node.peer_id for node in self._random_stream.sample(self._nodes, min(LESSONS_FOLLOWED, len(self._nodes)))]
        for propagation in self._propagations:
            propagation.follow(origins)

    def _count(self, rounds: int) -> bool:
        # a list, because `all` of a generator would stop at the first that is not done, and the others would not count
        done = [propagation.count(rounds, self._alive) for propagation in self._propagations]
        return all(done)

    def _reset_counts(self) -> None:
        self._bytes = self._calls = 0.0
        self._payloads_pulled = self._entries_read = 0

    def _new_node(self) -> Node:
        self._nodes_created += 1
        peer_id = PEER_ID_PREFIX + hashlib.sha256(self._nodes_created.to_bytes(8, "big")).digest()
        assert len(peer_id) == PEER_ID_BYTES
        trust = ReputationTable(clock=lambda: 0.0) if self._nodes_created <= NODES_WITH_TRUST else None
        return Node(peer_id, trust, directory.DirectoryDepth(clock=lambda: self._now))

    def _replace_nodes(self) -> None:
        for index in range(len(self._nodes)):
            if self._random_stream.random() < self._churn:
                self._alive.discard(self._nodes[index].peer_id)
                self._nodes[index] = self._new_node()
                self._alive.add(self._nodes[index].peer_id)

    def _act(self, node: Node, number: int, now: float) -> None:
        """Play one round of one node: publish an announcement, make handshakes, read a shard, pull payloads."""
        offer = Announcement(
            charter=self._charter, sha256=hashlib.sha256(node.peer_id + number.to_bytes(4, "big")).digest(), size=1, round=number,
            epoch=1, specialties=1, model="starter", expires=int((now + ENTRY_LIFETIME_S) * 1000), depth=node.depth.bits,
        )  # fmt: skip
        for propagation in self._propagations:
            propagation.record_share(node.peer_id, offer.sha256)
        for key in directory.keys_to_publish(
            self._charter, node.peer_id, node.depth.bits, node.depth.peers_in_shard, int(now // 600)
        ):
            shard_to_write = self._entries.setdefault(key, {})
            if node.peer_id in shard_to_write or len(shard_to_write) < SHARD_CAP:  # the same rule as in dht_validator
                shard_to_write[node.peer_id] = offer
            self._search(replicas=REPLICAS, bytes_each=ENTRY_BYTES)
        self._call(min(HANDSHAKES_PER_ROUND, len(self._nodes) - 1), HANDSHAKE_BYTES)
        shard = self._entries.get(directory.key_to_read(self._charter, node.depth.bits, self._random_stream), {})
        self._entries_read += len(shard)
        self._search(replicas=0, bytes_each=0.0)
        self._bytes += min(REPLICAS, len(self._nodes)) * len(shard) * ENTRY_BYTES
        node.depth.observe([announcement.depth for announcement in shard.values()])
        announcements = {origin: shard[origin] for origin in self._random_stream.sample(list(shard), min(len(shard), MAX_READ))}
        trusted = trusted_peers(node.trust) if node.trust else ()
        for origin in directory.choose_peers(
            announcements,
            avoid={node.peer_id},
            tried=node.tried,
            known=trusted,
            count=PULLS_PER_ROUND,
            random=self._random_stream,
        ):
            self._pull(node, origin, announcements[origin])

    def _pull(self, node: Node, origin: bytes, offer: Announcement) -> None:
        is_alive = origin in self._alive
        self._call(1, self._payload_bytes if is_alive else 0.0)
        if is_alive:
            self._payloads_pulled += 1
            node.tried.add((origin, offer.sha256))
            for propagation in self._propagations:
                propagation.record_pull(node.peer_id, offer.sha256)
            if node.trust:
                node.trust.record_groups(origin, offer.round, offer.model, [USEFUL_GROUP])

    def _search(self, *, replicas: int, bytes_each: float) -> None:
        self._call(self._searches.nodes_contacted, 0.0)
        self._bytes += self._searches.neighbours_named * NEIGHBOUR_BYTES
        self._call(min(replicas, len(self._nodes)), bytes_each)

    def _call(self, count: float, bytes_each: float) -> None:
        self._calls += count
        self._bytes += count * (CALL_BYTES + bytes_each)

    def _all_gather(self) -> float:
        """Bytes per node and round if each node stored its payload under one key and read all of them, as an all-gather does."""
        count, searches = (
            len(self._nodes),
            2 * (self._searches.nodes_contacted * CALL_BYTES + self._searches.neighbours_named * NEIGHBOUR_BYTES),
        )
        store_bytes = min(REPLICAS, count) * (CALL_BYTES + self._payload_bytes)
        return searches + store_bytes + min(REPLICAS, count) * count * self._payload_bytes


def simulate(counts: Sequence[int], *, rounds: int, payload_kb: float, seconds: float, churn: float) -> dict[int, NodeCost]:
    """The cost per node and round in swarms of these sizes."""
    costs = {}
    for count in counts:
        swarm = SwarmCostSimulation(count, payload_bytes=payload_kb * 1e3, seconds=seconds, churn=churn, seed=count)
        costs[count] = swarm.play(rounds, warm_up_rounds=12)
    return costs
