"""`waggle-lab churn`: run a real swarm in which a node joins or leaves every few seconds; count stuck nodes and leaks.

It can be stopped and called again: each run adds a line to a log, and the figures are sums over all lines.
"""

import argparse
import asyncio
import gc
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import psutil

from waggle.core import paths
from waggle.network import seed
from waggle.network.identity import keys
from waggle.network.identity.keys import Identity
from waggle.network.messages.events import GroupsArrived, NetworkEvent
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import SwarmNode
from waggle.network.open_node import open_node
from waggle.practice import json_lines_file
from waggle.tasks.charter import Charter
from waggle.tasks.questions import epoch_at
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab import provenance
from waggle_lab.argument_types import real, whole
from waggle_lab.scaling.scale_real import CredulousVerifier, random_groups

EVERY_S = 3.0  # between two nodes that join or leave
ROUND_S = 6.0  # how often a node shares a round
STUCK_S = 90.0  # a node is stuck if it gets no groups, or cannot close, for so long
MIN_NODES = 4
CLOSING_CHECKS = 10  # one a second


class ChurnRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run. `files` and `processes` count what is open at the end beyond what was open at the start."""

    seconds: float
    nodes: int  # at most, at once
    joined: int
    departed: int = msgspec.field(name="left")
    stuck: int
    groups: int  # received by all nodes together
    files: int
    processes: int
    commit: str
    machine: str


@dataclass
class Visitor:
    """A node that takes part for a while."""

    node: SwarmNode
    identity: Identity
    last_groups_at: float = field(default_factory=time.monotonic)
    groups: int = 0
    rounds: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=real(0), default=5.0, help="how long to churn")
    parser.add_argument("--nodes", type=whole(2), default=16, help="at most, at once")
    parser.add_argument("--log", type=Path, default=paths.cache() / "churn.jsonl", help="file to add the result to, as a line")


def run(arguments: argparse.Namespace) -> int:
    """Churn, add the result to the log, and print the sum of all runs; the exit code is 1 if a node was ever stuck."""
    read(arguments.log)  # refuse a file that is not a log before hours of work
    json_lines_file.begin(arguments.log)
    with tempfile.TemporaryDirectory(prefix="waggle-churn-") as folder:
        churn_run = asyncio.run(churn(arguments.nodes, arguments.minutes * 60, Path(folder)))
    json_lines_file.append(arguments.log, churn_run)
    total = figures(read(arguments.log))
    sys.stdout.write("".join(f"{name:24}{value:10g}\n" for name, value in total.items()))
    return 1 if total["churn_stuck_nodes"] else 0


def read(log: Path) -> list[ChurnRun]:
    """The runs in a log, oldest first; raises LabError."""
    return json_lines_file.read(log, ChurnRun, "a run of churn", "--log")


def figures(runs: Sequence[ChurnRun]) -> dict[str, float]:
    """The sum of all runs."""
    return {
        "churn_minutes": round(sum(run.seconds for run in runs) / 60, 1),
        "churn_joined": sum(run.joined for run in runs),
        "churn_left": sum(run.departed for run in runs),
        "churn_stuck_nodes": sum(run.stuck for run in runs),
        "churn_left_open": sum(run.files + run.processes for run in runs),
    }


async def churn(nodes: int, seconds: float, folder: Path, *, every: float = EVERY_S, tempo: float = ROUND_S) -> ChurnRun:
    """Let nodes join and leave for `seconds`, one every `every` seconds; each shares groups every `tempo` seconds."""
    charter, random_stream = first_swarm(), random.Random(nodes)
    alone = SwarmOptions(host="127.0.0.1", tempo=tempo)
    await _leave(await _join(alone, charter, keys.load_or_create(folder / "first.key")))
    before = _count_open()  # after the first node, because what it opens once for the whole process is no leak
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()

    def receive_line(line: str) -> None:
        if line.startswith("/") and not address.done():
            address.set_result(line)

    seed_identity = keys.load_or_create(folder / "seed.key")
    serving = asyncio.create_task(seed.run(alone, seed_identity, charter, receive_line, stop))
    options = replace(alone, seeds=(await address,))
    visitors: list[Visitor] = []
    arrivals, stuck, groups, began = 0, 0, 0, time.monotonic()
    departures = 0
    try:
        while time.monotonic() - began < seconds:
            if len(visitors) < min(MIN_NODES, nodes) or (len(visitors) < nodes and random_stream.random() < 0.6):
                arrivals += 1
                visitors.append(await _join(options, charter, keys.load_or_create(folder / f"{arrivals}.key")))
            else:
                leaving = visitors.pop(random_stream.randrange(len(visitors)))
                groups, stuck, departures = groups + leaving.groups, stuck + await _leave(leaving), departures + 1
            _share(visitors, charter)
            for visitor in [visitor for visitor in visitors if time.monotonic() - visitor.last_groups_at > STUCK_S]:
                stuck, visitor.last_groups_at = stuck + 1, time.monotonic()
            await asyncio.sleep(every)
    finally:
        stuck += sum(await asyncio.gather(*map(_leave, visitors)))
        stop.set()
        await serving
    files, processes = await _count_leaked(before)
    return ChurnRun(
        seconds=round(time.monotonic() - began, 1), nodes=nodes, joined=arrivals, departed=departures, stuck=stuck,
        groups=groups + sum(visitor.groups for visitor in visitors), files=files, processes=processes, commit=provenance.commit(),
        machine=provenance.machine(),
    )  # fmt: skip


async def _join(options: SwarmOptions, charter: Charter, identity: Identity) -> Visitor:
    def receive(news: NetworkEvent) -> None:
        if isinstance(news, GroupsArrived):
            visitor.last_groups_at, visitor.groups = time.monotonic(), visitor.groups + len(news.groups)

    visitor = Visitor(open_node(options, charter, identity, CredulousVerifier(), receive), identity)
    await visitor.node.start()
    return visitor


async def _leave(visitor: Visitor) -> bool:
    """Close a node; returns whether it is stuck."""
    with suppress(TimeoutError):
        async with asyncio.timeout(STUCK_S):
            await visitor.node.close()
            return False
    return True


def _share(visitors: Sequence[Visitor], charter: Charter) -> None:
    for visitor in visitors:
        visitor.node.share(
            visitor.rounds, epoch_at(time.time()), random_groups(charter, visitor.identity, visitor.rounds)[:1], "starter"
        )
        visitor.node.take(visitor.node.waiting())
        visitor.rounds += 1


async def _count_leaked(before: tuple[int, int]) -> tuple[int, int]:
    """How many more files and processes are open than before, after waiting for those that are still closing."""
    for _ in range(CLOSING_CHECKS):
        gc.collect()
        files, processes = (max(0, now - earlier) for now, earlier in zip(_count_open(), before, strict=True))
        if not files and not processes:
            break
        await asyncio.sleep(1.0)
    return files, processes


def _count_open() -> tuple[int, int]:
    """The numbers of open files and of child processes of this process."""
    process = psutil.Process()
    return process.num_fds() if sys.platform != "win32" else 0, len(process.children(recursive=True))
