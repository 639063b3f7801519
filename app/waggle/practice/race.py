"""The race: two practice swarms play the same rounds side by side, one alone and one sharing, reported as JSON lines.

The page Try it shows it. It opens no network and stores nothing. Both swarms start from the starter model with the same random
numbers and learn from equally many groups. The same seed gives the same race. It runs at low priority.
"""

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil

from waggle.core import paths
from waggle.core.errors import LabError, MemoryShort, WaggleError
from waggle.core.message import Message
from waggle.core.text.round_number import round_number
from waggle.models.shared.apple_silicon import is_apple_silicon
from waggle.practice.results import Key
from waggle.practice.trial import Setup, Trial
from waggle.protocol.events_race import (
    LANES,
    Examined,
    FirstSolved,
    Lane,
    RaceBegan,
    RaceEvent,
    RaceFailed,
    RoundRaced,
    line,
)
from waggle.sapo.sharing.adaptive import Adaptive
from waggle.sapo.sharing.interface import SharingStrategy
from waggle.sapo.sharing.plain import Plain
from waggle.sapo.stages import RoundSettings
from waggle.tasks.questions import Question
from waggle.tasks.sandbox import windows_job
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

NODES, ROUNDS = 4, 80  # about two minutes of one core
RATE = 1e-3  # twice what a node uses for the starter: a race is short
EXAM = 24  # reserved questions of each specialty, for each node
NICENESS = 10


def run(rounds: int | None = None, nodes: int | None = None, *, seed: int | None = None, stdio: bool = False) -> int:
    """Play one race, with its events on stdout; returns the exit code. With `stdio` it exits when stdin ends.

    Raises WaggleError.
    """
    rounds, nodes = ROUNDS if rounds is None else rounds, NODES if nodes is None else nodes
    if min(nodes, rounds) < 1:
        raise LabError("A race has at least one node and one round.", "Raise --nodes or --rounds.")
    windows_job.end_children_with_this_process()
    write = _claim_stdout()
    if stdio:
        threading.Thread(target=_leave_with_stdin, daemon=True).start()
    seed = random.randrange(1 << 31) if seed is None else seed
    verifier = Verifier(first_swarm())
    try:
        for event in race(verifier, seed, nodes=nodes, rounds=rounds):
            try:
                write(line(event))
            except OSError:  # the watching window has closed
                break
            if isinstance(event, RaceBegan):
                lower_priority()  # the window was waiting for this first event
    except MemoryShort as error:
        problem = LabError(
            Message("There is too little free memory for the race."), Message("Close other programs, then race again.")
        )
        write(line(RaceFailed(title=problem.title, advice=problem.advice)))
        raise problem from error
    except WaggleError as error:
        write(line(RaceFailed(title=error.title, advice=error.advice)))
        raise
    finally:
        verifier.close()
    return 0


def _claim_stdout() -> Callable[[bytes], object]:
    """Keep stdout for events: all other output of this process goes to stderr from now on."""
    sys.stdout.flush()
    lines = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return lines.write


def lower_priority() -> None:
    """Lower the priority of this process and its children."""
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        with suppress(psutil.Error):  # its priority is lower already, or it has ended
            process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS if sys.platform == "win32" else NICENESS)


def _leave_with_stdin() -> None:
    """Exit when the watching process is gone. The verifier's child exits with this process."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def race(verifier: Verifier, seed: int, *, nodes: int = NODES, rounds: int = ROUNDS, exam: int = EXAM) -> Iterator[RaceEvent]:
    """Play both swarms, round by round, and yield what happened."""
    charter = first_swarm()
    titles = tuple(specialty.title for specialty in charter.specialties)
    reserved = tuple(
        question for specialty in charter.specialties for question in verifier.held_out(specialty.dataset, "dev", exam)
    )
    lanes = {lane: _trial(lane, verifier, reserved, seed, nodes, rounds) for lane in LANES}
    yield RaceBegan(rounds=rounds, racers=nodes, specialties=titles)
    began = time.monotonic()
    ticks = {lane: trial.run() for lane, trial in lanes.items()}
    for number in range(1, rounds + 1):
        known = {lane: len(trial.log.ahas) for lane, trial in lanes.items()}
        for tick in ticks.values():
            next(tick)
        alone, sharing = (trial.log.right(number - 1) for trial in lanes.values())
        yield RoundRaced(round=number, alone=alone, sharing=sharing, seconds=time.monotonic() - began)
        for lane, trial in lanes.items():
            yield from _new_first_successes(lane, trial, known[lane])
    for tick in ticks.values():
        for _ in tick:  # the last act of a trial is its exam
            pass
    (alone_right, total), (sharing_right, _) = (trial.log.score() for trial in lanes.values())
    yield Examined(alone=alone_right, sharing=sharing_right, total=total)


def _trial(lane: Lane, verifier: Verifier, reserved: tuple[Question, ...], seed: int, nodes: int, rounds: int) -> Trial:
    """Alone: eight own groups in a training set. Sharing: Waggle's default, four own ones and four external ones."""
    sharing: Callable[[], SharingStrategy] = Adaptive if lane == "sharing" else Plain
    usual = RoundSettings(learning_rate=RATE)
    groups = usual.local + usual.external
    rules = usual if lane == "sharing" else RoundSettings(local=groups, external=0, learning_rate=RATE)
    setup = Setup(
        folders=(paths.starter(),) * nodes, models=("starter",) * nodes, charter=first_swarm(), rules=rules, sharing=sharing,
        most_questions=0, held_out=(), final_held_out=reserved, measure_every=0,
        device="auto" if is_apple_silicon() else "cpu",
    )  # fmt: skip
    key = Key(setting="sparse", configuration=lane, seed=seed, learning_rate=RATE, rounds=rounds, split="dev")
    return Trial(key, setup, verifier)


def _new_first_successes(lane: Lane, trial: Trial, known: int) -> Iterator[FirstSolved]:
    datasets = [specialty.dataset for specialty in first_swarm().specialties]
    for aha in trial.log.ahas[known:]:
        yield FirstSolved(
            lane=lane, round=round_number(aha.round), racer=aha.node, specialty=datasets.index(aha.specialty),
            learned_from=None if aha.learned_from < 0 else aha.learned_from,
        )  # fmt: skip
