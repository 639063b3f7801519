#!/usr/bin/env python3
"""A partition: eight real nodes on two sides of a router, in network namespaces; the router fails and is repaired.

    PYTHONPATH=app:tests python tests/hostile/partition.py

measures how long the swarm takes to reunite, and prints that as JSON. Linux and root only.
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
SOON = 90.0  # seconds to meet at the start, or to reunite, before the test fails
NOTICED = 150.0  # seconds until all nodes have given up a silent connection
ROUTER_A, ROUTER_B = "10.77.1.1", "10.77.2.1"
HOST_A, HOST_B = "10.77.1.2", "10.77.2.2"
BEFORE, CUT, ALONE = 0, 1, 2  # rounds: all together, just cut off, and after all have noticed


def why_not() -> str:
    """Why this computer cannot run the test; empty if it can."""
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
    """Run `ip`; raises OSError with its error message."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Network:
    """Two namespaces and a router between them, whose names begin with `name`."""

    name: str

    def forward(self, on: bool) -> None:
        """With `on=False` the router drops all packets: no carrier is lost, no error is sent, and TCP notices nothing."""
        command = f"echo {int(on)} > /proc/sys/net/ipv4/ip_forward"
        ip("netns", "exec", f"{self.name}-router", "sh", "-c", command)

    def plug(self, on: bool) -> None:
        """With `on=False` the router is unplugged: both sides lose the carrier, and sending fails."""
        for link in ("to-a", "to-b"):
            ip("-n", f"{self.name}-router", "link", "set", link, "up" if on else "down")


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """Create the network, and remove it after the block."""
    namespaces = Network(f"waggle-{os.getpid()}-{time.monotonic_ns() % 1_000_000}")
    try:
        ip("netns", "add", f"{namespaces.name}-router")
        for letter, router, host in (("a", ROUTER_A, HOST_A), ("b", ROUTER_B, HOST_B)):
            side, link = f"{namespaces.name}-{letter}", f"to-{letter}"
            ip("netns", "add", side)
            ip("link", "add", link, "netns", f"{namespaces.name}-router", "type", "veth", "peer", "name", "wire", "netns", side)
            ip("-n", f"{namespaces.name}-router", "address", "add", f"{router}/24", "dev", link)
            ip("-n", f"{namespaces.name}-router", "link", "set", link, "up")
            ip("-n", side, "address", "add", f"{host}/24", "dev", "wire")
            ip("-n", side, "link", "set", "lo", "up")
            ip("-n", side, "link", "set", "wire", "up")
            ip("-n", side, "route", "add", "default", "via", router)
        namespaces.forward(True)
        yield namespaces
    finally:
        for end in ("a", "b", "router"):  # their links are removed with them
            with contextlib.suppress(OSError):  # it was not created
                ip("netns", "del", f"{namespaces.name}-{end}")


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
        """Wait until its nodes are ready; returns the address of their seed."""
        message = self.wait_said(SOON, said="ready")
        self.peers = message["peers"]
        return message["seed"]

    def order(self, **words: object) -> None:
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def report(self, name: str) -> list[dict[str, Any]]:
        """The report of each node of this side."""
        self.order(report=name)
        return self.wait_said(SOON, said="report", name=name)["nodes"]

    def wait_said(self, seconds: float, start: int = 0, **fields: object) -> dict[str, Any]:
        """Wait for the first message with these fields."""
        return json.loads(self.wait_line(lambda line: fields.items() <= json.loads(line).items(), seconds, start))

    def arrived_at(self, number: int, node: int, origin: str) -> float:
        """Wait until a node has this round of another one; returns the time."""
        fields = {"said": "arrived", "node": node, "origin": origin, "round": number}
        self.wait_said(SOON, **fields)
        return next(at for at, line in self.lines if fields.items() <= json.loads(line).items())

    def messages(self, what: str) -> list[dict[str, Any]]:
        """All messages of one kind."""
        return [message for _, line in list(self.lines) if (message := json.loads(line))["said"] == what]


@dataclass(frozen=True)
class Healed:
    """A repaired partition: `seconds` from the repair until every node had groups of every other, and reports of the nodes."""

    seconds: float
    before: list[dict[str, Any]]  # each node's report before the cut
    after: list[dict[str, Any]]
    arrived: list[list[tuple[str, int, list[str]]]]  # at each node: origin, round and names of groups
    peers: list[str]
    trouble: list[dict[str, Any]]  # network processes that ended, and refused records


def part(way: str, folder: Path) -> Healed:
    """Partition a swarm of eight in one of the `WAYS`, wait until all have noticed, and repair it."""
    with (
        network() as namespaces,
        running(Side(f"{namespaces.name}-a", HOST_A, folder / "a")) as a,
        running(Side(f"{namespaces.name}-b", HOST_B, folder / "b", a.ready())) as b,
    ):
        b.ready()
        sides = (a, b)
        share_and_arrive(sides, BEFORE, across=True)
        before = [*a.report("before"), *b.report("before")]

        marks = len(a.lines), len(b.lines)
        WAYS[way](namespaces, False)
        share_and_arrive(sides, CUT, across=False)
        for side, mark in zip(sides, marks, strict=True):
            for node in range(EACH):
                side.wait_said(NOTICED, mark, said="reached", node=node, reach="connected", peers=EACH - 1)
        share_and_arrive(sides, ALONE, across=False)

        repaired = time.monotonic()
        WAYS[way](namespaces, True)
        whole = max(arrivals(a, b, ALONE) + arrivals(b, a, ALONE))
        after = [*a.report("after"), *b.report("after")]
        assert [side.end() for side in sides] == [0, 0], "a side crashed"
        trouble = a.messages("trouble") + b.messages("trouble")
        return Healed(whole - repaired, before, after, groups_arrived(a) + groups_arrived(b), a.peers + b.peers, trouble)


def groups_arrived(side: Side) -> list[list[tuple[str, int, list[str]]]]:
    """The groups that arrived at each node of this side."""
    arrived = side.messages("arrived")
    return [
        [(message["origin"], message["round"], message["groups"]) for message in arrived if message["node"] == node]
        for node in range(EACH)
    ]


def share_and_arrive(sides: tuple[Side, Side], number: int, *, across: bool) -> None:
    """Share a round on every node; wait until it has arrived on its own side, with `across` also on the other one."""
    for side in sides:
        side.order(share=number)
    for side, other in (sides, sides[::-1]):
        arrivals(side, side, number)
        if across:
            arrivals(side, other, number)


def arrivals(side: Side, other: Side, number: int) -> list[float]:
    """The times when each node of `side` had this round of each node of `other`."""
    pairs = product(enumerate(side.peers), other.peers)
    return [side.arrived_at(number, node, origin) for (node, mine), origin in pairs if mine != origin]


def heal_seconds(runs: int = 3) -> dict[str, list[float]]:
    """The seconds until the swarm was reunited, for each run of each way."""
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
