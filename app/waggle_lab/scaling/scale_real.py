"""Measure one real swarm for `waggle-lab scale`: nodes with real hivemind in one process, over loopback.

Run it in a network namespace of its own, so that the counters of its loopback count nothing else. Completions are not judged,
because judging causes no traffic.
"""

import argparse
import asyncio
import json
import random
import string
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

from waggle.core.message import NOTHING
from waggle.network import seed
from waggle.network.identity import keys
from waggle.network.identity.keys import Identity
from waggle.network.messages.events import GroupsArrived, NetworkEvent
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import SwarmNode
from waggle.network.open_node import open_node
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, QuestionId, QuestionKey, epoch_at
from waggle.tasks.rollout_group import Completion, Group, Verdict
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.scaling.propagation import MAX_ROUNDS, Propagation

GROUPS, COMPLETIONS, CHARACTERS = 9, 8, 400  # of one record, which is then about 24 kB on the wire


class CredulousVerifier(Verifier):
    """A verifier without a child process that accepts everything, because only the network is measured."""

    def __init__(self) -> None:
        """Start no child process."""
        self._lock = threading.RLock()
        self.starved, self.worked = 0, 0.0

    def revive(self) -> None:
        """Do nothing: there is no child process that could have ended."""

    def questions(self, keys: Sequence[QuestionKey]) -> list[Question]:
        return [Question(dataset=key.dataset, seed=key.seed, text="What is 1 + 1?", level=key.level) for key in keys]

    def judge_strangers(self, items: Iterable[tuple[Question, Completion]]) -> list[Verdict]:
        return [Verdict(reward=float(i % 2), reason=NOTHING) for i, _ in enumerate(items)]

    def close(self) -> None:
        """Do nothing."""


def loopback_bytes() -> int:
    """Bytes over the loopback of this network namespace so far, each counted once."""
    line = next(line for line in Path("/proc/self/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def loopback_packets() -> int:
    """Packets over the loopback of this network namespace so far."""
    line = next(line for line in Path("/proc/self/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[1])


def random_groups(charter: Charter, origin: Identity, number: int) -> list[Group]:
    """The groups of round `number`, with random text that cannot be compressed."""
    random_stream = random.Random(f"{origin.peer_id.hex()} {number}")
    characters = string.ascii_letters + string.digits + " ."
    return [
        Group(
            origin=origin.peer_id,
            id=QuestionId(charter.specialties[0].dataset, epoch_at(time.time()), number * GROUPS + i),
            completions=tuple(
                Completion(text="".join(random_stream.choices(characters, k=CHARACTERS)), ended=True) for _ in range(COMPLETIONS)
            ),
        )
        for i in range(GROUPS)
    ]


class ArrivalCounter:
    """Counts the records that arrive at a node: the node's listener for news."""

    def __init__(self, peer_id: bytes, propagation: Propagation) -> None:
        self._peer_id, self._propagation = peer_id, propagation
        self.arrived = 0  # records

    def __call__(self, news: NetworkEvent) -> None:
        if isinstance(news, GroupsArrived):
            self.arrived += 1
            self._propagation.record_pull(self._peer_id, (news.origin, news.round))


async def play(
    nodes: Sequence[tuple[SwarmNode, Identity]], charter: Charter, number: int, seconds: float, propagation: Propagation
) -> int:
    """Play one round: each node shares and takes groups, one after the other. Returns the bytes of a record."""
    record_bytes = 0
    for node, identity in nodes:
        propagation.record_share(identity.peer_id, (identity.peer_id, number))
        _, record_bytes = node.share(number, epoch_at(time.time()), random_groups(charter, identity, number), "starter")
        node.take(node.waiting())
        await asyncio.sleep(seconds / len(nodes))
    return record_bytes


async def measure(count: int, rounds: int, seconds: float, folder: Path) -> dict[str, float]:
    """Measure kB, packets and CPU seconds per node and round of `seconds`, after two rounds of warm-up."""
    charter, propagation = first_swarm(), Propagation(1.0, random.Random(1))
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()

    def receive_line(line: str) -> None:
        if line.startswith("/") and not address.done():
            address.set_result(line)

    def load_identity(name: str) -> Identity:
        return keys.load_or_create(folder / f"{name}.key")

    seed_options = SwarmOptions(host="127.0.0.1", tempo=seconds)
    serving = asyncio.create_task(seed.run(seed_options, load_identity("seed"), charter, receive_line, stop))
    options = SwarmOptions(host="127.0.0.1", tempo=seconds, seeds=(await address,), patience=10.0)
    identities = [load_identity(str(number)) for number in range(count)]
    arrival_counters = [ArrivalCounter(identity.peer_id, propagation) for identity in identities]
    nodes = [
        (open_node(options, charter, identity, CredulousVerifier(), counter), identity)
        for identity, counter in zip(identities, arrival_counters, strict=True)
    ]
    peer_ids = [identity.peer_id for _, identity in nodes]

    try:
        for node, _ in nodes:
            await node.start()
            await asyncio.sleep(seconds / count)  # spread over the round, as in a real swarm
        record_bytes = 0
        before: tuple[float, ...] = ()
        for number in range(rounds + 2):
            if number == 2:
                before = counters(arrival_counters)
                propagation.follow(peer_ids)
            record_bytes = await play(nodes, charter, number, seconds, propagation)
            propagation.count(number - 1, peer_ids)
        bytes_moved, packets_sent, cpu_seconds, records_arrived = (
            after - earlier for after, earlier in zip(counters(arrival_counters), before, strict=True)
        )
        while not propagation.count(number - 1, peer_ids) and number < MAX_ROUNDS:
            number += 1
            await play(nodes, charter, number, seconds, propagation)
    finally:
        await asyncio.gather(*(node.close() for node, _ in nodes))
        stop.set()
        await serving
    node_rounds = count * rounds
    return {
        "kb": bytes_moved / node_rounds / 1e3, "packets": packets_sent / node_rounds, "cpu_s": cpu_seconds / node_rounds,
        "payloads": records_arrived / node_rounds, "payload_kb": record_bytes / 1e3, "half": propagation.rounds(),
    }  # fmt: skip


def counters(arrival_counters: Sequence[ArrivalCounter]) -> tuple[float, ...]:
    """Bytes, packets, CPU seconds of this process and its children, and records received, all so far."""
    own_process = psutil.Process()
    cpu_times = [process.cpu_times() for process in (own_process, *own_process.children(recursive=True))]
    cpu_seconds = sum(times.user + times.system for times in cpu_times)
    records = sum(counter.arrived for counter in arrival_counters)
    return loopback_bytes(), loopback_packets(), cpu_seconds, records


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("nodes", type=int, help="size of the swarm")
    parser.add_argument("--rounds", type=int, default=4, help="rounds to measure")
    parser.add_argument("--seconds", type=float, default=6.0, help="length of a round")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="waggle-scale-") as folder:
        results = asyncio.run(measure(arguments.nodes, arguments.rounds, arguments.seconds, Path(folder)))
    sys.stdout.write(json.dumps(results) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
