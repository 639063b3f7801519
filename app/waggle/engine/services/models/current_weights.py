"""The weights of this moment, for a person who asks: of the last finished round, whether or not a checkpoint has it.

Only the policy thread may touch the model, so it hands them out itself: between two steps, or where it waits.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from waggle.core.errors import EngineError, Stopped
from waggle.core.message import Message
from waggle.core.system import file_moves
from waggle.core.system.machine import available_memory
from waggle.core.system.os_faults import fault_of
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.models.shared import weight_files
from waggle.models.storage import checkpoint
from waggle.models.storage.checkpoint import Arrays, CheckpointState

MEMORY_SHARE = 0.5  # of the free memory that a copy of the weights may take
IN_BETWEEN = Message("Training stands still in a round that is not stored yet.")
NO_ROOM = Message("There is too little free memory to copy the weights of now.")
Result = TypeVar("Result")


class WeighedPolicy(Protocol):
    """A policy that tells its weights; see `BasePolicy.weights`."""

    @property
    def steps(self) -> int: ...

    def weights(self) -> Arrays: ...


class CurrentWeightsError(EngineError):
    """The weights of this moment cannot be handed out; the title says why. What is saved can be used instead."""


@dataclass(frozen=True)
class CurrentWeights:
    """Hands out the policy's weights. `newest` is the state of the last round that was stored, None before the first.

    `peak` is the memory that this process is foretold to take in a round; 0 if a graphics card takes it.
    """

    gate: PauseGate
    policy: WeighedPolicy
    newest: Callable[[], CheckpointState | None]
    peak: int = 0

    def copy(self) -> tuple[CheckpointState, Arrays]:
        """The state, and a copy of the weights in memory. Waits for the step in progress at most.

        Raises CurrentWeightsError, and EngineError if the engine ends.
        """
        return self._hand_out(_copy)

    @contextmanager
    def in_folder(self, root: Path) -> Iterator[tuple[Path, CheckpointState]]:
        """The weights as a file in a folder below `root`, named as in a checkpoint, without moments; removed in the end.

        A kill leaves a folder that the next start removes. Raises CurrentWeightsError, and EngineError if the engine ends.
        """
        try:
            folder = Path(tempfile.mkdtemp(prefix=f".writing-{os.getpid()}-", dir=root))
        except OSError as error:
            raise CurrentWeightsError(
                Message("The disk refused the weights of now: %1.", fault_of(error).reason), fault_of(error).advice
            ) from error
        try:
            yield folder, self._hand_out(lambda saved, weights: _write(saved, weights, folder))
        finally:
            file_moves.remove_tree(folder, ignore_errors=True)

    def _hand_out(self, receive: Callable[[CheckpointState, Arrays], Result]) -> Result:
        def hand_out() -> Result:
            saved = self.newest()
            if saved is None:
                raise CurrentWeightsError("Nothing is trained yet.")
            if not self._is_settled():
                raise CurrentWeightsError(IN_BETWEEN)
            return receive(saved, self.policy.weights())

        try:
            return self.gate.submit(hand_out, self._is_settled).result()
        except Stopped as error:
            raise EngineError("The engine is ending.", "Ask again when it runs.") from error

    def _is_settled(self) -> bool:
        """Whether the weights are those of a stored round, and not of one that is being learned."""
        saved = self.newest()
        return saved is None or saved.step == self.policy.steps


def _copy(saved: CheckpointState, weights: Arrays) -> tuple[CheckpointState, Arrays]:
    if sum(array.nbytes for array in weights.values()) > MEMORY_SHARE * available_memory():
        raise CurrentWeightsError(NO_ROOM)
    try:
        return saved, {name: array.copy() for name, array in weights.items()}
    except MemoryError as error:
        raise CurrentWeightsError(NO_ROOM) from error


def _write(saved: CheckpointState, weights: Arrays, folder: Path) -> CheckpointState:
    try:
        if sum(array.nbytes for array in weights.values()) > shutil.disk_usage(folder).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        weight_files.save(weights, folder / checkpoint.weights_file(saved))
    except OSError as error:
        raise CurrentWeightsError(
            Message("The disk refused the weights of now: %1.", fault_of(error).reason), fault_of(error).advice
        ) from error
    return saved
