"""Unfinished runs of a study: each is saved while it is played, and continues at its last save.

    OUT/unfinished-KEY/t00000012/   run.json  trial.msgpack  log.safetensors  SHA256SUMS  node-0/  node-1/ ...

KEY is a hash of the run's key. A save is written under another name, flushed, then renamed. Only then is the one before it
removed: a kill at any moment leaves one of the two. It holds weights and moments of all nodes, so a run has one save at a time.
"""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec
from safetensors import SafetensorError

from waggle.core.errors import UNREADABLE, CheckpointError, LabError
from waggle.core.message import Figure, Message
from waggle.core.paths import flush
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of
from waggle.models.storage import checkpoint
from waggle.practice.results import Key
from waggle.practice.trial import ARRAYS, STATE, Trial

PREFIX, WRITING, HEADER = "unfinished-", ".writing", "run.json"


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What made a save. A run is played by one source from its first round to its last, or its numbers would be of none."""

    study: str  # SHA-256 of its description
    commit: str
    versions: dict[str, str]  # of libraries

    def differences(self, other: "Source") -> tuple[list[str], list[str]]:
        """What differs between two sources: how it is here, and how it is there."""
        pairs = [("another study", "this one")] if self.study != other.study else []
        pairs += [(f"commit {self.commit}", f"commit {other.commit}")] if self.commit != other.commit else []
        for name in sorted(self.versions.keys() | other.versions.keys()):
            here, there = (versions.get(name, "not there") for versions in (self.versions, other.versions))
            pairs += [(f"{name} {here}", f"{name} {there}")] if here != there else []
        return [here for here, _ in pairs], [there for _, there in pairs]


class SavedRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`run.json`."""

    key: Key
    source: Source
    rounds: int  # played before it was saved
    cpu_seconds: float


@dataclass(frozen=True)
class UnfinishedRuns:
    """The saves in the folder of a study, `source` of those that are made now."""

    study_folder: Path
    source: Source

    def require_continuable(self) -> None:
        """Raise LabError if another source made a save: its hours of work are nobody's to throw away unasked."""
        for folder in folders(self.study_folder):
            saved = _header(folder)
            theirs, ours = saved.source.differences(self.source) if saved else ([], [])
            if saved and theirs:
                raise LabError(
                    f"The unfinished run {title(saved.key)} was saved by {', '.join(theirs)}, not by {', '.join(ours)}.",
                    f"Go back to what it was saved by, or remove {folder} to begin it anew.",
                )

    def rounds(self) -> int:
        """The rounds that all saves have."""
        return sum(saved.rounds for folder in folders(self.study_folder) if (saved := _header(folder)))

    def rounds_of(self, key: Key) -> int:
        """The rounds that the save of a run has; 0 if there is none, or none that can be read."""
        saved = _header(self._folder(key))
        return saved.rounds if saved else 0

    def __contains__(self, key: Key) -> bool:
        return _newest(self._folder(key)) is not None

    def save(self, key: Key, trial: Trial, cpu_seconds: float) -> None:
        """Save a run between two ticks, and remove its save before. Raises CheckpointError; then that one stays."""
        folder = self._folder(key)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._save(folder, SavedRun(key=key, source=self.source, rounds=trial.tick, cpu_seconds=cpu_seconds), trial)
        except OSError as error:
            raise CheckpointError(fault_of(error).reason) from error
        finally:
            file_moves.remove_tree(folder / WRITING, ignore_errors=True)

    def _save(self, folder: Path, saved: SavedRun, trial: Trial) -> None:
        writing, older = folder / WRITING, _saves(folder)
        file_moves.remove_tree(writing, ignore_errors=True)
        needed, free = trial.bytes_to_save, shutil.disk_usage(folder).free
        if needed > free:  # before gigabytes are written in vain
            raise CheckpointError(
                Message("it takes %1 GB, and the disk has %2 GB free", Figure(needed / 1e9, 1), Figure(free / 1e9, 1))
            )
        writing.mkdir()
        trial.save(writing)
        (writing / HEADER).write_bytes(msgspec.json.format(msgspec.json.encode(saved)))
        checkpoint.seal(writing)
        file_moves.rename(writing, folder / f"t{saved.rounds:08d}")
        flush(folder)
        for save in older:
            file_moves.remove_tree(save, ignore_errors=True)

    def restore(self, key: Key, trial: Trial) -> float:
        """Let a new trial go on from the save of its run; return the seconds of computing before.

        Raises MemoryShort, and CheckpointError if the save is damaged; then the trial cannot be played any more.
        """
        newest = _newest(self._folder(key))
        if newest is None:
            raise CheckpointError("it is not there")
        try:
            if checkpoint.require_seal(newest) != {HEADER, STATE, ARRAYS}:
                raise CheckpointError("it is incomplete")
            saved = msgspec.json.decode((newest / HEADER).read_bytes(), type=SavedRun)
            if (saved.key, saved.source) != (key, self.source):
                raise CheckpointError("it belongs to another run")
            trial.restore(newest)
        except (OSError, KeyError, ValueError, SafetensorError) as error:
            raise CheckpointError(Message("it is incomplete: %1", error)) from error
        return saved.cpu_seconds

    def remove(self, key: Key) -> None:
        """Remove the save of a run that is finished or begins anew."""
        file_moves.remove_tree(self._folder(key), ignore_errors=True)

    def _folder(self, key: Key) -> Path:
        return self.study_folder / (PREFIX + hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:16])


def folders(study_folder: Path) -> list[Path]:
    """The folders of all unfinished runs of a study."""
    return sorted(study_folder.glob(f"{PREFIX}*"))


def title(key: Key) -> str:
    """How a person is told of a run."""
    return f"{key.configuration} ({key.setting}, rate {key.learning_rate:g}, seed {key.seed})"


def _saves(folder: Path) -> list[Path]:
    """Complete saves of a run, newest first: a kill may have left the one before."""
    return sorted(folder.glob("t" + 8 * "[0-9]"), reverse=True)


def _newest(folder: Path) -> Path | None:
    return next(iter(_saves(folder)), None)


def _header(folder: Path) -> SavedRun | None:
    """What the newest save of a run says of itself; None if that cannot be read, which `restore` reports."""
    newest = _newest(folder)
    try:
        return msgspec.json.decode((newest / HEADER).read_bytes(), type=SavedRun) if newest else None
    except (OSError, *UNREADABLE):
        return None
