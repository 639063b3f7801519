"""A worker process of a study: it plays one simulated swarm after another, on one core, and saves each while it plays."""

import atexit
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import torch

from waggle.core import paths
from waggle.core.errors import CheckpointError, LabError
from waggle.engine.runtime.form_choice import QUESTIONS as FORM_QUESTIONS
from waggle.models import memory_fit
from waggle.models.shared.configuration import model_config
from waggle.models.shared.training_mode import Precision, TrainingMode
from waggle.practice.results import Key, Run
from waggle.practice.trial import Setup, Trial
from waggle.sapo.form_trial import best_form, try_forms
from waggle.sapo.prompt_form import FORMS, PLAIN, PromptForm
from waggle.sapo.sharing import strategy
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.charter import Charter
from waggle.tasks.charter import read as read_charter
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.questions import Question
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.starter_model import setting_models
from waggle_lab.study import plan
from waggle_lab.study.plan import Part, Study
from waggle_lab.study.unfinished_runs import UnfinishedRuns, title

PROGRESS_EVERY = 5  # rounds
STARTER = "starter"
FORM_SEED = 0  # of the answers by which a form is chosen
PRECISIONS: dict[str, Precision] = {"cuda": "bfloat16"}  # as the app chooses there; elsewhere runs repeat to the bit in float32

_reports: Any = None  # a queue to the parent: numbers of rounds that were played, and sentences for the person
_stop: Any = None  # an event: save and stop after the tick that is under way
_tried_forms: dict[Path, PromptForm] = {}  # by model folder


class PreparedStudy(msgspec.Struct, frozen=True):
    """What all workers get: the model folders of each setting, and where unfinished runs are saved, and how often."""

    folders: dict[str, tuple[str, ...]]
    unfinished: UnfinishedRuns
    save_every: float  # seconds; 0: never


def prepare(study: Study, cache_folder: Path, unfinished: UnfinishedRuns, save_every: float) -> PreparedStudy:
    """Train the models that a study starts from, if necessary; raises LabError."""
    charter = charter_of(study.charter)
    folders = {part.setting: tuple(map(str, _folders(part, charter, study.nodes, cache_folder))) for part in study.parts}
    return PreparedStudy(folders, unfinished, save_every)


def _folders(part: Part, charter: Charter, count: int, cache_folder: Path) -> tuple[Path, ...]:
    if part.folders:
        return tuple(Path(part.folders[i % len(part.folders)]) for i in range(count))
    return setting_models.model_folders(part.models or part.setting, charter, count, cache_folder)


def start_worker(reports: Any, stop: Any) -> None:
    """Set up a worker process; it puts the rounds that it has played into `reports`.

    A worker ignores Ctrl-C, which reaches every process of a terminal: the parent handles it, and sets `stop`.
    """
    global _reports, _stop
    _reports, _stop = reports, stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    torch.set_num_threads(1)


