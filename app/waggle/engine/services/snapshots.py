"""Snapshots of the model: loaded a second time with earlier weights, so that the running round is not disturbed."""

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
from waggle.models.backend import Opened, open_policy, threads_for
from waggle.models.memory_fit import BYTES, fast_precision, measure
from waggle.models.shared import model_config
from waggle.models.shared.training_mode import Training
from waggle.models.shared.weight_files import WEIGHTS
from waggle.models.storage import checkpoint
from waggle.models.storage.hub_download import WORDS

MAX_WEIGHT_BYTES = 3_000_000_000  # bytes of weights that are loaded a second time
COPIES_WHILE_LOADING = 2  # weights that are made ready for answering stand beside those that were loaded
LOW_TEMPERATURE = 0.2  # the temperature: what it would rather say


@dataclass(frozen=True)
class ModelSnapshot:
    """After so many rounds. `weights` are those of then, None before any training."""

    rounds: int
    weights: Path | None = None


def never() -> bool:
    """The default for `is_leaving`: no engine is there to leave."""
    return False


@dataclass(frozen=True)
class Snapshots:
    """`folder` is the model that training began from. Whatever is asked of it ends when the engine is `leaving`.

    It is loaded in the first of the `trainings` for which there is room, on as many cores as `computer` lets it then.
    """

    home: paths.Home
    folder: Path
    device: str
    computer: Callable[[], ComputerSettings] = ComputerSettings
    trainings: tuple[Training, ...] = (Training(),)
    leaving: Callable[[], bool] = never

    @property
    def threads(self) -> int:
        return threads_for(self.computer().threads)

    def available(self) -> list[ModelSnapshot]:
        """Oldest first: before any training, then all whose weights are kept."""
        pictures = snapshot_archive.archived_weights(self.home.model.checkpoints, self.home.model.snapshots)
        return [ModelSnapshot(0), *(ModelSnapshot(rounds, weights) for rounds, weights in pictures)]

    def require_room(self, models: int) -> Training:
        """How so many more of this model can be loaded now. Raises EngineError where they cannot."""
        weights = sum(path.stat().st_size for path in self.folder.glob("*.safetensors"))
        if weights > MAX_WEIGHT_BYTES:
            raise EngineError("This model is too large to be loaded a second time.", "Its answers are on the page Live.")
        numbers = sum(math.prod(shape) for shape in model_config.read(self.folder).weights().values())
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

    def on_the_processor(self) -> "Snapshots":
        """In fp32, of what is trained on another device in bfloat16, where that is slow here and while memory allows it."""
        (training,) = self.trainings
        if training.precision == "float32":
            return self
        if fast_precision(model_config.read(self.folder), measure("torch", "cpu", self.threads)) == "bfloat16":
            return self
        return replace(self, trainings=(replace(training, precision="float32"), training))

    @contextmanager
    def opened(self, moment: ModelSnapshot, training: Training) -> Iterator[Opened]:
        """The model as it was then, loaded as `require_room` said; to be used in this thread.

        Raises ModelError and CheckpointError.
        """
        weights = moment.weights
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
        """Raise EngineError when the engine leaves: nobody waits for an answer then."""
        if self.leaving():
            raise EngineError("The engine is ending.", "Ask again when it runs.")


def _model_with(base: Path, weights: Path, folder: Path) -> Path:
    """A model folder with these weights and the base's words."""
    for name in WORDS:
        if (base / name).is_file():
            _place(base / name, folder / name)
    _place(weights, folder / WEIGHTS)
    return folder


def _place(source: Path, place: Path) -> None:
    """The same file there: linked where this system lets a program do so, which Windows seldom does, else copied.

    A second name of a checkpoint outlives it: it may be dropped before it has been read.
    """
    for link in (os.link, os.symlink):
        with suppress(OSError):
            link(source.resolve(), place)
            return
    shutil.copyfile(source, place)
