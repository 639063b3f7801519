"""Checkpoints: a policy's whole state on disk, written so that being killed at any moment loses nothing that was saved.

    rNNNNNNNN/  model.safetensors  moments.safetensors (Hugging Face names)  state.json  SHA256SUMS (last)

Weights are stored in the precision in which they are kept. Format 1 stored bfloat16 as fp32; it can still be read. With LoRA
(models/shared/lora.py), adapters.safetensors takes the place of model.safetensors: the base keeps its frozen weights. A value
head is stored with the moments, so that model.safetensors stays a plain transformers file.

A checkpoint is written to a temporary folder, flushed, then renamed. If its checksums do not match, it is renamed, never deleted.
"""

import contextlib
import errno
import hashlib
import math
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec
from msgspec.structs import replace
from numpy.typing import NDArray
from safetensors import SafetensorError

from waggle.core.errors import UNREADABLE, CheckpointError, MemoryShort, WaggleError
from waggle.core.message import Message, as_message
from waggle.core.paths import flush
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of
from waggle.models.shared import weight_files
from waggle.models.shared.training_mode import ADAPTED, Method, TrainingMode
from waggle.models.storage.identity import ModelIdentity, Stamp, stamp_of

FORMAT = 2  # the newest that this version reads; without bfloat16, checkpoints are written as 1, which older versions read
ADAPTERS, MOMENTS, STATE = "adapters.safetensors", "moments.safetensors", "state.json"
CHECKPOINTS_KEPT = 3
MEBIBYTE, PLACES = 1 << 20, 8  # parts of a weight file that are hashed to identify a model
NAME = re.compile(r"^r(\d{8})\Z")
SUMS = "SHA256SUMS"
UNSOUND = Message("Its answers are no numbers.")


def always() -> bool:
    """The default for what is not checked."""
    return True


class CheckpointState(msgspec.Struct, frozen=True, kw_only=True):
    """`state.json`. `round` is the next one to play; `base` names the training, after the files of the model that it began from.

    `identity` says which model it is; earlier versions did not (see ownership.py). `hub` is "owner/name commit" if that model
    came from the hub. New versions may add fields that older ones can ignore, so that going back is possible; other changes need
    a new format.
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
    learned: int = 0  # external groups that it was trained on
    mix: dict[str, float] = {}  # see QuestionMix
    identity: ModelIdentity | None = None
    library: str = ""  # whose names its arrays have, where the fast path did not train it: "transformers" or "mlx-lm"


class _FormatOnly(msgspec.Struct, frozen=True):
    """The field that a state of every format has."""

    format: int = 1


Arrays = dict[str, NDArray[Any]]

CRITIC = "critic."  # prefix of the value head's weights and moments


class SavablePolicy(Protocol):
    """A policy that can be saved. Its state is numpy arrays, so that each backend resumes from the other's."""

    @property
    def training(self) -> TrainingMode: ...

    @property
    def steps(self) -> int: ...

    def state(self) -> tuple[Arrays, Arrays]: ...

    def restore(self, weights: Arrays, moments: Arrays, steps: int) -> None: ...


@dataclass(frozen=True)
class DamagedState:
    """A checkpoint or journal that could not be read, and its new path."""

    folder: Path
    reason: Message


def base_of(model: Path) -> str:
    """A name for the training of a model that begins from these files, in hex. Raises ModelError and OSError.

    First a hash of its configuration, tokenizer, and the size and first mebibyte of each weight file; then a hash of mebibytes
    further on, because exports of one model may begin with the same bytes. Earlier versions knew a model by it, so that one byte
    in its configuration made another one.
    """
    words = model / "tokenizer.json"
    paths = (model / "config.json", *([words] if words.is_file() else ()), *weight_files.files_of(model))
    return _base_of(tuple(map(stamp_of, paths)))


