#!/usr/bin/env python3
"""A home behind a router that lets only outgoing calls through, in network namespaces: others call the node through the seed.

    PYTHONPATH=app:tests python tests/hostile/nat.py

measures how long a node at home takes until another has its groups, and prints that as JSON. Linux and root only.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from end_to_end.programs import Program, running
from hostile.partition import ip
from network.loopback import Ear, answered, question_ids, share
from waggle.core.errors import WaggleError
from waggle.network import seed
from waggle.network.identity import keys as identities
from waggle.network.messages.events import GroupsArrived, ReachChanged
from waggle.network.messages.options import SwarmOptions
from waggle.network.open_node import open_node
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

SEED, HOME, OTHER = "5.5.5.1", "10.9.1.2", "5.5.6.2"  # p2pd takes the first and third for public addresses
SIDES = (("seed", "5.5.5.254", SEED), ("home", "10.9.1.254", HOME), ("other", "5.5.6.254", OTHER))
SOON = 60.0
RULES = (
    ("add", "table", "ip", "waggle"),
    ("add", "chain", "ip", "waggle", "calls", "{ type filter hook forward priority 0; policy accept; }"),
    ("add", "rule", "ip", "waggle", "calls", "oifname", "home", "tcp", "flags", "&", "(syn | ack)", "==", "syn", "drop"),
    ("add", "rule", "ip", "waggle", "calls", "oifname", "home", "ip", "protocol", "udp", "drop"),
)


@contextlib.contextmanager
def network() -> Iterator[str]:
    """Three computers at one router, which blocks UDP and all calls to the home; yields the prefix of the namespaces' names."""
    name = f"waggle-{os.getpid()}-{time.monotonic_ns() % 1_000_000}"
    try:
        ip("netns", "add", f"{name}-router")
        for side, router, host in SIDES:
            ip("netns", "add", f"{name}-{side}")
            ip("link", "add", side, "netns", f"{name}-router", "type", "veth", "peer", "name", "wire", "netns", f"{name}-{side}")
            ip("-n", f"{name}-router", "address", "add", f"{router}/24", "dev", side)
            ip("-n", f"{name}-router", "link", "set", side, "up")
            ip("-n", f"{name}-{side}", "address", "add", f"{host}/24", "dev", "wire")
            for link in ("lo", "wire"):
                ip("-n", f"{name}-{side}", "link", "set", link, "up")
            ip("-n", f"{name}-{side}", "route", "add", "default", "via", router)
        within = ("netns", "exec", f"{name}-router")
        ip(*within, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for rule in RULES:
            ip(*within, "nft", *rule)
        yield name
    finally:
        for side in ("seed", "home", "other", "router"):
            with contextlib.suppress(OSError):  # it was not created
                ip("netns", "del", f"{name}-{side}")


def why_not() -> str:
    """Why this computer cannot run the test; empty if it can."""
    if sys.platform != "linux":
        return "network namespaces exist on Linux only"
    try:
        with network():
            return ""
    except OSError as error:
        return f"a router that blocks calls cannot be made, which needs root, ip and nft: {error}"


class Computer(Program):
    """This file in a namespace: a seed, a node that shares, or one that listens."""

    def __init__(self, namespace: str, *arguments: str) -> None:
        paths = os.pathsep.join(str(Path(__file__).parents[2] / part) for part in ("app", "tests"))
        command = ("ip", "netns", "exec", namespace, "env", f"PYTHONPATH={paths}", sys.executable, __file__)
        super().__init__(*arguments, command=command)

    def wait_said(self, what: str) -> dict[str, str]:
        return dict(json.loads(self.wait_line(lambda line: json.loads(line)["said"] == what, SOON)))


@dataclass(frozen=True)
class Met:
    """Seconds from the start of the node at home until it and another node had each other's groups, and its address."""

    seconds: float
    address: str


def meet(folder: Path) -> Met:
    """Run it once."""
    with network() as name, running(Computer(f"{name}-seed", "seed", SEED, str(folder / "seed"))) as keeper:
        address = keeper.wait_said("address")["address"]
        with running(Computer(f"{name}-other", "node", OTHER, str(folder / "other"), address)) as other:
            other.wait_said("ready")
            begun = time.monotonic()
            with running(Computer(f"{name}-home", "node", HOME, str(folder / "home"), address)) as home:
                way = home.wait_said("way")
                other.wait_said("arrived")
                home.wait_said("arrived")
                return Met(time.monotonic() - begun, way["address"])


async def play(arguments: argparse.Namespace) -> None:
    """Run a node in a namespace."""
    folder, charter = Path(arguments.folder), first_swarm()
    options = SwarmOptions(host=arguments.host, seeds=tuple(arguments.seeds), tempo=0.2, relay=arguments.kind == "seed")
    myself = identities.load_or_create(folder / "identity.key")
    if arguments.kind == "seed":
        stop = asyncio.Event()
        stdin_closed = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
        stdin_closed.add_done_callback(lambda _: stop.set())
        await seed.run(options, myself, charter, _say_address, stop)
        return
    verifier, ear = Verifier(charter), Ear()
    node = open_node(options, charter, myself, verifier, ear)
    try:
        share_own = answered(charter, verifier, myself.peer_id, question_ids(charter, verifier, myself.peer_id, 1))
        await node.start()
        share(node, share_own)
        _say(said="ready")
        if arguments.host == HOME:
            reach = await ear.hear(ReachChanged, lambda news: news.way == "relay" and bool(news.address))
            _say(said="way", address=reach.address)
        await ear.hear(GroupsArrived)
        _say(said="arrived")
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await node.close()
        verifier.close()


def _say(**words: str) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def _say_address(line: str) -> None:
    if line.startswith("/"):
        _say(said="address", address=line)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("kind", nargs="?", choices=("seed", "node"))
    parser.add_argument("host", nargs="?")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("seeds", nargs="*")
    arguments = parser.parse_args()
    if arguments.kind:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(play(arguments))
        return 0
    if reason := why_not():
        raise WaggleError(reason)
    with tempfile.TemporaryDirectory() as folder:
        met = meet(Path(folder))
    _say(seconds=f"{met.seconds:.1f}", address=met.address)
    return 0


if __name__ == "__main__":
    sys.exit(main())
