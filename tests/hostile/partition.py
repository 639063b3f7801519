#!/usr/bin/env python3
"""A partition: eight real nodes on two sides of a router, in network namespaces; the router fails, and works again.

    PYTHONPATH=app:tests python tests/hostile/partition.py

measures how long the swarm takes to be one again, and prints that as JSON. Linux and root only.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from end_to_end.programs import Program, running

EACH = 4  # nodes on a side
SOON = 90.0  # seconds after which it is given up: to meet at the start, and to be one again
NOTICED = 150.0  # until a connection over which nothing comes is given up by everybody
ROUTER_A, ROUTER_B = "10.77.1.1", "10.77.2.1"
HOST_A, HOST_B = "10.77.1.2", "10.77.2.2"
BEFORE, CUT, ALONE = 0, 1, 2  # rounds: with everybody there, just cut off, and after all have noticed


def why_not() -> str:
    """Why this computer cannot be partitioned; empty where it can."""
    if sys.platform != "linux":
        return "network namespaces exist on Linux only"
    if shutil.which("ip") is None:
        return "there is no `ip` command to make network namespaces with"
    try:
        with network():
            return ""
    except OSError as error:
        return f"network namespaces cannot be made, which needs root: {error}"


def ip(*words: str) -> None:
    """Run `ip`; raises OSError with what it says."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Network:
    """Two namespaces and a router between them, all of whose names begin with `name`."""

    name: str

    def forward(self, on: bool) -> None:
        """A router that is `not on` swallows what comes: no carrier lost, no error sent, nothing for TCP to see."""
        command = f"echo {int(on)} > /proc/sys/net/ipv4/ip_forward"
        ip("netns", "exec", f"{self.name}-router", "sh", "-c", command)

    def plug(self, on: bool) -> None:
        """A router that is `not on` is unplugged: both sides lose the carrier, and what they send fails."""
        for link in ("to-a", "to-b"):
            ip("-n", f"{self.name}-router", "link", "set", link, "up" if on else "down")


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """Made for one run, and taken away whatever happens."""
    made = Network(f"waggle-{os.getpid()}-{time.monotonic_ns() % 1_000_000}")
    try:
        ip("netns", "add", f"{made.name}-router")
        for letter, router, host in (("a", ROUTER_A, HOST_A), ("b", ROUTER_B, HOST_B)):
            side, link = f"{made.name}-{letter}", f"to-{letter}"
            ip("netns", "add", side)
            ip("link", "add", link, "netns", f"{made.name}-router", "type", "veth", "peer", "name", "wire", "netns", side)
            ip("-n", f"{made.name}-router", "address", "add", f"{router}/24", "dev", link)
            ip("-n", f"{made.name}-router", "link", "set", link, "up")
            ip("-n", side, "address", "add", f"{host}/24", "dev", "wire")
            ip("-n", side, "link", "set", "lo", "up")
            ip("-n", side, "link", "set", "wire", "up")
            ip("-n", side, "route", "add", "default", "via", router)
        made.forward(True)
        yield made
    finally:
        for end in ("a", "b", "router"):  # with them go their links
            with contextlib.suppress(OSError):  # it was not made
                ip("netns", "del", f"{made.name}-{end}")


WAYS = {"silent": Network.forward, "unplugged": Network.plug}


class Side(Program):
    """A running `side.py` in its namespace."""

    def __init__(self, namespace: str, host: str, folder: Path, seed: str = "") -> None:
        folder.mkdir()
        script = Path(__file__).with_name("side.py")
        paths = os.pathsep.join(str(script.parents[2] / part) for part in ("app", "tests"))
        command = ("ip", "netns", "exec", namespace, "env", f"PYTHONPATH={paths}", sys.executable, str(script))
        super().__init__("--host", host, "--folder", str(folder), "--nodes", str(EACH), "--seed", seed, command=command)
        self.peers: list[str] = []

    def ready(self) -> str:
        """Wait until its nodes are there; the address of the seed that they know."""
        said = self.wait_said(SOON, said="ready")
        self.peers = said["peers"]
        return said["seed"]

    def order(self, **words: object) -> None:
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def report(self, name: str) -> list[dict[str, Any]]:
        """Where each node of this side stands."""
        self.order(report=name)
        return self.wait_said(SOON, said="report", name=name)["nodes"]

    def wait_said(self, seconds: float, start: int = 0, **wanted: object) -> dict[str, Any]:
        """The first thing it said of which all this is true."""
        return json.loads(self.wait_line(lambda line: wanted.items() <= json.loads(line).items(), seconds, start))

    def arrived_at(self, number: int, node: int, origin: str) -> float:
        """The moment at which a node had this round of another one; waits for it."""
        wanted = {"said": "arrived", "node": node, "origin": origin, "round": number}
        self.wait_said(SOON, **wanted)
        return next(at for at, line in self.lines if wanted.items() <= json.loads(line).items())

    def told(self, what: str) -> list[dict[str, Any]]:
        """All it said of one kind."""
        return [said for _, line in list(self.lines) if (said := json.loads(line))["said"] == what]


