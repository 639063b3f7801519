#!/usr/bin/env python3
"""Soak py-libp2p in place of p2pd, among real p2pd peers that share, come and go, and write native.json beside this file.

    python3 tests/measured/native.py [--minutes 60] [--peers 3]

Linux only. The question is whether Windows, which has no p2pd, could take part without a gateway. py-libp2p is installed into an
environment of its own on top of the development environment, because it needs an older protobuf.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import figures_file

LIBRARY = "libp2p==0.8.1"
ROUND_S, GUEST_S, REPORT_S = 3.0, 40.0, 60.0  # a round; the stay of a peer that comes and goes; between two reports
ADDRESS = "/ip4/127.0.0.1/tcp/"
DEVELOPMENT = figures_file.ROOT / ".venv"


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in ("native", "p2pd"):
        from waggle.network.transport.hivemind import transport

        if sys.argv[1] == "native":
            import native_host

            transport.open_network = native_host.open_native
        return asyncio.run(take_part(*sys.argv[1:4], float(sys.argv[4])))
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60.0, help="length of the soak")
    parser.add_argument("--peers", type=int, default=3, help="peers that stay; one more comes and goes")
    options = parser.parse_args()
    figures_file.require_clean_tree()
    with tempfile.TemporaryDirectory() as folder:
        reports = soak(Path(folder), options.minutes * 60, options.peers)
    figures_file.write(Path(__file__).resolve(), figures(reports, options.peers))
    return 0


def soak(folder: Path, seconds: float, peers: int) -> dict[str, list[dict[str, Any]]]:
    """The reports of the native node and of the peers that stay, minute by minute."""
    development = str(DEVELOPMENT / "bin/python")
    native = str(environment(folder / "venv"))
    seed = start(development, "-m", "waggle", "seed", "--home", str(folder / "seed"), "--set", "swarm.host=127.0.0.1")
    try:
        address = next(line.strip() for line in seed.stdout if line.startswith(ADDRESS))

        def member(python: str, kind: str, name: str, stays: float) -> subprocess.Popen[str]:
            return start(python, str(Path(__file__).resolve()), kind, str(folder / name), address, str(stays))

        members = {"native": member(native, "native", "native", seconds)}
        members |= {f"peer {i}": member(development, "p2pd", f"peer-{i}", seconds + GUEST_S) for i in range(peers)}
        deadline, number = time.monotonic() + seconds, 0
        while time.monotonic() < deadline - GUEST_S and members["native"].poll() is None:
            member(development, "p2pd", f"guest-{number}", GUEST_S).communicate()
            number += 1
        outputs = {name: process.communicate()[0] for name, process in members.items()}
    finally:
        seed.terminate()
        seed.wait()
    return {name: [json.loads(line) for line in output.splitlines() if line.startswith("{")] for name, output in outputs.items()}


def environment(folder: Path) -> Path:
    """Create an environment with the library; packages of the development environment come after its own. Returns its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    subprocess.check_call([python, "-m", "pip", "install", "--quiet", LIBRARY])
    (own_packages,) = folder.glob("lib/python*/site-packages")
    (development_packages,) = DEVELOPMENT.glob("lib/python*/site-packages")
    (own_packages / "development.pth").write_text(f"{development_packages}\n")
    return python


def start(*command: str) -> "subprocess.Popen[str]":
    ours = {**os.environ, "PYTHONPATH": str(figures_file.ROOT / "app")}
    return subprocess.Popen(command, env=ours, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


async def take_part(kind: str, home: str, seed: str, seconds: float) -> int:
    """Run one node: it shares random text each round, pulls groups of peers, and reports its costs once a minute."""
    import psutil

    from waggle.network.identity import keys
    from waggle.network.messages.events import GroupsArrived, NetworkEvent
    from waggle.network.messages.options import SwarmOptions
    from waggle.network.open_node import open_node
    from waggle.tasks.questions import epoch_at
    from waggle.tasks.shipped_swarms import first_swarm
    from waggle_lab.scaling.scale_real import CredulousVerifier, random_groups

    Path(home).mkdir()
    identity, charter, arrived = keys.load_or_create(Path(home) / "own.key"), first_swarm(), [0]

    def count_arrivals(news: NetworkEvent) -> None:
        arrived[0] += isinstance(news, GroupsArrived)

    options = SwarmOptions(host="127.0.0.1", tempo=ROUND_S, seeds=(seed,), patience=10.0)
    node = open_node(options, charter, identity, CredulousVerifier(), count_arrivals)
    await node.start()
    own_process, began, reported_at = psutil.Process(), time.monotonic(), 0.0
    for number in range(1_000_000):
        node.share(number, epoch_at(time.time()), random_groups(charter, identity, number), "starter")
        node.take(node.waiting())
        await asyncio.sleep(ROUND_S)
        is_over = time.monotonic() - began > seconds
        if is_over or (number > 2 and time.monotonic() - reported_at > REPORT_S):
            reported_at = time.monotonic()
            everything = [own_process, *own_process.children(recursive=True)]
            line = {
                "minutes": (time.monotonic() - began) / 60, "rounds": number + 1, "arrived": arrived[0],
                "memory_mb": sum(process.memory_info().rss for process in everything) / 1e6, "files": own_process.num_fds(),
                "cpu_s": sum(sum(process.cpu_times()[:2]) for process in everything),
            }  # fmt: skip
            sys.stdout.write(json.dumps(line | (await inside(node) if kind == "native" else {})) + "\n")
            sys.stdout.flush()
        if is_over:
            break
    await node.close()
    return 0


async def inside(node: Any) -> dict[str, Any]:
    import trio

    host = node.transport.network.daemon.p2p

    async def look() -> int:
        return trio.lowlevel.current_statistics().tasks_living

    return {"library_tasks": await host.in_trio(look), "calls": dict(host.counts), "faults": dict(host.faults)}


def figures(reports: dict[str, list[dict[str, Any]]], peers: int) -> dict[str, Any]:
    """The figures of the native node, and the means of the peers that stayed."""

    def summary(lines: list[dict[str, Any]]) -> dict[str, float]:
        first, last = lines[0], lines[-1]
        return {
            "records_a_round": round(last["arrived"] / last["rounds"], 2),
            "cpu_ms_a_round": round(1000 * last["cpu_s"] / last["rounds"]),
            "memory_mb_begin": round(first["memory_mb"], 1), "memory_mb_end": round(last["memory_mb"], 1),
            "files_begin": first["files"], "files_end": last["files"],
        }  # fmt: skip

    native, others = reports["native"], [summary(lines) for name, lines in reports.items() if name != "native"]
    return {
        "library": LIBRARY, "minutes": round(native[-1]["minutes"], 1), "peers_that_stay": peers, "native": summary(native),
        "p2pd": {name: round(sum(peer[name] for peer in others) / len(others), 2) for name in others[0]},
        "library_tasks_begin": native[0]["library_tasks"], "library_tasks_end": native[-1]["library_tasks"],
        "calls": native[-1]["calls"], "faults": native[-1]["faults"],
    }  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
