"""`waggle-lab torture`: kill processes of two live nodes at random moments, and count what each kill loses.

Two nodes train together over loopback; we start the engine of one, a window starts the engine of the other. SIGKILL is sent to
engine, p2pd, verifier and window, also while they start. After each death of an engine, every checkpoint is verified and replayed
from the one before: the result must be equal bit by bit. Each kill is a line of kills.jsonl; a later run continues from there.
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
from waggle_lab.reliability.target_process import TargetProcess, database_is_whole, recorded_state

TARGETS = ("engine", "p2pd", "verifier", "window")
TARGET_WEIGHTS = (25, 34, 34, 7)  # the first and the last are rarer because each costs a whole start
ORPHAN_TIMEOUT_S = 60.0  # by when the children of a dead engine must have ended
SETTINGS = ("learning.held_out_questions=1", "computer.priority=normal", "computer.threads=1")


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """One kill and its losses, compared with what the node had reported; the round in progress does not count."""

    target: str
    phase: str
    stage: str = ""
    rounds_lost: int = 0
    checkpoints_lost: int = 0
    databases_corrupted: int = 0
    identity_changed: bool = False
    orphans: int = 0
    replayed: int = 0  # checkpoints that were replayed from the one before
    bit_exact: bool = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("torture"), metavar="FOLDER", help="folder for the nodes and the results"
    )
    parser.add_argument("--kills", type=whole(0), default=200, help="in total, including earlier runs in the folder")
    parser.add_argument("--minutes", type=real(0), default=120.0, help="stop killing after so long")
    parser.add_argument(
        "--pauses",
        type=whole(0),
        default=600,
        help="pauses to measure, including earlier runs; each stage of a round in turn",
    )
    parser.add_argument(
        "--hours", type=real(0), default=8.0, help="hours' worth of rounds without kills, to measure memory; 0: none"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random moments and targets")


def run(arguments: argparse.Namespace) -> int:
    """Kill, measure pauses, soak, and print the figures; the exit code is 0 if nothing was lost."""
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with (out / "seed.log").open("ab") as log:
        seed = subprocess.Popen(
            [sys.executable, "-m", "waggle", "seed", "--home", str(out / "seed"), "--set", "swarm.host=127.0.0.1"],
            stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    try:
        swarm = ("swarm.host=127.0.0.1", f'swarm.seeds=["{_address_of_seed(seed)}"]')
        if arguments.kills or arguments.pauses:
            _torture(arguments, out, (*swarm, *SETTINGS))
        if arguments.hours:
            pause_stress.write_results(
                out, replace(pause_stress.read_results(out), soak=pause_stress.soak(out, swarm, arguments.hours))
            )
    finally:
        seed.terminate()
        seed.wait()
    sys.stdout.write(json.dumps(summary(out), indent=2) + "\n")
    return 0 if all(map(lost_nothing, read_kills(out))) else 1


def _address_of_seed(seed: "subprocess.Popen[bytes]") -> str:
    assert seed.stdout is not None
    for line in seed.stdout:
        for word in line.decode().split():
            if word.startswith("/ip4/127.0.0.1/tcp/"):
                return word
    raise LabError("The seed does not start.", "Look at seed.log.")


def _torture(arguments: argparse.Namespace, out: Path, settings: tuple[str, ...]) -> None:
    nodes = (TargetProcess(out / "first", settings, windowed=False), TargetProcess(out / "second", settings, windowed=True))
    with contextlib.ExitStack() as exit_stack:  # stops both nodes even if Ctrl-C is pressed twice
        for node in nodes:
            exit_stack.callback(node.stop)
        _play(arguments, out, nodes)


def _play(arguments: argparse.Namespace, out: Path, nodes: tuple[TargetProcess, TargetProcess]) -> None:
    kills = read_kills(out)
    random_stream = random.Random(f"{arguments.seed}/{len(kills)}")
    for node in nodes:
        node.start()
    deadline = time.monotonic() + 60 * arguments.minutes
    for node in nodes:
        node.wait_until_ready()
    while len(kills) < arguments.kills and time.monotonic() < deadline:
        (target,) = random_stream.choices(TARGETS, TARGET_WEIGHTS)
        node = nodes[1] if target == "window" else nodes[0] if target == "engine" else random_stream.choice(nodes)
        time.sleep(random_stream.uniform(0.0, 6.0))
        kill = _kill(node, target, random_stream)
        if kill is not None:
            kills.append(kill)
            json_lines_file.append(out / "kills.jsonl", kill)
            sys.stdout.write(f"{len(kills)} {kill}\n")
            sys.stdout.flush()
    for node in nodes:
        node.wait_until_ready()
    before = pause_stress.read_results(out)
    pauses = pause_stress.measure_pauses(nodes[0], len(before.pauses), arguments.pauses)
    pause_stress.write_results(out, replace(before, pauses=[*before.pauses, *pauses]))


def _kill(node: TargetProcess, target: str, random_stream: random.Random) -> Kill | None:
    """Kill a process, restart the node if necessary, and count losses; None if the target was not alive."""
    reported_before = node.reported_state()
    if target in ("p2pd", "verifier"):
        child = node.child(target)
        if child is None:
            return None
        child.kill()
        return Kill(target=target, phase=reported_before.phase, stage=reported_before.stage or "")
    key = node.home.identity.read_bytes() if node.home.identity.exists() else b""
    children = node.kill()
    orphans = psutil.wait_procs(children, ORPHAN_TIMEOUT_S)[1]
    for orphan in orphans:
        orphan.kill()
    reported_before = recorded_state(node.home)  # including what it reported last
    damaged = _damaged_files(node.home)
    database_was_whole = database_is_whole(node.home)
    replayed, exact = check_replay(node.home)
    round_ = _restart(node, random_stream)
    newly_damaged = [name for name, _ in _damaged_files(node.home) - damaged]
    next_round = reported_before.rounds[-1].round + 1 if reported_before.rounds else 0
    return Kill(
        target=target,
        phase=reported_before.phase,
        stage=reported_before.stage or "",
        rounds_lost=max(0, next_round - round_),
        checkpoints_lost=max(0, (reported_before.saved_round or 0) - round_)
        + sum(name.startswith("damaged-") for name in newly_damaged),
        databases_corrupted=int(
            not database_was_whole or any(name.endswith(".damaged") for name in newly_damaged) or not database_is_whole(node.home)
        ),
        identity_changed=bool(key) and node.home.identity.read_bytes() != key,
        orphans=len(orphans),
        replayed=replayed,
        bit_exact=exact,
    )


def _restart(node: TargetProcess, random_stream: random.Random) -> int:
    """Start the node again, one time in four killing it while it starts; returns the round it continues with."""
    node.start()
    if random_stream.random() < 0.25:
        time.sleep(random_stream.uniform(0.0, 10.0))
        node.kill()
        node.start()
    round_ = node.wait_until_ready()
    while round_ is None:  # it ended while starting
        node.start()
        round_ = node.wait_until_ready()
    return round_


def _damaged_files(home: paths.Home) -> set[tuple[str, int]]:
    """Everything that engines have set aside as damaged, by name and inode, because a name can be reused."""
    damaged = (*home.model.checkpoints.glob("damaged-r*"), *home.root.glob("history*.damaged"))
    return {(path.name, path.stat().st_ino) for path in damaged}


def check_replay(home: paths.Home) -> tuple[int, bool]:
    """Replay each checkpoint from the one before; returns how many, and whether all are equal bit by bit."""
    try:
        return _replay(home, checkpoint.base_of(paths.starter()))
    except CheckpointError:  # a checkpoint that cannot be read is a loss
        return 0, False


def _replay(home: paths.Home, base: str) -> tuple[int, bool]:
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
                if not _are_equal(policy.state(), checkpoint.arrays(home.model.checkpoints / f"r{second:08d}")):
                    return count, False
    return count, True


def _are_equal(replayed: tuple[checkpoint.Arrays, checkpoint.Arrays], saved: tuple[checkpoint.Arrays, checkpoint.Arrays]) -> bool:
    return all(
        ours.keys() == expected.keys() and all(np.array_equal(ours[name], expected[name]) for name in ours)
        for ours, expected in zip(replayed, saved, strict=True)
    )


def read_kills(out: Path) -> list[Kill]:
    return json_lines_file.read(out / "kills.jsonl", Kill, "a kill", "--out")


def summary(out: Path) -> dict[str, object]:
    """The figures of all kills, pauses and soaks of a folder."""
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
    return figures | pause_stress.summary(pause_stress.read_results(out))


def lost_nothing(kill: Kill) -> bool:
    lost = kill.rounds_lost, kill.checkpoints_lost, kill.databases_corrupted, kill.identity_changed
    return kill.bit_exact and not any(lost)
