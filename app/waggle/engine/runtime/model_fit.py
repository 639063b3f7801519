"""Fits the chosen model to this computer, before it is downloaded and when it is opened; and `waggle fit`, which only says so."""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from waggle.core import hub_token, paths, settings
from waggle.core.errors import ModelError
from waggle.core.settings import Settings
from waggle.models import backend, memory_fit
from waggle.models.memory_fit import Fit, Machine, Work
from waggle.models.shared import model_config
from waggle.models.shared.model_config import Configuration
from waggle.models.shared.training_mode import Method
from waggle.models.storage import hub_download

STARTER_ANSWER_TOKENS = 24  # tokens: the longest answer to the starter's questions has 22
DEFAULT_ANSWER_TOKENS = 160  # of other models, who think before they answer


class _ConfigurationArrived(Exception):
    """The configuration has come: for a question about a model, no more is needed."""


def run(arguments: argparse.Namespace) -> int:
    """Say how a model could be trained here; downloads nothing but its configuration."""
    home = paths.home_in(arguments.home)
    chosen = settings.read(home.settings, tuple(arguments.set))
    folder = Path(os.path.expanduser(arguments.model)) if arguments.model else paths.starter()
    model = model_config.read(folder) if folder.is_dir() else _of_the_hub(arguments.model)
    sys.stdout.write(f"{fit_model(measure_machine(chosen), model, chosen).sentence}\n")
    return 0


def measure_machine(chosen: Settings) -> Machine:
    """What there is to train with and may be used, found by a short benchmark; in the thread that will use the device."""
    device = backend.choose(chosen.computer.device)
    machine = memory_fit.measure(device.backend, device.device, backend.threads_for(chosen.computer.threads))
    allowed = chosen.computer.memory_gb
    return replace(machine, free=min(machine.free, int(allowed * 1e9))) if allowed else machine


def fit_model(
    machine: Machine, model: Configuration, chosen: Settings, settled: Method | None = None, divided: Callable[[int], int] = int
) -> Fit:
    """How a model is trained there: as chosen, else as it was so far, else as fits. Raises ModelError where nothing fits.

    `divided` says into how many parts work is divided of which so many fit.
    """
    method, precision = chosen.model.training, chosen.model.precision
    if settled == "lean" and machine.backend == "MLX":  # which has no such way, and goes on with what it needs beside the weights
        settled = "full"

    def as_trained(method: Method | None) -> Fit:
        return memory_fit.choose(
            model, machine, _work(chosen, model), method=method, precision=None if precision == "auto" else precision
        )

    fit = as_trained(settled if method == "auto" else method)
    if method == "auto" and settled == "full" and not fit.fits and machine.backend != "MLX":
        leaner = as_trained("lean")  # which goes on from the same saved state: less is free than there was
        fit = leaner if leaner.fits else fit
    return replace(fit, training=replace(fit.training, parts=divided(fit.training.parts)))


def fit_sentence(machine: Machine, chosen: Settings, folder: Path) -> str:
    """Whether the model in a folder fits, in one sentence, and behind it how; empty where its configuration is not there."""
    try:
        model = model_config.read(folder)
    except ModelError:
        return ""
    try:
        return fit_model(machine, model, chosen).sentence
    except ModelError as error:
        return error.title


def require_fit(folder: Path, chosen: Settings) -> None:
    """Raise ModelError for a model that cannot be trained here, of which only the configuration is there."""
    fit_model(measure_machine(chosen), model_config.read(folder), chosen)


def answer_limit(chosen: Settings, model: Configuration) -> int:
    """Tokens an answer may have: half of what the model can read at a time is the question's."""
    limit = chosen.learning.max_new_tokens or (STARTER_ANSWER_TOKENS if memory_fit.is_small(model) else DEFAULT_ANSWER_TOKENS)
    return min(limit, max(1, model.max_position_embeddings // 2))


def learning_rate(chosen: Settings, model: Configuration, method: Method) -> float:
    return chosen.learning.learning_rate or memory_fit.rate_for(model, method)


def _work(chosen: Settings, model: Configuration) -> Work:
    learning = chosen.learning
    return Work(learning.questions, learning.local + learning.external, learning.group_size, answer_limit(chosen, model))


def _of_the_hub(name: str) -> Configuration:
    here = hub_download.model_of(name, paths.models())
    if here.folder.is_dir():
        return model_config.read(here.folder)
    configurations: list[Configuration] = []

    def enough(unfinished: Path) -> None:
        configurations.append(model_config.read(unfinished))
        raise _ConfigurationArrived

    try:
        hub_download.fetch(name, paths.models(), lambda _, __: None, warn=_warn, token=hub_token.stored, examine=enough)
    except _ConfigurationArrived:
        return configurations[0]
    raise ModelError(f"{name} has no configuration.", "Choose a complete transformers model.")


def _warn(what: str) -> None:
    sys.stderr.write(f"{what}\n")