def _exit_with_parent() -> None:
    """Exit when the parent is killed; otherwise workers would play on for hours."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def play(study: Study, key: Key, prepared: PreparedStudy) -> Run | None:
    """Play one run from its last save, or else its first round, to its last; None if it was stopped before."""
    charter = charter_of(study.charter)
    verifier = _verifier(study.charter)
    (part,) = [part for part in study.parts if part.setting == key.setting]
    setup = _setup(study, part, key, prepared.folders[key.setting], charter)
    trial, seconds_before = _begin(key, prepared.unfinished, lambda: Trial(key, setup, verifier))
    began, reported = time.process_time(), trial.tick

    def cpu_seconds() -> float:
        return seconds_before + time.process_time() - began

    saver = _Saver(key, prepared.unfinished, prepared.save_every)
    for number in trial.run():
        is_last = _stop is not None and _stop.is_set()
        if number % PROGRESS_EVERY == 0 or number == key.rounds or is_last:
            _report(number - reported)
            reported = number
        saver.save_if_due(trial, cpu_seconds(), now=is_last)
        if is_last:
            return None
    return trial.result(cpu_seconds(), prepared.unfinished.source.commit)


def _begin(key: Key, unfinished: UnfinishedRuns, new_trial: Callable[[], Trial]) -> tuple[Trial, float]:
    """A trial where its save ends, or at its first round, and the seconds of computing before."""
    trial = new_trial()
    if key not in unfinished:
        return trial, 0.0
    try:
        return trial, unfinished.restore(key, trial)
    except CheckpointError as error:
        _report(-unfinished.rounds_of(key))
        _report(f"The save of {title(key)} cannot be used: {str(error.title).rstrip('.')}. This run begins anew.")
        unfinished.remove(key)
    del trial  # two would need twice the memory
    return new_trial(), 0.0


class _Saver:
    """Saves one run every so many seconds, 0: never, and says so once if it cannot."""

    def __init__(self, key: Key, unfinished: UnfinishedRuns, every: float) -> None:
        self._key, self._unfinished, self._every = key, unfinished, every
        self._next_at, self._is_refused = time.monotonic() + every, False

    def save_if_due(self, trial: Trial, cpu_seconds: float, *, now: bool) -> None:
        """Save between two ticks if it is time, or `now`."""
        if not self._every or not (now or time.monotonic() >= self._next_at):
            return
        try:
            self._unfinished.save(self._key, trial, cpu_seconds)
            self._is_refused = False
        except CheckpointError as error:
            if not self._is_refused:
                rounds = self._unfinished.rounds_of(self._key)
                its_save = f"its save after round {rounds} stays" if rounds else "it has no save yet"
                reason = str(error.title).rstrip(".")
                _report(f"{title(self._key)} cannot be saved after round {trial.tick}: {reason}. It is played on; {its_save}.")
            self._is_refused = True
        self._next_at = time.monotonic() + self._every


def _report(report: int | str) -> None:
    if _reports is not None:
        _reports.put(report)


def _setup(study: Study, part: Part, key: Key, folders: tuple[str, ...], charter: Charter) -> Setup:
    configuration = plan.configuration(key.configuration)
    datasets = [specialty.dataset for specialty in charter.specialties]
    specialties_by_node = [
        tuple(datasets[(i + offset) % len(datasets)] for offset in range(part.specialties_per_node)) for i in range(study.nodes)
    ]
    methods = [part.methods[i % len(part.methods)] for i in range(study.nodes)]
    model_names = tuple(
        STARTER if folder == str(paths.starter()) else setting_models.model_name(Path(folder)) for folder in folders
    )
    models = [model_config.read(Path(folder)) for folder in folders]
    app_rates = [memory_fit.rate_for(model, method) for model, method in zip(models, methods, strict=True)]
    context = min(model.max_position_embeddings for model in models)
    rules = replace(configuration.rules(key.learning_rate), max_new=study.longest, context=context)
    return Setup(
        folders=tuple(map(Path, folders)),
        models=model_names,
        charter=charter,
        rules=rules.under(charter),
        sharing=strategy(configuration.strategy).make,
        most_questions=configuration.most_questions,
        held_out=_reserved(study.charter, key.split, study.held_out),
        final_held_out=_reserved(study.charter, key.split, study.final_held_out),
        measure_every=study.measure_every,
        weather=study.weather,
        specialties=tuple(specialties_by_node) if part.specialties_per_node else ((),),
        updates=configuration.update_rules,
        device=study.device,
        training=tuple(TrainingMode(method, precision=PRECISIONS.get(study.device, "float32")) for method in methods),
        rate_scales=tuple(rate / app_rates[0] for rate in app_rates),
        form=partial(_form, study, part, configuration.prompt_form),
    )


def _form(study: Study, part: Part, name: str, folder: Path, node: Node, rules: RoundSettings) -> PromptForm:
    """How a node's model is asked: a starter or a model of a setting plainly, others as `name` says or the app would choose."""
    if not part.folders or folder == paths.starter():
        return PLAIN
    if not name:
        return _tried_form(study, folder, node, rules)
    if FORMS[name].chat and not node.tokenizer.has_chat_template:
        raise LabError(f"{node.model} has no chat template, so it cannot be asked by {name}.", "Choose another prompt=.")
    return FORMS[name]


def _tried_form(study: Study, folder: Path, node: Node, rules: RoundSettings) -> PromptForm:
    """The form that the app would choose: the same in every run, whichever a worker plays first."""
    if folder not in _tried_forms:
        questions = _reserved(study.charter, "dev", max(1, FORM_QUESTIONS // len(node.charter.specialties)))
        _tried_forms[folder] = best_form(try_forms(replace(node, seed=FORM_SEED), rules, questions))
    return _tried_forms[folder]


@cache
def charter_of(file: str) -> Charter:
    """The charter in a file; without a file, the charter of the first swarm, which ships with Waggle."""
    return read_charter(paths.expand_user(Path(file))) if file else first_swarm()


@cache
def _verifier(charter: str) -> Verifier:
    home = paths.Home(paths.expand_user(Path(charter)).absolute().parent.parent)  # of a charter that Waggle stored
    opened = charter_of(charter)
    verifier = Verifier(opened, files=PieceStore(home.questions, opened).files())
    atexit.register(verifier.close)
    return verifier


@cache
def _reserved(charter: str, split: Any, count: int) -> tuple[Question, ...]:
    verifier = _verifier(charter)
    questions_by_dataset = {
        specialty.dataset: verifier.held_out(specialty.dataset, split, count) for specialty in charter_of(charter).specialties
    }
    if empty := next((dataset for dataset, questions in questions_by_dataset.items() if not questions), ""):
        raise LabError(f"{empty} has too few different questions to reserve any.", "Change its settings in the charter.")
    return tuple(question for questions in questions_by_dataset.values() for question in questions)
