"""`waggle-lab churn`: a real swarm here in which somebody joins or leaves every few seconds; counts who is stuck, and what leaks.

It may be stopped and called again: each run adds a line to a log, and the sum of all lines is what counts.
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
from waggle.network.identity import keys as identities
from waggle.network.identity.keys import Identity
from waggle.network.messages.events import GroupsArrived, NetworkEvent
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import SwarmNode
from waggle.network.open_node import open_node
from waggle.practice import json_lines_file
from waggle.tasks.charter import Charter, first_swarm
from waggle.tasks.questions import epoch_at
from waggle_lab import provenance
from waggle_lab.argument_types import real, whole
from waggle_lab.scaling.scale_real import Believing, made_up

EVERY_S = 3.0  # between two that join or leave
TEMPO_S = 6.0  # of a round
STUCK_S = 90.0  # without a peer's groups, or in leaving: a node that is so is stuck
FEWEST = 4
CLOSING_LOOKS = 10  # a second apart


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """What one run met. `files` and `processes` are what is left open in the end beyond what was open at first."""

    seconds: float
    nodes: int  # at most, at once
    joined: int
    left: int
    stuck: int
    groups: int  # that arrived anywhere
    files: int
    processes: int
    commit: str
    machine: str


@dataclass
class Guest:
    """One node while it is here."""

    node: SwarmNode
    identity: Identity
    heard_at: float = field(default_factory=time.monotonic)
    groups: int = 0
    rounds: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=real(0), default=5.0)
    parser.add_argument("--nodes", type=whole(2), default=16, help="at most, at once")
    parser.add_argument("--log", type=Path, default=paths.cache() / "churn.jsonl", help="file that a line is added to")


def run(arguments: argparse.Namespace) -> int:
    """Churn, add to the log, and say what all runs together met; the exit code is 1 where a node was ever stuck."""
    read(arguments.log)  # a file that is no log is refused before anything else
    json_lines_file.begin(arguments.log)
    with tempfile.TemporaryDirectory(prefix="waggle-churn-") as folder:
        met = asyncio.run(churn(arguments.nodes, arguments.minutes * 60, Path(folder)))
    json_lines_file.append(arguments.log, met)
    total = figures(read(arguments.log))
    sys.stdout.write("".join(f"{name:24}{value:10g}\n" for name, value in total.items()))
    return 1 if total["churn_stuck_nodes"] else 0


def read(log: Path) -> list[Slice]:
    """The runs in a log, oldest first; raises LabError."""
    return json_lines_file.read(log, Slice, "a run of churn", "--log")


def figures(slices: Sequence[Slice]) -> dict[str, float]:
    """The sum of all runs."""
    return {
        "churn_minutes": round(sum(each.seconds for each in slices) / 60, 1),
        "churn_joined": sum(each.joined for each in slices),
        "churn_left": sum(each.left for each in slices),
        "churn_stuck_nodes": sum(each.stuck for each in slices),
        "churn_left_open": sum(each.files + each.processes for each in slices),
    }


async def churn(nodes: int, seconds: float, folder: Path, *, every: float = EVERY_S, tempo: float = TEMPO_S) -> Slice:
    """Let nodes join and leave for so long."""
    charter, draw = first_swarm(), random.Random(nodes)
    alone = SwarmOptions(host="127.0.0.1", tempo=tempo)
    await _leave(await _join(alone, charter, identities.load_or_create(folder / "first.key")))
    before = _open()  # what the first node of a process opens once for all is no leak
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()

    def say(line: str) -> None:
        if line.startswith("/") and not address.done():
            address.set_result(line)

    own = identities.load_or_create(folder / "seed.key")
    serving = asyncio.create_task(seed.run(alone, own, charter, say, stop))
    options = replace(alone, seeds=(await address,))
    here_now: list[Guest] = []
    joined, stuck, groups, began = 0, 0, 0, time.monotonic()
    left = 0
    try:
        while time.monotonic() - began < seconds:
            if len(here_now) < min(FEWEST, nodes) or (len(here_now) < nodes and draw.random() < 0.6):
                joined += 1
                here_now.append(await _join(options, charter, identities.load_or_create(folder / f"{joined}.key")))
            else:
                gone = here_now.pop(draw.randrange(len(here_now)))
                groups, stuck, left = groups + gone.groups, stuck + await _leave(gone), left + 1
            _share(here_now, charter)
            for guest in [one for one in here_now if time.monotonic() - one.heard_at > STUCK_S]:
                stuck, guest.heard_at = stuck + 1, time.monotonic()
            await asyncio.sleep(every)
    finally:
        stuck += sum(await asyncio.gather(*map(_leave, here_now)))
        stop.set()
        await serving
    files, processes = await _left_open(before)
    return Slice(
        seconds=round(time.monotonic() - began, 1), nodes=nodes, joined=joined, left=left, stuck=stuck,
        groups=groups + sum(one.groups for one in here_now), files=files, processes=processes, commit=provenance.commit(),
        machine=provenance.machine(),
    )  # fmt: skip


async def _join(options: SwarmOptions, charter: Charter, identity: Identity) -> Guest:
    def hear(news: NetworkEvent) -> None:
        if isinstance(news, GroupsArrived):
            guest.heard_at, guest.groups = time.monotonic(), guest.groups + len(news.groups)

    guest = Guest(open_node(options, charter, identity, Believing(), hear), identity)
    await guest.node.start()
    return guest


async def _leave(guest: Guest) -> bool:
    """Whether it cannot."""
    with suppress(TimeoutError):
        async with asyncio.timeout(STUCK_S):
            await guest.node.close()
            return False
    return True


def _share(guests: Sequence[Guest], charter: Charter) -> None:
    for guest in guests:
        guest.node.share(guest.rounds, epoch_at(time.time()), made_up(charter, guest.identity, guest.rounds)[:1], "starter")
        guest.node.take(guest.node.waiting())
        guest.rounds += 1


async def _left_open(before: tuple[int, int]) -> tuple[int, int]:
    """How many more files and processes than before; what is only just closing is given a while, and garbage is no leak."""
    for _ in range(CLOSING_LOOKS):
        gc.collect()
        files, processes = (max(0, now - then) for now, then in zip(_open(), before, strict=True))
        if not files and not processes:
            break
        await asyncio.sleep(1.0)
    return files, processes


def _open() -> tuple[int, int]:
    """Files and child processes of this process."""
    me = psutil.Process()
    return me.num_fds() if sys.platform != "win32" else 0, len(me.children(recursive=True))
