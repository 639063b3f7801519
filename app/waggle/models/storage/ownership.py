"""Whose training a folder of checkpoints is: that of the model with the same numbers and words, wherever its files lie.

Checkpoints say of which model they are. Those of earlier versions name it by `checkpoint.base_of` alone. `model.json` beside them
holds a person's answer when other numbers lay where the model was; it counts until the next checkpoint is written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from safetensors import SafetensorError

from waggle.core import paths
from waggle.core.errors import UNREADABLE, CheckpointError, ModelError
from waggle.core.message import Message
from waggle.models.shared import lora, weight_files
from waggle.models.shared.training_mode import ADAPTED
from waggle.models.shared.weight_files import StoredArray
from waggle.models.storage import checkpoint, identity
from waggle.models.storage.checkpoint import CheckpointState
from waggle.models.storage.identity import ModelIdentity

ANSWER = "model.json"


class OwnerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`model.json`: the model that this training belongs to, by a person's answer after the checkpoint of this `round`."""

    identity: ModelIdentity
    round: int


@dataclass(frozen=True)
class OtherModel:
    """A training of another model than the one that lies in its place now.

    `fits`: the training can continue with the files of that one. `is_whole`: all weights are saved, so that it would be the model
    of before that continues; else only adapters are, which would be added to the other numbers.
    """

    rounds: int
    fits: bool
    is_whole: bool


def is_training_of(checkpoints: Path, model: Path) -> bool:
    """Whether something was trained or is to be trained in this folder, and from that model. Raises ModelError."""
    saved, answer = checkpoint.read_unverified(checkpoints), _answer(checkpoints)
    if answer is not None and (saved.round if saved else 0) <= answer.round:
        return answer.identity.is_same_model(identity.read(model))
    if saved is None:
        return False
    if saved.identity is not None:
        return saved.identity.is_same_model(identity.read(model))
    return checkpoint.is_of(saved, checkpoint.base_of(model))


def other_model(checkpoints: Path, model: Path) -> OtherModel | None:
    """The training of another model, if this folder has one. Raises ModelError."""
    saved = checkpoint.read_unverified(checkpoints)
    if saved is None or is_training_of(checkpoints, model):
        return None
    return OtherModel(rounds=saved.round, fits=_fits(checkpoints, saved, model), is_whole=saved.method not in ADAPTED)


def base_of(checkpoints: Path, model: Path) -> str:
    """The `base` of this folder's checkpoints: it stays the same as long as the training lasts. Raises CheckpointError if they
    are another model's, and ModelError."""
    own, saved = checkpoint.base_of(model), checkpoint.read_unverified(checkpoints)
    if saved is None or checkpoint.is_of(saved, own):
        return own
    if not is_training_of(checkpoints, model):
        raise CheckpointError(
            Message("The saved state in %1 belongs to another model than the one in %2.", checkpoints, model),
            "Home asks what to do about it, and so does `waggle status`.",
        )
    return saved.base


def answer(checkpoints: Path, model: Path) -> Path:
    """Note that the training in this folder is that of the model from now on; returns the file. Raises ModelError and OSError."""
    saved = checkpoint.read_unverified(checkpoints)
    checkpoints.mkdir(parents=True, exist_ok=True, mode=0o700)
    content = OwnerAnswer(identity=identity.read(model), round=saved.round if saved else 0)
    paths.write_atomically(checkpoints / ANSWER, msgspec.json.encode(content))
    return checkpoints / ANSWER


def _answer(checkpoints: Path) -> OwnerAnswer | None:
    try:
        return msgspec.json.decode((checkpoints / ANSWER).read_bytes(), type=OwnerAnswer)
    except (OSError, *UNREADABLE):  # none, or a damaged one: then the checkpoints say whose they are, and a person may be asked
        return None


def _fits(checkpoints: Path, saved: CheckpointState, model: Path) -> bool:
    """Whether training can continue with another model's files: the same shapes, and no other words."""
    if saved.identity is not None:
        now = identity.read(model)
        return saved.identity.shapes == now.shapes and saved.identity.has_words_of(now)
    try:
        shapes = {name: array.shape for name, array in weight_files.arrays_by_name(model).items()}
        return all(shapes.get(name) == shape for name, shape in _weights_under(checkpoints, saved))
    except (OSError, ModelError, SafetensorError):  # a damaged checkpoint: nothing says that it fits
        return False


def _weights_under(checkpoints: Path, saved: CheckpointState) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names and shapes of the weights that a checkpoint of an earlier version needs."""
    arrays = weight_files.arrays_in(checkpoint.weights_in(checkpoints / f"r{saved.round:08d}", saved))
    if saved.method not in ADAPTED:
        yield from ((name, array.shape) for name, array in arrays.items())
        return
    for module in {name.rpartition(".lora_")[0] for name in arrays}:
        yield f"{module}.weight", _adapted_shape(module, arrays)


def _adapted_shape(module: str, adapters: Mapping[str, StoredArray]) -> tuple[int, ...]:
    """The shape (out, in) of the weight that a pair of adapters stands beside; empty if one of them is missing."""
    first, second = (adapters.get(name) for name in lora.names(module))
    return (second.shape[0], first.shape[1]) if first is not None and second is not None else ()