@lru_cache
def _base_of(files: tuple[Stamp, ...]) -> str:
    """See `base_of`. Cached as long as the files stay as they are."""
    beginnings, further = hashlib.sha256(), hashlib.sha256()
    for path, size in ((Path(name), size) for name, size, _ in files):
        with path.open("rb") as file:
            beginnings.update(b"%s\0%d\0" % (path.name.encode(), size) + file.read(MEBIBYTE))
            for part in range(1, PLACES + 1):
                file.seek(max(0, size - MEBIBYTE) * part // PLACES)
                further.update(file.read(MEBIBYTE))
    return beginnings.hexdigest()[:16] + further.hexdigest()[:16]


def is_of(saved: CheckpointState, base: str) -> bool:
    """Whether a state belongs to a model. Version 0.1.0 stored only the first half of `base`."""
    return base.startswith(saved.base)


def save(root: Path, policy: SavablePolicy, saved: CheckpointState) -> int:
    """Write a checkpoint, remove all but the newest three, and return the bytes written. Raises CheckpointError."""
    temporary = root / f".writing-{os.getpid()}"
    try:
        return _save(root, temporary, policy, saved)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            Message("Round %1 could not be saved: %2.", saved.round, error),
            "The checkpoints before are kept. Make room on the disk.",
        ) from error
    finally:
        file_moves.remove_tree(temporary, ignore_errors=True)


def _save(root: Path, temporary: Path, policy: SavablePolicy, saved: CheckpointState) -> int:
    file_moves.remove_tree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    saved = replace(saved, method=policy.training.method, optimizer=policy.training.optimizer)
    weights, moments = policy.state()
    _make_room(root, sum(array.nbytes for array in (*weights.values(), *moments.values())))
    if any(map(weight_files.is_bits, weights.values())):
        saved = replace(saved, format=2)
    weight_files.save(weights, temporary / weights_file(saved))
    weight_files.save(moments, temporary / MOMENTS)
    (temporary / STATE).write_bytes(msgspec.json.format(msgspec.json.encode(saved)))
    seal(temporary)
    final = root / f"r{saved.round:08d}"
    file_moves.remove_tree(final, ignore_errors=True)  # can only be a checkpoint of the same round
    file_moves.rename(temporary, final)
    flush(root)
    for old in folders(root)[CHECKPOINTS_KEPT:]:
        file_moves.remove_tree(old, ignore_errors=True)
    return _bytes(final)


