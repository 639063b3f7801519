"""Snapshots of the model: loads it a second time with earlier weights, beside the round that is being played."""

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.settings import ComputerSettings
from waggle.engine.storage import snapshot_archive
from waggle.engine.system.resource_limits import GB, memory_used
from waggle.models.backend import OpenedPolicy, open_policy, threads_for
from waggle.models.memory_fit import BYTES, fast_precision, measure
from waggle.models.shared import generic_config
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.shared.weight_files import WEIGHTS
from waggle.models.storage import checkpoint
from waggle.models.storage.hub_download import WORDS

MAX_WEIGHT_BYTES = 3_000_000_000  # of models that are loaded a second time
COPIES_WHILE_LOADING = 2  # the weights of the file, and their copy in the precision and layout for answering
LOW_TEMPERATURE = 0.2  # shows what the model prefers to say


@dataclass(frozen=True)
class ModelSnapshot:
    """The model after so many rounds. `weights` is None before any training."""

    rounds: int
    weights: Path | None = None


def _never() -> bool:
    """The default for `is_leaving`, where no engine runs."""
    return False


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of one model. `folder` has the base; answering ends once `is_leaving` returns true.

    A snapshot is opened in the first of the `trainings` that fits into memory, on as many cores as `computer` allows then.
    """

    home: paths.Home
    folder: Path
    device: str
    computer: Callable[[], ComputerSettings] = ComputerSettings
    trainings: tuple[TrainingMode, ...] = (TrainingMode(),)
    is_leaving: Callable[[], bool] = _never

    @property
    def threads(self) -> int:
        return threads_for(self.computer().threads)

    def available(self) -> list[ModelSnapshot]:
        """All snapshots, oldest first: the base, then those in the archive, then the newest checkpoint."""
        pictures = snapshot_archive.archived_weights(self.home.model.checkpoints, self.home.model.snapshots)
        return [ModelSnapshot(0), *(ModelSnapshot(rounds, weights) for rounds, weights in pictures)]

    def require_room(self, models: int) -> TrainingMode:
        """The training mode in which so many copies of this model fit into memory now. Raises EngineError if none does."""
        weights = sum(path.stat().st_size for path in self.folder.glob("*.safetensors"))
        if weights > MAX_WEIGHT_BYTES:
            raise EngineError("This model is too large to be loaded a second time.", "Its answers are on the page Live.")
        numbers = generic_config.read_any(self.folder).number_of_weights
        free, cap_gb = psutil.virtual_memory().available, self.computer().memory_gb
        allowed = cap_gb * GB - memory_used() if cap_gb else math.inf
        needs = {
            training: models * COPIES_WHILE_LOADING * BYTES[training.stored_precision] * numbers for training in self.trainings
        }
        for training, needed in needs.items():
            if needed <= min(free, allowed):
                return training
        if min(needs.values()) > free:
            raise EngineError("There is too little free memory to load the model again.", "Close other programs, then try again.")
        raise EngineError(
            f"To load the model again takes more than the {cap_gb:g} GB of memory that you allow.",
            "Allow more: computer.memory_gb.",
        )

    def on_cpu(self) -> "Snapshots":
        """The same for the CPU, in fp32 where bfloat16 is slow on this CPU and as long as memory allows."""
        (training,) = self.trainings
        if training.precision == "float32":
            return self
        if fast_precision(generic_config.read_any(self.folder), measure("torch", "cpu", self.threads)) == "bfloat16":
            return self
        return replace(self, trainings=(replace(training, precision="float32"), training))

    @contextmanager
    def open(self, snapshot: ModelSnapshot, training: TrainingMode) -> Iterator[OpenedPolicy]:
        """Open a snapshot in the training mode of `require_room`. Use it in this thread only.

        Raises ModelError and CheckpointError.
        """
        weights = snapshot.weights
        with tempfile.TemporaryDirectory(prefix="waggle-try-", ignore_cleanup_errors=True) as scratch:
            if weights is None or weights.name == checkpoint.ADAPTERS:
                folder = self.folder
            else:
                folder = _model_with(self.folder, weights, Path(scratch))
            opened = open_policy(folder, device=self.device, threads=self.threads, training=training)
            if weights is not None and folder == self.folder:
                checkpoint.load(weights.parent, opened.policy)
            yield opened

    def pause_point(self) -> None:
        """Raise EngineError if the engine is ending: nobody waits for an answer then."""
        if self.is_leaving():
            raise EngineError("The engine is ending.", "Ask again when it runs.")


def _model_with(base: Path, weights: Path, folder: Path) -> Path:
    """Make a model folder of these weights and of the base's configuration and tokenizer."""
    for name in WORDS:
        if (base / name).is_file():
            _link_or_copy(base / name, folder / name)
    _link_or_copy(weights, folder / WEIGHTS)
    return folder


def _link_or_copy(source: Path, place: Path) -> None:
    """Link a file to another place, or copy it where the system refuses links, as Windows usually does.

    The hard link matters: the checkpoint may be removed before its weights are read.
    """
    for link in (os.link, os.symlink):
        with suppress(OSError):
            link(source.resolve(), place)
            return
    shutil.copyfile(source, place)
