"""One measurement of `waggle-lab scale` on the real network: nodes with real hivemind on a loopback that is theirs alone.

Run in a network namespace of its own, so that its loopback's counters count nobody else. Judging costs no traffic
and is left out.
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

from waggle.network import seed
from waggle.network.identity import keys as identities
from waggle.network.identity.keys import Identity
from waggle.network.messages.events import GroupsArrived, News
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import SwarmNode
from waggle.network.open_node import open_node
from waggle.tasks.charter import Charter, first_swarm
from waggle.tasks.questions import Question, QuestionId, epoch_at
from waggle.tasks.rollout_group import Completion, Group, Verdict
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.scaling.propagation import MOST_ROUNDS, Spread

GROUPS, COMPLETIONS, CHARACTERS = 9, 8, 400  # of one record: about 24 kB once packed


class CredulousVerifier(Verifier):
    """Believes everything, without a process behind it: what is measured is the network."""

    def __init__(self) -> None:
        """No child process."""
        self._lock = threading.RLock()
        self.starved, self.worked = 0, 0.0

    def revive(self) -> None:
        """Nothing that could have ended."""

    def questions(self, keys: Sequence[tuple[str, int]]) -> list[Question]:
        return [Question(dataset=dataset, seed=number, text="What is 1 + 1?") for dataset, number in keys]

    def judge_strangers(self, items: Iterable[tuple[Question, Completion]]) -> list[Verdict]:
        return [Verdict(reward=float(i % 2), reason="") for i, _ in enumerate(items)]

    def close(self) -> None:
        """Nothing to close."""


def loopback() -> int:
    """Bytes that passed over this namespace's loopback: each counted once."""
    line = next(line for line in Path("/proc/self/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def packets() -> int:
    line = next(line for line in Path("/proc/self/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[1])


def random_groups(charter: Charter, origin: Identity, number: int) -> list[Group]:
    """Groups of random text that no compression makes small."""
    draw = random.Random(f"{origin.peer_id.hex()} {number}")
    texts = string.ascii_letters + string.digits + " ."
    return [
        Group(
            origin=origin.peer_id,
            id=QuestionId(charter.specialties[0].dataset, epoch_at(time.time()), number * GROUPS + i),
            completions=tuple(
                Completion(text="".join(draw.choices(texts, k=CHARACTERS)), ended=True) for _ in range(COMPLETIONS)
            ),
        )
        for i in range(GROUPS)
    ]


class Ear:
    """Hears what a node tells."""

    def __init__(self, peer_id: bytes, spread: Spread) -> None:
        self._peer_id, self._spread = peer_id, spread
        self.arrived = 0  # records

    def __call__(self, news: News) -> None:
        if isinstance(news, GroupsArrived):
            self.arrived += 1
            self._spread.pulled(self._peer_id, (news.origin, news.round))


async def play(nodes: Sequence[tuple[SwarmNode, Identity]], charter: Charter, number: int, seconds: float, spread: Spread) -> int:
    """One round of everybody, one after the other; the bytes of a record."""
    size = 0
    for node, each in nodes:
        spread.shared(each.peer_id, (each.peer_id, number))
        _, size = node.share(number, epoch_at(time.time()), random_groups(charter, each, number), "starter")
        node.take(node.waiting())
        await asyncio.sleep(seconds / len(nodes))
    return size


async def measure(count: int, rounds: int, seconds: float, folder: Path) -> dict[str, float]:
    """kB, packets and CPU seconds per node and round of `seconds`, after a round to warm up."""
    charter, spread = first_swarm(), Spread(1.0, random.Random(1))
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()

    def say(line: str) -> None:
        if line.startswith("/") and not address.done():
            address.set_result(line)

    def own(name: str) -> Identity:
        return identities.load_or_create(folder / f"{name}.key")

    local = SwarmOptions(host="127.0.0.1", tempo=seconds)
    serving = asyncio.create_task(seed.run(local, own("seed"), charter, say, stop))
    options = SwarmOptions(host="127.0.0.1", tempo=seconds, seeds=(await address,), patience=10.0)
    names = [own(str(number)) for number in range(count)]
    ears = [Ear(each.peer_id, spread) for each in names]
    nodes = [(open_node(options, charter, each, CredulousVerifier(), ear), each) for each, ear in zip(names, ears, strict=True)]
    everybody = [each.peer_id for _, each in nodes]

    try:
        for node, _ in nodes:
            await node.start()
            await asyncio.sleep(seconds / count)  # spread over the round, as they are in the world
        size = 0
        before: tuple[float, ...] = ()
        for number in range(rounds + 2):
            if number == 2:
                before = figures(ears)
                spread.follow(everybody)
            size = await play(nodes, charter, number, seconds, spread)
            spread.count(number - 1, everybody)
        moved, sent, worked, came = (after - then for after, then in zip(figures(ears), before, strict=True))
        while not spread.count(number - 1, everybody) and number < MOST_ROUNDS:
            number += 1
            await play(nodes, charter, number, seconds, spread)
    finally:
        await asyncio.gather(*(node.close() for node, _ in nodes))
        stop.set()
        await serving
    each_round = count * rounds
    return {
        "kb": moved / each_round / 1e3, "packets": sent / each_round, "cpu_s": worked / each_round,
        "payloads": came / each_round, "payload_kb": size / 1e3, "half": spread.rounds(),
    }  # fmt: skip


def figures(ears: Sequence[Ear]) -> tuple[float, ...]:
    """Bytes, packets, CPU seconds of this process and its p2pds, and records that arrived, so far."""
    me = psutil.Process()
    times = [one.cpu_times() for one in (me, *me.children(recursive=True))]
    return loopback(), packets(), sum(one.user + one.system for one in times), sum(ear.arrived for ear in ears)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("nodes", type=int)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=6.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="waggle-scale-") as folder:
        found = asyncio.run(measure(arguments.nodes, arguments.rounds, arguments.seconds, Path(folder)))
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
