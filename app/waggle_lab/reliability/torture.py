"""`waggle-lab torture`: kills the parts of a live two-node run at random moments, and looks at what was lost each time.

A node whose engine we start and one whose engine a window starts train together over loopback. SIGKILL meets the engine, the
network process, the verifier and the window, also while they start. After each life every saved state is checked, and learned
again from the one before: it must come out the same to the bit. Each kill is a line of kills.jsonl, so a run can be gone on with.
"""

import argparse
import contextlib
import itertools
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import psutil
from msgspec.structs import replace

from waggle.core import paths
from waggle.core.errors import CheckpointError, LabError
from waggle.models.backend import open_policy
from waggle.models.storage import checkpoint, training_journal
from waggle.practice import json_lines_file
from waggle_lab.argument_types import real, whole
from waggle_lab.reliability import pause_stress
from waggle_lab.reliability.target_process import Victim, database_is_whole, recorded

TARGETS = ("engine", "p2pd", "verifier", "window")
WEIGHTS = (25, 34, 34, 7)  # the first and the last cost a whole start
ORPHANS_S = 60.0  # for children whose engine is dead to leave
SETTINGS = ("learning.held_out_questions=1", "computer.priority=normal", "computer.threads=1")


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """One kill and what came of it. Losses count from what the node had told before; the round in progress is not one."""

    target: str
    phase: str
    stage: str = ""
    rounds_lost: int = 0
    checkpoints_lost: int = 0
    databases_corrupted: int = 0
    identity_changed: bool = False
    orphans: int = 0
    replayed: int = 0  # saved states that were learned again
    bit_exact: bool = True


def add_arguments(made: argparse.ArgumentParser) -> None:
    made.add_argument("--out", type=Path, default=Path("torture"), metavar="FOLDER", help="where the nodes live and results go")
    made.add_argument("--kills", type=whole(0), default=200, help="in all, those of earlier runs in the folder included")
    made.add_argument("--minutes", type=real(0), default=120.0, help="stop killing after so long")
    made.add_argument(
        "--pauses",
        type=whole(0),
        default=600,
        help="to be measured, each stage of a round in its turn; those of earlier runs included",
    )
    made.add_argument(
        "--hours", type=real(0), default=8.0, help="worth of rounds in which memory is measured, without kills; 0: none"
    )
    made.add_argument("--seed", type=int, default=1)


