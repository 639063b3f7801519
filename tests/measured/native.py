#!/usr/bin/env python3
"""A soak of py-libp2p in the place of p2pd, among real p2pd peers that share, come and go; writes native.json beside this file.

    python3 tests/measured/native.py [--minutes 60] [--peers 3]

Linux. It asks whether Windows, which has no p2pd, could take part by itself instead of through a gateway. py-libp2p comes into
an environment of its own, on top of the development environment's: it wants an older protobuf.
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

import keep

WANTED = "libp2p==0.8.1"
TEMPO_S, STAYS_S, TOLD_S = 3.0, 40.0, 60.0  # a round; how long a peer that comes and goes is there; between two looks
ADDRESS = "/ip4/127.0.0.1/tcp/"
DEVELOPMENT = keep.ROOT / ".venv"


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in ("native", "p2pd"):
        from waggle.network.transport.hivemind import transport

        if sys.argv[1] == "native":
            import native_host

            transport.open_network = native_host.open_native
        return asyncio.run(take_part(*sys.argv[1:4], float(sys.argv[4])))
    made = argparse.ArgumentParser()
    made.add_argument("--minutes", type=float, default=60.0)
    made.add_argument("--peers", type=int, default=3, help="that stay; one more comes and goes")
    chosen = made.parse_args()
    keep.require_clean()
    with tempfile.TemporaryDirectory() as folder:
        told = soak(Path(folder), chosen.minutes * 60, chosen.peers)
    keep.write(Path(__file__).resolve(), figures(told, chosen.peers))
    return 0


def soak(folder: Path, seconds: float, peers: int) -> dict[str, list[dict[str, Any]]]:
    """What the native node and the peers that stay told, minute by minute."""
    development = str(DEVELOPMENT / "bin/python")
    native = str(environment(folder / "venv"))
    seed = begun(development, "-m", "waggle", "seed", "--home", str(folder / "seed"), "--set", "swarm.host=127.0.0.1")
    try:
        address = next(line.strip() for line in seed.stdout if line.startswith(ADDRESS))

        def member(python: str, kind: str, name: str, stays: float) -> subprocess.Popen[str]:
            return begun(python, str(Path(__file__).resolve()), kind, str(folder / name), address, str(stays))

        members = {"native": member(native, "native", "native", seconds)}
        members |= {f"peer {i}": member(development, "p2pd", f"peer-{i}", seconds + STAYS_S) for i in range(peers)}
        ends, number = time.monotonic() + seconds, 0
        while time.monotonic() < ends - STAYS_S and members["native"].poll() is None:
            member(development, "p2pd", f"guest-{number}", STAYS_S).communicate()
            number += 1
        said = {name: one.communicate()[0] for name, one in members.items()}
    finally:
        seed.terminate()
        seed.wait()
    return {name: [json.loads(line) for line in words.splitlines() if line.startswith("{")] for name, words in said.items()}


def environment(folder: Path) -> Path:
    """Its own packages first, then those of the development environment."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    subprocess.check_call([python, "-m", "pip", "install", "--quiet", WANTED])
    (found,) = folder.glob("lib/python*/site-packages")
    (below,) = DEVELOPMENT.glob("lib/python*/site-packages")
    (found / "development.pth").write_text(f"{below}\n")
    return python


def begun(*command: str) -> "subprocess.Popen[str]":
    ours = {**os.environ, "PYTHONPATH": str(keep.ROOT / "app")}
    return subprocess.Popen(command, env=ours, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


async def take_part(kind: str, home: str, seed: str, seconds: float) -> int:
    """One node: shares random text each round, pulls what others share, and tells once a minute what that costs."""
    import psutil

    from waggle.network.identity import keys as identities
    from waggle.network.messages.events import GroupsArrived, NetworkEvent
    from waggle.network.messages.options import SwarmOptions
    from waggle.network.open_node import open_node
    from waggle.tasks.charter import first_swarm
    from waggle.tasks.questions import epoch_at
    from waggle_lab.scaling.scale_real import CredulousVerifier, random_groups

    Path(home).mkdir()
    own, charter, arrived = identities.load_or_create(Path(home) / "own.key"), first_swarm(), [0]

    def hear(news: NetworkEvent) -> None:
        arrived[0] += isinstance(news, GroupsArrived)

    chosen = SwarmOptions(host="127.0.0.1", tempo=TEMPO_S, seeds=(seed,), patience=10.0)
    node = open_node(chosen, charter, own, CredulousVerifier(), hear)
    await node.start()
    here, begun_at, told_at = psutil.Process(), time.monotonic(), 0.0
    for number in range(1_000_000):
        node.share(number, epoch_at(time.time()), random_groups(charter, own, number), "starter")
        node.take(node.waiting())
        await asyncio.sleep(TEMPO_S)
        over = time.monotonic() - begun_at > seconds
        if over or (number > 2 and time.monotonic() - told_at > TOLD_S):
            told_at = time.monotonic()
            everything = [here, *here.children(recursive=True)]
            line = {
                "minutes": (time.monotonic() - begun_at) / 60, "rounds": number + 1, "arrived": arrived[0],
                "memory_mb": sum(one.memory_info().rss for one in everything) / 1e6, "files": here.num_fds(),
                "cpu_s": sum(sum(one.cpu_times()[:2]) for one in everything),
            }  # fmt: skip
            sys.stdout.write(json.dumps(line | (await inside(node) if kind == "native" else {})) + "\n")
            sys.stdout.flush()
        if over:
            break
    await node.close()
    return 0


async def inside(node: Any) -> dict[str, Any]:
    import trio

    host = node._connection.network.daemon.p2p

    async def look() -> int:
        return trio.lowlevel.current_statistics().tasks_living

    return {"library_tasks": await host.in_trio(look), "calls": dict(host.counted), "faults": dict(host.faults)}


def figures(told: dict[str, list[dict[str, Any]]], peers: int) -> dict[str, Any]:
    """The native node beside the peers that stayed, in the means of those."""

    def of(lines: list[dict[str, Any]]) -> dict[str, float]:
        first, last = lines[0], lines[-1]
        return {
            "records_a_round": round(last["arrived"] / last["rounds"], 2),
            "cpu_ms_a_round": round(1000 * last["cpu_s"] / last["rounds"]),
            "memory_mb_begin": round(first["memory_mb"], 1), "memory_mb_end": round(last["memory_mb"], 1),
            "files_begin": first["files"], "files_end": last["files"],
        }  # fmt: skip

    native, others = told["native"], [of(lines) for name, lines in told.items() if name != "native"]
    return {
        "library": WANTED, "minutes": round(native[-1]["minutes"], 1), "peers_that_stay": peers, "native": of(native),
        "p2pd": {name: round(sum(one[name] for one in others) / len(others), 2) for name in others[0]},
        "library_tasks_begin": native[0]["library_tasks"], "library_tasks_end": native[-1]["library_tasks"],
        "calls": native[-1]["calls"], "faults": native[-1]["faults"],
    }  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
