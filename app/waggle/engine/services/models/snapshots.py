"""Snapshots of the model: loads it a second time with earlier weights, beside the round that is being played."""

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.message import NOTHING, Figure, Message
from waggle.core.settings import ComputerSettings
from waggle.core.system.machine import available_memory
from waggle.core.system.process_memory import resident_bytes
from waggle.engine.services.models.current_weights import NO_ROOM, CurrentWeights, CurrentWeightsError
from waggle.engine.storage import snapshot_archive
from waggle.engine.system.resource_limits import GB, memory_used
from waggle.models.backend import OpenedPolicy, open_policy, threads_for
from waggle.models.memory_fit import DeviceCapacity, Workload, answering_bytes, fast_precision, measure
from waggle.models.shared import generic_config
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.shared.weight_files import WEIGHTS
from waggle.models.storage import checkpoint
from waggle.models.storage.checkpoint import Arrays
from waggle.models.storage.hub_download import WORDS

MAX_WEIGHT_BYTES = 3_000_000_000  # of models that are loaded a second time
LOW_TEMPERATURE = 0.2  # shows what the model prefers to say


@dataclass(frozen=True)
class ModelSnapshot:
    """The model after so many rounds. `weights`: their file, or a copy in memory of those of now; None before any training."""

    rounds: int
    weights: Path | Arrays | None = None


@dataclass(frozen=True)
class Answering:
    """The snapshots that can answer, oldest first, and the mode in which all of them are opened.

    The last one is the model of now; `not_now` says why it is the newest saved one instead, empty if it is not.
    """

    snapshots: tuple[ModelSnapshot, ...]
    training: TrainingMode
    not_now: Message = NOTHING


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
    current: CurrentWeights | None = None  # None where no engine trains

    @property
    def threads(self) -> int:
        return threads_for(self.computer().threads)

    def saved(self) -> list[ModelSnapshot]:
        """The saved snapshots, oldest first: the base, then those in the archive, then the newest checkpoint."""
        pictures = snapshot_archive.archived_weights(self.home.model.checkpoints, self.home.model.snapshots)
        return [ModelSnapshot(0), *(ModelSnapshot(rounds, weights) for rounds, weights in pictures)]

    def rounds(self) -> list[int]:
        """The rounds of all snapshots, oldest first: of the base, of those in the archive, of the model of now."""
        newest = self.current.newest() if self.current else None
        saved = [snapshot.rounds for snapshot in self.saved()]
        if newest is None or newest.round <= saved[-1]:
            return saved
        archived = snapshot_archive.rounds(self.home.model.snapshots)  # the next checkpoint takes the newest one's place
        return [0, *archived, newest.round]

    def answering(self, models: int, answers: Workload) -> Answering:
        """What can answer now, if so many models are opened at once and each writes `answers`. Waits for at most the step in
        progress.

        Raises EngineError.
        """
        saved, rounds = self.saved(), self.rounds()
        if self.current is None or rounds[-1] == saved[-1].rounds:
            return Answering(tuple(saved), self.require_room(models, answers))
        earlier = [snapshot for snapshot in saved if snapshot.rounds in rounds]
        try:
            state, weights = self.current.copy()
            now = ModelSnapshot(state.round, weights)
            return Answering((*earlier, now), self.require_room(models, answers))
        except CurrentWeightsError as error:
            not_now = error.title
        except EngineError:
            self.pause_point()
            now, weights = ModelSnapshot(0), {}  # the copy took the room
            not_now = NO_ROOM
        return Answering(tuple(saved), self.require_room(models, answers), not_now)

    def foretold(self, models: int, answers: Workload) -> dict[TrainingMode, int]:
        """The bytes that so many copies of this model take together while each writes `answers`, by training mode."""
        model = generic_config.read_any(self.folder)
        machine = DeviceCapacity(0, {}, "MLX" if self.device == "mlx" else "torch", self.device)
        return {training: models * answering_bytes(model, machine, answers, training) for training in self.trainings}

    def require_room(self, models: int, answers: Workload) -> TrainingMode:
        """The training mode in which so many copies of this model fit into memory now, beside what the round will still take.

        Raises EngineError if none does.
        """
        weights = sum(path.stat().st_size for path in self.folder.glob("*.safetensors"))
        if weights > MAX_WEIGHT_BYTES:
            raise EngineError("This model is too large to be loaded a second time.", "Its answers are on the page Live.")
        coming = max(0, self.current.peak - resident_bytes(os.getpid())) if self.current else 0
        free, cap_gb = available_memory() - coming, self.computer().memory_gb
        allowed = cap_gb * GB - memory_used() - coming if cap_gb else math.inf
        needs = self.foretold(models, answers)
        for training, needed in needs.items():
            if needed <= min(free, allowed):
                return training
        if (least := min(needs.values())) > free:
            raise EngineError(
                Message(
                    "To load the model again takes %1 GB, and %2 GB of memory are free for it.",
                    Figure(least / GB, 1),
                    Figure(max(0, free) / GB, 1),
                ),
                "Close other programs, then try again.",
            )
        raise EngineError(
            Message(
                "To load the model again takes %1 GB, and %2 GB are free of the %3 GB of memory that you allow.",
                Figure(least / GB, 1),
                Figure(max(0, allowed) / GB, 1),
                f"{cap_gb:g}",
            ),
            "Let Waggle use more memory in Settings.",
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
            folder = self.folder
            if isinstance(weights, Path) and weights.name != checkpoint.ADAPTERS:
                folder = _model_with(self.folder, weights, Path(scratch))
            opened = open_policy(folder, device=self.device, threads=self.threads, training=training)
            if isinstance(weights, dict):
                opened.policy.restore(dict(weights), {}, snapshot.rounds)
            elif weights is not None and folder == self.folder:
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