def run(arguments: argparse.Namespace) -> int:
    """Kill, look, go on; 0 when nothing was lost."""
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with (out / "seed.log").open("ab") as log:
        seed = subprocess.Popen(
            [sys.executable, "-m", "waggle", "seed", "--home", str(out / "seed"), "--set", "swarm.host=127.0.0.1"],
            stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    try:
        swarm = ("swarm.host=127.0.0.1", f'swarm.seeds=["{_address(seed)}"]')
        if arguments.kills or arguments.pauses:
            _torture(arguments, out, (*swarm, *SETTINGS))
        if arguments.hours:
            pause_stress.write(out, replace(pause_stress.read(out), soak=pause_stress.soak(out, swarm, arguments.hours)))
    finally:
        seed.terminate()
        seed.wait()
    sys.stdout.write(json.dumps(summary(out), indent=2) + "\n")
    return 0 if all(map(lost_nothing, read_kills(out))) else 1


def _address(seed: "subprocess.Popen[bytes]") -> str:
    assert seed.stdout is not None
    for line in seed.stdout:
        for word in line.decode().split():
            if word.startswith("/ip4/127.0.0.1/tcp/"):
                return word
    raise LabError("The seed does not start.", "Look at seed.log.")


def _torture(arguments: argparse.Namespace, out: Path, settings: tuple[str, ...]) -> None:
    nodes = (Victim(out / "first", settings, windowed=False), Victim(out / "second", settings, windowed=True))
    with contextlib.ExitStack() as ends:  # somebody who presses Ctrl-C twice leaves none behind either
        for node in nodes:
            ends.callback(node.stop)
        _play(arguments, out, nodes)


def _play(arguments: argparse.Namespace, out: Path, nodes: tuple[Victim, Victim]) -> None:
    done = read_kills(out)
    noise = random.Random(f"{arguments.seed}/{len(done)}")
    for node in nodes:
        node.start()
    ends = time.monotonic() + 60 * arguments.minutes
    for node in nodes:
        node.wait_ready()
    while len(done) < arguments.kills and time.monotonic() < ends:
        (target,) = noise.choices(TARGETS, WEIGHTS)
        node = nodes[1] if target == "window" else nodes[0] if target == "engine" else noise.choice(nodes)
        time.sleep(noise.uniform(0.0, 6.0))
        kill = _kill(node, target, noise)
        if kill is not None:
            done.append(kill)
            json_lines_file.append(out / "kills.jsonl", kill)
            sys.stdout.write(f"{len(done)} {kill}\n")
            sys.stdout.flush()
    for node in nodes:
        node.wait_ready()
    before = pause_stress.read(out)
    pauses = pause_stress.pauses(nodes[0], len(before.pauses), arguments.pauses)
    pause_stress.write(out, replace(before, pauses=[*before.pauses, *pauses]))


def _kill(node: Victim, target: str, noise: random.Random) -> Kill | None:
    """Kill it, see to it that the node goes on, and look; None where there was nothing to kill."""
    before = node.seen()
    if target in ("p2pd", "verifier"):
        child = node.child(target)
        if child is None:
            return None
        child.kill()
        return Kill(target=target, phase=before.phase, stage=before.stage or "")
    key = node.home.identity.read_bytes() if node.home.identity.exists() else b""
    left = node.kill()
    orphans = psutil.wait_procs(left, ORPHANS_S)[1]
    for orphan in orphans:
        orphan.kill()
    before = recorded(node.home)  # everything it had told, also what it told last
    damaged = _set_aside(node.home)
    whole = database_is_whole(node.home)
    replayed, exact = learned_again(node.home)
    round_ = _resumes_at(node, noise)
    fresh = [name for name, _ in _set_aside(node.home) - damaged]
    said = before.rounds[-1].round + 1 if before.rounds else 0
    return Kill(
        target=target,
        phase=before.phase,
        stage=before.stage or "",
        rounds_lost=max(0, said - round_),
        checkpoints_lost=max(0, (before.saved_round or 0) - round_) + sum(name.startswith("damaged-") for name in fresh),
        databases_corrupted=int(
            not whole or any(name.endswith(".damaged") for name in fresh) or not database_is_whole(node.home)
        ),
        identity_changed=bool(key) and node.home.identity.read_bytes() != key,
        orphans=len(orphans),
        replayed=replayed,
        bit_exact=exact,
    )


def _resumes_at(node: Victim, noise: random.Random) -> int:
    """Start it again, now and then killing it while it starts; the round it goes on with."""
    node.start()
    if noise.random() < 0.25:
        time.sleep(noise.uniform(0.0, 10.0))
        node.kill()
        node.start()
    round_ = node.wait_ready()
    while round_ is None:  # it ended before: the window gave up, or it was told to leave
        node.start()
        round_ = node.wait_ready()
    return round_


def _set_aside(home: paths.Home) -> set[tuple[str, int]]:
    """What an engine ever found damaged, by name and inode: what has the same name later is another one."""
    found = (*home.model.checkpoints.glob("damaged-r*"), *home.root.glob("history*.damaged"))
    return {(path.name, path.stat().st_ino) for path in found}


def learned_again(home: paths.Home) -> tuple[int, bool]:
    """How many saved states were learned again from the one before, and whether each came out the same to the bit."""
    try:
        return _learned_again(home, checkpoint.base_of(paths.starter()))
    except CheckpointError:  # one of them is not whole: that is lost, and counts
        return 0, False


def _learned_again(home: paths.Home, base: str) -> tuple[int, bool]:
    rounds = sorted(int(folder.name[1:]) for folder in home.model.checkpoints.glob("r[0-9]*"))
    count = 0
    for first, second in itertools.pairwise(rounds):
        policy = open_policy(paths.starter(), device="cpu", threads=1).policy
        checkpoint.load(home.model.checkpoints / f"r{first:08d}", policy)
        for entry in training_journal.entries(home.model.checkpoints, first, base):
            if entry.saved.round > second:
                break
            training_journal.learn_again(policy.step, entry)
            if entry.saved.round == second:
                count += 1
                if not _same(policy.state(), checkpoint.arrays(home.model.checkpoints / f"r{second:08d}")):
                    return count, False
    return count, True


def _same(mine: tuple[checkpoint.Arrays, checkpoint.Arrays], theirs: tuple[checkpoint.Arrays, checkpoint.Arrays]) -> bool:
    return all(
        one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
        for one, other in zip(mine, theirs, strict=True)
    )


def read_kills(out: Path) -> list[Kill]:
    return json_lines_file.read(out / "kills.jsonl", Kill, "a kill", "--out")


def summary(out: Path) -> dict[str, object]:
    """The figures of everything that was done in a folder."""
    kills = read_kills(out)
    figures: dict[str, object] = {}
    if kills:
        figures = {
            "kills": len(kills),
            "kills_by_target": {target: sum(kill.target == target for kill in kills) for target in TARGETS},
            "checkpoints_lost": sum(kill.checkpoints_lost for kill in kills),
            "rounds_lost_max": max(kill.rounds_lost for kill in kills),
            "databases_corrupted": sum(kill.databases_corrupted for kill in kills),
            "identities_changed": sum(kill.identity_changed for kill in kills),
            "orphans": sum(kill.orphans for kill in kills),
            "states_learned_again": sum(kill.replayed for kill in kills),
            "resume_bit_exact": all(kill.bit_exact for kill in kills),
        }
    return figures | pause_stress.summary(pause_stress.read(out))


def lost_nothing(kill: Kill) -> bool:
    lost = kill.rounds_lost, kill.checkpoints_lost, kill.databases_corrupted, kill.identity_changed
    return kill.bit_exact and not any(lost)