def seal(folder: Path) -> None:
    """Write the checksums of a folder's files, and flush all to the disk. Raises OSError."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    (folder / SUMS).write_text("".join(f"{_sum(folder / name)}  {name}\n" for name in names))
    for name in (*names, SUMS):
        flush(folder / name)
    flush(folder)


def require_seal(folder: Path) -> set[str]:
    """Check all checksums of a folder; return the names of its files. Raises CheckpointError, OSError and ValueError."""
    listed = [line.split("  ", 1) for line in (folder / SUMS).read_text().splitlines()]
    for expected, name in listed:
        if _sum(folder / Path(name).name) != expected:
            raise CheckpointError(Message("%1 was damaged.", name))
    return {name for _, name in listed}


def _make_room(root: Path, size: int) -> None:
    """Remove older checkpoints if the disk has no room for another. The newest stays until the new one is complete.

    Raises OSError if that would not suffice, before gigabytes are written in vain.
    """
    missing, older = size - shutil.disk_usage(root).free, folders(root)[1:]
    if missing > sum(map(_bytes, older)):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    while missing > 0:
        missing -= _bytes(older[-1])
        file_moves.remove_tree(older.pop(), ignore_errors=True)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def size(root: Path) -> int:
    """Bytes of the newest checkpoint; 0 if there is none."""
    return sum(map(_bytes, folders(root)[:1]))


def age(root: Path) -> float:
    """Seconds since the newest checkpoint was written; 0 if there is none, or if its time lies in the future."""
    return max(0.0, time.time() - max((folder.stat().st_mtime for folder in folders(root)[:1]), default=math.inf))


def oldest(root: Path) -> int:
    """The round of the oldest checkpoint; 0 if there is none."""
    return min((int(folder.name[1:]) for folder in folders(root)), default=0)


def rounds(root: Path) -> int:
    """The number of rounds before the newest checkpoint; 0 if there is none."""
    return next((int(path.name[1:]) for path in folders(root)), 0)


def load_newest(
    root: Path, policy: SavablePolicy, base: str, is_sound: Callable[[], bool] = always
) -> tuple[CheckpointState | None, list[DamagedState]]:
    """Restore the newest undamaged checkpoint after which the policy `is_sound`. The others are renamed and reported.

    Raises CheckpointError if the checkpoints belong to another model, or to a training mode that cannot continue from them; then
    they stay where they are. It raises the same if none is sound: the policy must be opened again then. If only the optimizer
    differs, it starts without moments.
    """
    aside: list[DamagedState] = []
    unsound = False
    for unfinished in root.glob(".writing-[0-9]*"):
        if not unfinished.name.startswith(f".writing-{os.getpid()}-"):  # those of this process may be in the making
            file_moves.remove_tree(unfinished, ignore_errors=True)
    for folder in folders(root):
        _require_understood(folder)
        try:
            saved = _verify(folder)
        except CheckpointError as error:
            aside.append(DamagedState(_set_aside(folder), error.title))
            continue
        _require_ours(folder, saved, base)
        _require_method(folder, saved.method, policy.training.method)
        _require_library(folder, saved.library, library_of(policy))
        try:
            policy.restore(*_arrays(folder, saved, policy.training.optimizer), saved.step)
        except MemoryShort:  # the checkpoint is not to blame
            raise
        except (WaggleError, KeyError, SafetensorError) as error:
            aside.append(
                DamagedState(_set_aside(folder), as_message(error.title if isinstance(error, WaggleError) else str(error)))
            )
            continue
        if unsound := not is_sound():
            aside.append(DamagedState(_set_aside(folder), UNSOUND))
            continue
        return saved, aside
    if unsound:
        raise CheckpointError(
            "The answers of all saved states are no numbers.", "They were set aside: start again to begin anew."
        )
    return None, aside


def load(folder: Path, policy: SavablePolicy) -> CheckpointState:
    """Restore this checkpoint. Raises CheckpointError if it is damaged."""
    saved = _verify(folder)
    policy.restore(*_arrays(folder, saved, policy.training.optimizer), saved.step)
    return saved


def arrays(folder: Path) -> tuple[Arrays, Arrays]:
    """The weights and moments of a checkpoint. Raises CheckpointError if it is damaged."""
    saved = _verify(folder)
    return _arrays(folder, saved, saved.optimizer)


def newest(root: Path, base: str) -> tuple[Path, CheckpointState]:
    """The newest undamaged checkpoint. Changes nothing on disk: an engine may be running. Raises CheckpointError."""
    for folder in folders(root):
        _require_understood(folder)
        try:
            saved = _verify(folder)
        except CheckpointError:  # the engine renames it at its next start, and reports it
            continue
        _require_ours(folder, saved, base)
        return folder, saved
    raise CheckpointError(Message("Nothing is saved in %1 yet.", root.parent), "Let Waggle finish a round first.")


def read_unverified(root: Path) -> CheckpointState | None:
    """The state of the newest checkpoint, without verification; None if there is none that can be read."""
    for folder in folders(root):
        with contextlib.suppress(OSError, *UNREADABLE):  # `load_newest` reports what is wrong with it
            return msgspec.json.decode((folder / STATE).read_bytes(), type=CheckpointState)
    return None


def commit_of(root: Path, name: str) -> str:
    """The commit of a hub model that was trained here, because its name alone means the newest; empty if none was."""
    saved = read_unverified(root)
    was, _, commit = saved.hub.rpartition(" ") if saved else ("", "", "")
    return commit if was == name else ""


def method_of(root: Path) -> Method | None:
    """The training method of the newest checkpoint, the default if nothing is chosen; None if there is none."""
    saved = read_unverified(root)
    return saved.method if saved else None


def _arrays(folder: Path, saved: CheckpointState, optimizer: str) -> tuple[Arrays, Arrays]:
    """Weights, and the moments of this optimizer: those of another would take twice the memory of the weights, in vain."""
    moments = weight_files.arrays_in(folder / MOMENTS)
    fitting = {
        name: moment for name, moment in moments.items() if saved.optimizer == optimizer or name.startswith(("steps", CRITIC))
    }
    return weight_files.load(folder / weights_file(saved)), {name: moment.read() for name, moment in fitting.items()}


def weights_in(folder: Path, saved: CheckpointState) -> Path:
    """The file of the weights, or of the adapters, of a checkpoint."""
    return folder / weights_file(saved)


def weights_file(saved: CheckpointState) -> str:
    """The name of the file with the trained weights."""
    return ADAPTERS if saved.method in ADAPTED else weight_files.WEIGHTS


def _require_method(folder: Path, saved: Method, expected: Method) -> None:
    """Raise CheckpointError if adapters would have to become whole weights, or the reverse."""
    if (saved in ADAPTED) != (expected in ADAPTED):
        raise CheckpointError(
            Message("The saved state in %1 was trained as %2, not as %3.", folder, saved, expected),
            Message('Set model.training = "%1" to go on from it, or begin anew in a folder of its own with --home.', saved),
        )


def library_of(policy: object) -> str:
    """The library that computes a policy, whose names its arrays have; empty for the fast path."""
    return str(getattr(policy, "library", ""))


def _require_library(folder: Path, saved: str, expected: str) -> None:
    """Raise CheckpointError for arrays with the names of another library. They stay: going back continues from them."""
    if saved != expected and saved and expected:
        raise CheckpointError(
            Message(
                "The saved state in %1 was trained by %2, which names its weights in another way than %3.",
                folder,
                saved,
                expected,
            ),
            "Set computer.device back to go on from it, or begin anew in a folder of its own with --home.",
        )


def _require_understood(folder: Path) -> None:
    """Raise CheckpointError for a newer format: it is not damaged, but this version cannot read it."""
    with contextlib.suppress(OSError, *UNREADABLE):  # `_verified` reports what is wrong with it
        if msgspec.json.decode((folder / STATE).read_bytes(), type=_FormatOnly).format > FORMAT:
            raise CheckpointError(
                Message("The saved state in %1 was written by a newer Waggle.", folder), "Update Waggle to go on from it."
            )


def _require_ours(folder: Path, saved: CheckpointState, base: str) -> None:
    """Raise CheckpointError for the state of another model."""
    if not is_of(saved, base):
        raise CheckpointError(
            Message("The saved state in %1 belongs to another model.", folder),
            "Set model.folder or model.name back, or give this model a folder of its own with --home.",
        )


def _verify(folder: Path) -> CheckpointState:
    """Check all checksums, then read state.json. Raises CheckpointError."""
    try:
        names = require_seal(folder)
        saved = msgspec.json.decode((folder / STATE).read_bytes(), type=CheckpointState)
    except (OSError, ValueError) as error:
        raise CheckpointError(Message("It is incomplete: %1.", error)) from error
    if {weights_file(saved), MOMENTS, STATE} - names:
        raise CheckpointError("It is incomplete.")
    return saved


def folders(root: Path) -> list[Path]:
    """The folders of all checkpoints, newest first."""
    paths = [path for path in root.iterdir() if NAME.match(path.name)] if root.is_dir() else []
    return sorted(paths, reverse=True)


def _set_aside(folder: Path) -> Path:
    place = folder.with_name(f"damaged-{folder.name}")
    file_moves.remove_tree(place, ignore_errors=True)
    try:
        file_moves.rename(folder, place)
    except OSError as error:
        raise CheckpointError(
            Message("%1 is damaged and cannot be set aside: %2.", folder.name, fault_of(error).reason), fault_of(error).advice
        ) from error
    return place


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