@dataclass(frozen=True)
class Healed:
    """How a partition went: `seconds` from the repair until every node had groups of every other, and what was kept."""

    seconds: float
    before: list[dict[str, Any]]  # each node's report before the cut
    after: list[dict[str, Any]]
    arrived: list[list[tuple[str, int, list[str]]]]  # at each node: origin, round and names of groups
    peers: list[str]
    trouble: list[dict[str, Any]]  # network processes that ended, records that were refused


def part(way: str, folder: Path) -> Healed:
    """Partition a swarm of eight in one of `WAYS` until everybody has noticed, and repair it."""
    with (
        network() as made,
        running(Side(f"{made.name}-a", HOST_A, folder / "a")) as a,
        running(Side(f"{made.name}-b", HOST_B, folder / "b", a.ready())) as b,
    ):
        b.ready()
        sides = (a, b)
        share_and_arrive(sides, BEFORE, across=True)
        before = [*a.report("before"), *b.report("before")]

        marks = len(a.lines), len(b.lines)
        WAYS[way](made, False)
        share_and_arrive(sides, CUT, across=False)
        for side, mark in zip(sides, marks, strict=True):
            for node in range(EACH):
                side.wait_said(NOTICED, mark, said="reached", node=node, reach="connected", peers=EACH - 1)
        share_and_arrive(sides, ALONE, across=False)

        repaired = time.monotonic()
        WAYS[way](made, True)
        whole = max(arrivals(a, b, ALONE) + arrivals(b, a, ALONE))
        after = [*a.report("after"), *b.report("after")]
        assert [side.end() for side in sides] == [0, 0], "a side crashed"
        trouble = a.told("trouble") + b.told("trouble")
        return Healed(whole - repaired, before, after, kept(a) + kept(b), a.peers + b.peers, trouble)


def kept(side: Side) -> list[list[tuple[str, int, list[str]]]]:
    """What arrived at each node of this side."""
    told = side.told("arrived")
    return [[(one["origin"], one["round"], one["groups"]) for one in told if one["node"] == node] for node in range(EACH)]


def share_and_arrive(sides: tuple[Side, Side], number: int, *, across: bool) -> None:
    """Everybody shares a round; wait until it is everywhere on its own side, and across the router too."""
    for side in sides:
        side.order(share=number)
    for side, other in (sides, sides[::-1]):
        arrivals(side, side, number)
        if across:
            arrivals(side, other, number)


def arrivals(side: Side, other: Side, number: int) -> list[float]:
    """When each node of `side` had this round from each of `other`."""
    pairs = product(enumerate(side.peers), other.peers)
    return [side.arrived_at(number, node, origin) for (node, mine), origin in pairs if mine != origin]


def heal_seconds(runs: int = 3) -> dict[str, list[float]]:
    """How long the swarm took to be one again: each run of each way to be cut off."""
    measured: dict[str, list[float]] = {way: [] for way in WAYS}
    for way in [*WAYS] * runs:
        with tempfile.TemporaryDirectory() as folder:
            measured[way].append(part(way, Path(folder)).seconds)
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="of each way to be cut off")
    runs = parser.parse_args().runs
    if reason := why_not():
        sys.exit(f"No partition can be made here: {reason}.")
    measured = heal_seconds(runs)
    every = [seconds for each in measured.values() for seconds in each]
    figures = {"partition_heal_s": statistics.median(every), "partition_heal_s_worst": max(every), "runs": measured}
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
