#!/usr/bin/env python3
"""Attack live nodes as a stranger would, and write network.json beside this file.

    python3 tests/measured/network.py [FIGURE ...]

Without names, everything is measured anew; with names, only these figures, and the others stay as they are in the file.
`measured_at` has the commit of each.
"""

import argparse
import asyncio
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import figures_file

SECONDS = 60.0  # of each attack
NAMES = 120  # made-up names that name a bystander
PYTHON = figures_file.ROOT / ".venv/bin/python"


def stranger_memory_mib() -> dict[str, object]:
    """Growth of one seed that one stranger causes: of its Python and p2pd together under the flood, else of its Python."""
    import network_memory

    grown = {"streams that declare 4 MiB": (round(float(flood()["growth_mib"]), 1), None)}
    grown |= {name: network_memory.growth_mib(name) for name in network_memory.ATTACKS}
    return {
        "largest": max(growth for growth, _ in grown.values()),
        "by_attack": {name: growth for name, (growth, _) in grown.items()},
        "still_after_2_s": {name: rest for name, (_, rest) in grown.items() if rest is not None},
    }


def downtime_under_flood_s() -> dict[str, float]:
    """What a witness sees of a seed while a stranger opens streams that declare 4 MiB and are silent then."""
    return {name: round(value, 2) for name, value in flood().items() if name != "growth_mib"}


def reflected_calls() -> int:
    """Calls for payloads at a bystander that made-up announcements name."""
    return asyncio.run(_reflected())


def name_grind_hours() -> dict[str, float]:
    """Expected hours until two cores have a key that is shown as a chosen peer is, with two words and a fingerprint."""
    import network_memory

    return network_memory.name_grind_hours()


def gates() -> dict[str, object]:
    """The gates of a transport over iroh, which transport_gates.py measures."""
    measured = json.loads(Path(__file__).with_name("transport_gates.json").read_text())["figures"]["gates"]
    return {
        gate["name"]: {"figure": _single_figures(gate["figure"])} | {name: gate[name] for name in ("bar", "passed", "why")}
        for gate in measured
    }


def _single_figures(figure: dict[str, Any]) -> dict[str, object]:
    """The numbers and words of a gate's figure and of its parts; what was measured many times stays in transport_gates.json."""
    single: dict[str, object] = {}
    for name, value in figure.items():
        if isinstance(value, dict):
            single |= {f"{name}.{part}": each for part, each in value.items() if isinstance(each, int | float | str)}
        elif isinstance(value, int | float | str):
            single[name] = value
    return single


