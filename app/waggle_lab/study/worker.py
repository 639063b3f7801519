"""A worker of the laboratory: a process that plays one simulated swarm after another, on one core."""

import atexit
import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import torch

from waggle.core import paths
from waggle.core.errors import LabError
from waggle.models.shared import model_config as model_configuration
from waggle.practice.results import Key, Run
from waggle.practice.trial import Setup, Trial
from waggle.sapo.sharing import strategy
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab import provenance
from waggle_lab.starter_model import starters
from waggle_lab.study.plan import Part, Study, configuration

TELL_EVERY = 5  # rounds

_ticks: Any = None


class Ready(msgspec.Struct, frozen=True):
    """What is settled once before any worker starts: each setting's model folders, and the commit of the code that plays."""

    folders: dict[str, tuple[str, ...]]
    commit: str


def prepare(study: Study, cache_folder: Path) -> Ready:
    """Make the models that a study begins from; raises LabError."""
    charter = charter_of(study.charter)
    folders = {part.setting: tuple(map(str, _folders(part, charter, study.nodes, cache_folder))) for part in study.parts}
    return Ready(folders, provenance.commit())


def _folders(part: Part, charter: Charter, count: int, cache_folder: Path) -> tuple[Path, ...]:
    if part.folders:
        return tuple(Path(os.path.expanduser(part.folders[i % len(part.folders)])) for i in range(count))
    return starters.folders(part.models or part.setting, charter, count, cache_folder)


def begin(ticks: Any) -> None:
    """Called once in each worker. Ctrl-C reaches every process of a terminal; only the parent decides what it means."""
    global _ticks
    _ticks = ticks
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    torch.set_num_threads(1)


def _leave_with_the_parent() -> None:
    """A parent that was killed leaves nobody behind that would go on for hours."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def play(study: Study, key: Key, ready: Ready) -> Run:
    """Play one run from its first round to its last."""
    charter = charter_of(study.charter)
    verifier = _verifier(study.charter)
    (part,) = [part for part in study.parts if part.setting == key.setting]
    trial = Trial(key, _setup(study, part, key, ready.folders[key.setting], charter), verifier)
    began = time.process_time()
    for number in trial.run():
        if _ticks is not None and (number % TELL_EVERY == 0 or number == key.rounds):
            _ticks.put((number - 1) % TELL_EVERY + 1)
    return trial.result(time.process_time() - began, ready.commit)


def _setup(study: Study, part: Part, key: Key, folders: tuple[str, ...], charter: Charter) -> Setup:
    how = configuration(key.configuration)
    datasets = [specialty.dataset for specialty in charter.specialties]
    windows = [tuple(datasets[(i + k) % len(datasets)] for k in range(part.asked)) for i in range(study.nodes)]
    named = tuple("starter" if folder == str(paths.starter()) else starters.model_name(Path(folder)) for folder in folders)
    reach = min(model_configuration.read(Path(folder)).max_position_embeddings for folder in folders)
    rules = replace(how.rules(key.learning_rate), max_new=study.longest, context=reach)
    return Setup(
        folders=tuple(map(Path, folders)),
        models=named,
        charter=charter,
        rules=rules.under(charter),
        sharing=strategy(how.strategy).make,
        most_questions=how.most_questions,
        held_out=_reserved(study.charter, key.split, study.held_out),
        final_held_out=_reserved(study.charter, key.split, study.final_held_out),
        measure_every=study.measure_every,
        weather=study.weather,
        specialties=tuple(windows) if part.asked else ((),),
        updates=how.updates,
    )


@cache
def charter_of(file: str) -> Charter:
    """The charter of a file; without one, the swarm's that ships with Waggle."""
    return charters.read(Path(os.path.expanduser(file))) if file else charters.first_swarm()


@cache
def _verifier(charter: str) -> Verifier:
    verifier = Verifier(charter_of(charter))
    atexit.register(verifier.close)
    return verifier


@cache
def _reserved(charter: str, split: Any, count: int) -> tuple[Question, ...]:
    verifier = _verifier(charter)
    found = {one.dataset: verifier.held_out(one.dataset, split, count) for one in charter_of(charter).specialties}
    if none := next((dataset for dataset, questions in found.items() if not questions), ""):
        raise LabError(f"{none} has too few different questions to reserve any.", "Change its settings in the charter.")
    return tuple(question for questions in found.values() for question in questions)
