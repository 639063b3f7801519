"""Checkpoints: a policy's whole state on disk, written so that a kill at any moment loses nothing that was saved.

    rNNNNNNNN/  model.safetensors  moments.safetensors (Hugging Face names)  state.json  SHA256SUMS (last)

Weights are stored in the precision in which they are kept. Format 1 widened bfloat16 to fp32; it can still be read. With LoRA
(models/shared/lora.py), adapters.safetensors takes the place of model.safetensors: the base keeps its frozen weights. A value
head is stored with the moments, so that model.safetensors stays a plain transformers file.

A checkpoint is written to a temporary folder, flushed, then renamed. One whose sums do not match is set aside, never deleted.
"""

import contextlib
import errno
import hashlib
import math
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec
from msgspec.structs import replace
from numpy.typing import NDArray
from safetensors import SafetensorError

from waggle.core.errors import UNREADABLE, CheckpointError, MemoryShort, WaggleError
from waggle.core.paths import flush
from waggle.models.shared import weight_files
from waggle.models.shared.training_mode import Method, TrainingMode

FORMAT = 2  # the newest that is understood; a checkpoint without bfloat16 is still written as 1, which older versions read
ADAPTERS, MOMENTS, STATE = "adapters.safetensors", "moments.safetensors", "state.json"
CHECKPOINTS_KEPT = 3
MEBIBYTE, PLACES = 1 << 20, 8  # of a weight file, by which models are told apart
NAME = re.compile(r"^r(\d{8})\Z")
SUMS = "SHA256SUMS"


class CheckpointState(msgspec.Struct, frozen=True, kw_only=True):
    """`state.json`. `round` is the next one to play; `base` identifies the model that training began from, and `hub` names it
    where it came from there: "owner/name commit".

    A newer version may add what an older one can do without, so that it can be gone back to; all else is another format.
    """

    format: Annotated[int, msgspec.Meta(ge=1)] = 1
    round: int
    step: int
    epoch: int
    charter: str
    base: str
    hub: str = ""
    method: Method = "full"
    optimizer: str = msgspec.field(default="adamw", name="optimiser")
    completions: int = 0
    learned: int = 0  # groups of peers that it was trained on


class _FormatOnly(msgspec.Struct, frozen=True):
    """What can be read of a state of any format, whatever else is in it."""

    format: int = 1


Arrays = dict[str, NDArray[Any]]


CRITIC = "critic."  # as the names of a value head's weights and moments begin


class SavablePolicy(Protocol):
    """What can be saved: a policy of any backend. A state is numpy arrays, so that each resumes from the other's."""

    @property
    def training(self) -> TrainingMode: ...

    @property
    def steps(self) -> int: ...

    def state(self) -> tuple[Arrays, Arrays]: ...

    def restore(self, weights: Arrays, moments: Arrays, steps: int) -> None: ...


@dataclass(frozen=True)
class DamagedState:
    """A checkpoint, or a journal, that could not be read, and where it lies now."""

    folder: Path
    reason: str