def windows_member() -> dict[str, object]:
    """Rounds of a member on Windows' own Python until it has learned from a Linux node, and from how many of its groups.

    It joins through the gateway of that node, because p2pd has no Windows version. WAGGLE_WINDOWS_RIG names the folder of the rig
    in tests/windows, which needs root.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        test = ("tests/windows/test_windows.py", "-k", "linux_node", "-p", "no:cacheprovider", "--figures", str(file))
        subprocess.check_call([sys.executable, "-m", "pytest", "-m", "windows", *test], cwd=figures_file.ROOT)
        figures = json.loads(file.read_text())
    return {"by": "gateway", **{name: figures[name] for name in ("windows_rounds", "windows_groups_used")}}


FIGURES: dict[str, Callable[[], object]] = {
    "stranger_memory_mib": stranger_memory_mib,
    "downtime_under_flood_s": downtime_under_flood_s,
    "reflected_calls": reflected_calls,
    "name_grind_hours": name_grind_hours,
    "gates": gates,
    "windows_member": windows_member,
}


@functools.cache
def flood() -> dict[str, float]:
    """One flood of a fresh seed, seen by a witness."""
    return asyncio.run(_flood())


async def _flood() -> dict[str, float]:
    import psutil

    from waggle_lab.security.witness import watched

    with tempfile.TemporaryDirectory() as folder, seed(Path(folder) / "seed") as (process, address):
        pids = [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]
        async with watched(pids, address, Path(folder)) as witness:
            streams = await attack("declare", address)
        restarts = [pid for pid in pids if not psutil.pid_exists(pid)]
    return {
        "seconds": SECONDS, "streams": streams, "answers": witness.answers, "lost_answers": witness.lost,
        "slowest_answer_s": witness.slowest_s, "downtime_s": witness.downtime_s, "restarts": len(restarts),
        "growth_mib": witness.growth_mib,
    }  # fmt: skip


async def attack(name: str, address: str) -> int:
    """Let a stranger make an attack (network_stranger.py) from a process of its own; returns the number that it prints."""
    script = Path(__file__).with_name("network_stranger.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), name, address, str(SECONDS), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    output, _ = await process.communicate()
    return int(output)


async def _reflected() -> int:
    from waggle.network.identity import keys
    from waggle.network.messages import consent
    from waggle.network.messages.options import SwarmOptions
    from waggle.network.open_node import open_node
    from waggle.tasks.sandbox.verifier import Verifier
    from waggle.tasks.shipped_swarms import first_swarm
    from waggle_lab.security.attacker import Attacker
    from waggle_lab.security.attacks import Payload
    from waggle_lab.security.bystander import Bystander
    from waggle_lab.security.false_directory import show_crowd

    with tempfile.TemporaryDirectory() as folder, seed(Path(folder) / "seed") as (_, address):

        def identity(name: str) -> keys.Identity:
            return keys.load_or_create(Path(folder) / f"{name}.key")

        charter, options = first_swarm(), SwarmOptions(host="127.0.0.1", seeds=(address,))
        verifier, bystander, attacker = (
            Verifier(charter),
            Bystander(identity("bystander")),
            Attacker(identity("attacker"), charter),
        )
        nodes = [open_node(options, charter, identity(name), verifier, lambda event: None) for name in ("first", "second")]
        await asyncio.gather(attacker.start(options), *(node.start() for node in nodes))
        own = consent.give(attacker.identity, charter.digest, attacker.identity.peer_id, time.time())
        changes: dict[str, Any] = {"via": (bystander.identity.peer_id,), "consents": (own,)}
        names = [identity(f"name {number}") for number in range(NAMES)]
        async with bystander.present(address):
            attacker.offer(Payload(b"nothing", changes=changes))
            await attacker.announce_crowd(names, **changes)
            show_crowd(attacker.network, charter.digest, names, changes)
            await asyncio.sleep(SECONDS)
        await asyncio.gather(attacker.close(), *(node.close() for node in nodes))
        verifier.close()
        return len(bystander.calls)


@contextmanager
def seed(home: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run a seed; yields its process and its address."""
    command = [sys.executable, "-m", "waggle", "seed", "--home", str(home), "--set", "swarm.host=127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process, next(line.strip() for line in process.stdout if line.startswith("/ip4/"))
    finally:
        process.terminate()
        process.wait()


def main() -> int:
    if Path(sys.prefix) != PYTHON.parents[1]:  # with the project's own libraries
        os.execve(
            PYTHON,
            [str(PYTHON), *sys.argv],
            {**os.environ, "PYTHONPATH": f"{figures_file.ROOT / 'app'}:{figures_file.ROOT / 'tests'}"},
        )
    parser = argparse.ArgumentParser()
    parser.add_argument("figures", nargs="*", help=f"which of {', '.join(FIGURES)}; all by default")
    chosen = parser.parse_args().figures or list(FIGURES)
    figures_file.require_clean_tree()
    script = Path(__file__).resolve()
    result = script.with_suffix(".json")
    before = json.loads(result.read_text())["figures"] if result.exists() else {}
    measured_at = before.pop("measured_at", {}) | dict.fromkeys(chosen, figures_file.source_commit())
    figures_file.write(script, before | {name: FIGURES[name]() for name in chosen} | {"measured_at": measured_at})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
