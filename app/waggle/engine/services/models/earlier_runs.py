"""The trainings of other models in this home, with their held-out scores: what Progress can show beside the present one."""

import logging
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.engine.runtime import model_source
from waggle.engine.storage.history import DAMAGED, read_scores
from waggle.engine.storage.runs import trained_models
from waggle.models.storage import checkpoint, ownership
from waggle.protocol.events import HeldOutScore, RunsRead, TrainingRun

log = logging.getLogger(__name__)
MOST_RUNS, MOST_SCORES = 12, 200  # in one answer: a few hundred kilobytes


def earlier_runs(home: paths.Home) -> RunsRead:
    """All trainings of this home that have scores, except the present one. Reads files; a damaged history is left out."""
    runs = [_read_run(place) for place in trained_models(home) if place.model_root != home.model_root]
    newest_first = sorted((run for run in runs if run is not None), key=lambda run: run.at, reverse=True)
    return RunsRead(runs=tuple(newest_first[:MOST_RUNS]))


def _read_run(home: paths.Home) -> TrainingRun | None:
    """The training of this model; None if it has no score."""
    try:
        scores, newest = read_scores(home.model.history)
    except DAMAGED as error:  # it is repaired when its model is trained again
        log.info("leave out the damaged history %s: %s", home.model.history, error)
        return None
    if not scores:
        return None
    model, is_starter = _name(home)
    return TrainingRun(
        model=model, is_starter=is_starter, rounds=newest.round + 1 if newest else 0, at=newest.at if newest else scores[-1].at,
        held_out=thinned(scores),
    )  # fmt: skip


def thinned(scores: Sequence[HeldOutScore]) -> tuple[HeldOutScore, ...]:
    """At most MOST_SCORES of them, evenly, always with the last one, and without what is counted by specialty."""
    step = -(-len(scores) // MOST_SCORES)
    evenly = list(scores[::-1][::step])[::-1]
    return tuple(replace(score, by_specialty={}) for score in evenly)


def _name(home: paths.Home) -> tuple[str, bool]:
    """The name of the model that was trained there, and whether it is the starter."""
    saved = checkpoint.read_unverified(home.model.checkpoints)
    if saved is not None and saved.hub:
        return saved.hub.rpartition(" ")[0], False
    if saved is not None and _is_of_starter(home.model.checkpoints):
        return "", True
    record = model_source.read_record(home)
    if record is not None and home.model_root is None:
        return record.name or Path(record.folder).name, not (record.name or record.folder)
    return "", False


def _is_of_starter(checkpoints: Path) -> bool:
    try:
        return any(ownership.is_training_of(checkpoints, model) for model in (paths.starter(), *paths.former_starters()))
    except (ModelError, OSError):  # a file that cannot be read says nothing about whose training this is
        return False