def base_of(model: Path) -> str:
    """A short name of the model that training begins from: a hash of its configuration, words, and each weight file's
    size and first mebibyte; then one of mebibytes further on: exports of one model begin alike. Raises ModelError, OSError."""
    beginnings, further = hashlib.sha256(), hashlib.sha256()
    for path in (model / "config.json", model / "tokenizer.json", *weight_files.files_of(model)):
        size = path.stat().st_size
        with path.open("rb") as file:
            beginnings.update(b"%s\0%d\0" % (path.name.encode(), size) + file.read(MEBIBYTE))
            for part in range(1, PLACES + 1):
                file.seek(max(0, size - MEBIBYTE) * part // PLACES)
                further.update(file.read(MEBIBYTE))
    return beginnings.hexdigest()[:16] + further.hexdigest()[:16]


def is_of(saved: CheckpointState, base: str) -> bool:
    """Whether a state belongs to a model; 0.1.0 named only the first half of it."""
    return base.startswith(saved.base)


def save(root: Path, policy: SavablePolicy, saved: CheckpointState) -> int:
    """Write a checkpoint and drop all but the newest three; the bytes written. Raises CheckpointError when the disk says no."""
    temporary = root / f".writing-{os.getpid()}"
    try:
        return _save(root, temporary, policy, saved)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"Round {saved.round - 1} could not be saved: {error}.", "The checkpoints before are kept. Make room on the disk."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _save(root: Path, temporary: Path, policy: SavablePolicy, saved: CheckpointState) -> int:
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    saved = replace(saved, method=policy.training.method, optimizer=policy.training.optimizer)
    weights, moments = policy.state()
    _make_room(root, sum(array.nbytes for array in (*weights.values(), *moments.values())))
    if any(map(weight_files.is_bits, weights.values())):
        saved = replace(saved, format=2)
    weight_files.save(weights, temporary / _weights_file(saved))
    weight_files.save(moments, temporary / MOMENTS)
    (temporary / STATE).write_bytes(msgspec.json.format(msgspec.json.encode(saved)))
    names = sorted(path.name for path in temporary.iterdir())
    (temporary / SUMS).write_text("".join(f"{_sum(temporary / name)}  {name}\n" for name in names))
    for name in (*names, SUMS):
        flush(temporary / name)
    flush(temporary)
    final = root / f"r{saved.round:08d}"
    shutil.rmtree(final, ignore_errors=True)  # only ever a twin of this very round
    os.rename(temporary, final)
    flush(root)
    for old in folders(root)[CHECKPOINTS_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return _bytes(final)


def _make_room(root: Path, size: int) -> None:
    """Drop older states where the disk has no room for another beside them; the newest stays until that is whole.

    Raises OSError where that would not do, before gigabytes are written in vain, again and again.
    """
    missing, older = size - shutil.disk_usage(root).free, folders(root)[1:]
    if missing > sum(map(_bytes, older)):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    while missing > 0:
        missing -= _bytes(older[-1])
        shutil.rmtree(older.pop(), ignore_errors=True)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def size(root: Path) -> int:
    """Bytes of the newest checkpoint; 0 where there is none."""
    return sum(map(_bytes, folders(root)[:1]))


def age(root: Path) -> float:
    """Seconds since the newest checkpoint was written, by this computer's clock; 0 where it says the future, or there is none."""
    return max(0.0, time.time() - max((folder.stat().st_mtime for folder in folders(root)[:1]), default=math.inf))


def oldest(root: Path) -> int:
    """The round of the oldest checkpoint that is kept; 0 where there is none."""
    return min((int(folder.name[1:]) for folder in folders(root)), default=0)


def rounds(root: Path) -> int:
    """The rounds that the newest checkpoint says were played; 0 where there is none."""
    return next((int(path.name[1:]) for path in folders(root)), 0)


def load_newest(root: Path, policy: SavablePolicy, base: str) -> tuple[CheckpointState | None, list[DamagedState]]:
    """Restore the newest checkpoint that is whole. One that is not is renamed and reported, and the one before is taken.

    Raises CheckpointError when the checkpoints belong to another model, or to another way of training it whose state cannot be
    gone on with; they stay where they are. If only the optimizer differs, its moments begin anew.
    """
    aside: list[DamagedState] = []
    for unfinished in root.glob(".writing-[0-9]*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    for folder in folders(root):
        _require_understood(folder)
        try:
            saved = _verified(folder)
        except CheckpointError as error:
            aside.append(DamagedState(_set_aside(folder), error.title))
            continue
        _require_ours(folder, saved, base)
        _require_method(folder, saved.method, policy.training.method)
        try:
            policy.restore(*_arrays(folder, saved, policy.training.optimizer), saved.step)
        except MemoryShort:  # which says nothing of the state
            raise
        except (WaggleError, KeyError, SafetensorError) as error:
            aside.append(DamagedState(_set_aside(folder), str(error)))
            continue
        return saved, aside
    return None, aside


def load(folder: Path, policy: SavablePolicy) -> CheckpointState:
    """Restore exactly this checkpoint; raises CheckpointError where it is not whole."""
    saved = _verified(folder)
    policy.restore(*_arrays(folder, saved, policy.training.optimizer), saved.step)
    return saved


def arrays(folder: Path) -> tuple[Arrays, Arrays]:
    """The weights and moments of a checkpoint that is whole; raises CheckpointError."""
    saved = _verified(folder)
    return _arrays(folder, saved, saved.optimizer)


def newest(root: Path, base: str) -> tuple[Path, CheckpointState]:
    """The newest checkpoint that is whole, read without touching anything: an engine may be at work. Raises CheckpointError."""
    for folder in folders(root):
        _require_understood(folder)
        try:
            saved = _verified(folder)
        except CheckpointError:  # the engine sets it aside when it starts, and says so
            continue
        _require_ours(folder, saved, base)
        return folder, saved
    raise CheckpointError(f"Nothing is saved in {root.parent} yet.", "Let Waggle finish a round first.")


def glanced(root: Path) -> CheckpointState | None:
    """What the newest checkpoint says of itself, and nobody has checked; None where there is none, or none that can be read."""
    for folder in folders(root):
        with contextlib.suppress(OSError, *UNREADABLE):  # `load_newest` says what is wrong with it
            return msgspec.json.decode((folder / STATE).read_bytes(), type=CheckpointState)
    return None


def commit_of(root: Path, name: str) -> str:
    """Of a model of the hub, that which was trained here: by its name alone the newest is meant. Empty where none was."""
    saved = glanced(root)
    was, _, commit = saved.hub.rpartition(" ") if saved else ("", "", "")
    return commit if was == name else ""


def method_of(root: Path) -> Method | None:
    """How the newest checkpoint was trained, for whoever has not chosen; None where there is none."""
    saved = glanced(root)
    return saved.method if saved else None


def _arrays(folder: Path, saved: CheckpointState, optimizer: str) -> tuple[Arrays, Arrays]:
    """With the moments that this optimiser goes on with. To read another one's would take twice as much as the weights do."""
    moments = weight_files.arrays_in(folder / MOMENTS)
    fitting = {
        name: moment for name, moment in moments.items() if saved.optimizer == optimizer or name.startswith(("steps", CRITIC))
    }
    return weight_files.load(folder / _weights_file(saved)), {name: moment.read() for name, moment in fitting.items()}


def _weights_file(saved: CheckpointState) -> str:
    return ADAPTERS if saved.method == "lora" else weight_files.WEIGHTS


def _require_method(folder: Path, saved: Method, expected: Method) -> None:
    """Raise CheckpointError where adapters would have to become whole weights, or the other way round."""
    if saved != expected and "lora" in (saved, expected):
        raise CheckpointError(
            f"The saved state in {folder} was trained as {saved}, not as {expected}.",
            f'Set model.training = "{saved}" to go on from it, or begin anew in a folder of its own with --home.',
        )


def _require_understood(folder: Path) -> None:
    """Raise CheckpointError for what a newer Waggle wrote: it may say anything there, and is not damaged."""
    with contextlib.suppress(OSError, *UNREADABLE):  # `_verified` says what is wrong with it
        if msgspec.json.decode((folder / STATE).read_bytes(), type=_FormatOnly).format > FORMAT:
            raise CheckpointError(
                f"The saved state in {folder} was written by a newer Waggle.", "Update Waggle to go on from it."
            )


def _require_ours(folder: Path, saved: CheckpointState, base: str) -> None:
    """Raise CheckpointError for what belongs to another model."""
    if not is_of(saved, base):
        raise CheckpointError(
            f"The saved state in {folder} belongs to another model.",
            "Set model.folder or model.name back, or give this model a folder of its own with --home.",
        )


def _verified(folder: Path) -> CheckpointState:
    """Check every sum, then read state.json; raises CheckpointError."""
    try:
        listed = [line.split("  ", 1) for line in (folder / SUMS).read_text().splitlines()]
        for expected, name in listed:
            if _sum(folder / Path(name).name) != expected:
                raise CheckpointError(f"{name} was damaged.")
        saved = msgspec.json.decode((folder / STATE).read_bytes(), type=CheckpointState)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"It is incomplete: {error}.") from error
    if {_weights_file(saved), MOMENTS, STATE} - {name for _, name in listed}:
        raise CheckpointError("It is incomplete.")
    return saved


def folders(root: Path) -> list[Path]:
    """Newest first."""
    paths = [path for path in root.iterdir() if NAME.match(path.name)] if root.is_dir() else []
    return sorted(paths, reverse=True)


def _set_aside(folder: Path) -> Path:
    place = folder.with_name(f"damaged-{folder.name}")
    shutil.rmtree(place, ignore_errors=True)
    try:
        os.rename(folder, place)
    except OSError as error:
        raise CheckpointError(
            f"{folder.name} is damaged and cannot be set aside: {error.strerror}.", "Close what uses it, or move it away."
        ) from error
    return place


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
