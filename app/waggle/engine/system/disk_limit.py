"""The limit of the disk: which saved states and models are removed where all of them take more than a person allows."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from waggle.core import paths
from waggle.core.message import Message, counted, in_turn
from waggle.core.settings import ComputerSettings
from waggle.core.system import file_moves
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.storage import snapshot_archive
from waggle.engine.system.resource_limits import GB
from waggle.models.storage import checkpoint, hub_cache
from waggle.protocol import events

SAVED_STATE_NAME = re.compile(r"(damaged-)?(journal-)?r\d{8}")


@dataclass(frozen=True)
class Room:
    """What `make_room` did: the names of what it removed, and the bytes that stay if those are above the limit, else 0.

    `models` is how many of these were downloaded models.
    """

    removed: list[str]
    unmet: int = 0
    models: int = 0


@dataclass
class DiskLimit:
    """Keeps to the limit of the disk after each checkpoint. `unmet`: the bytes that stayed, if more than the limit allows."""

    home: paths.Home
    computer: Callable[[], ComputerSettings]
    model: Path  # in use
    unmet: int = 0

    def make_room(self, publisher: EventPublisher) -> None:
        cap_gb = self.computer().disk_gb
        snapshot_archive.archive_newest(self.home.model.checkpoints, self.home.model.snapshots)
        try:
            room = make_room(self.home, cap_gb, self.model)
        except OSError:  # another program moves or removes files meanwhile: try again after the next checkpoint
            return
        self.unmet = room.unmet
        if room.removed:
            publisher.publish_soon(_removed(room, f"{cap_gb:g}"))


def _removed(room: Room, cap_gb: str) -> events.Warned:
    """What was removed for the limit of the disk, and whether it can be had again."""
    names = Message("Removed: %1.", ", ".join(room.removed))
    if not room.models:
        return events.Warned(
            title=Message("Waggle removed old saved states to stay under your limit of %1 GB.", cap_gb), advice=names, page="disk"
        )
    title = counted(
        room.models,
        "Waggle removed a downloaded model to stay under your limit of %1 GB.",
        "Waggle removed %n downloaded models to stay under your limit of %1 GB.",
        cap_gb,
    )
    remedy = counted(room.models, "You can download it again.", "You can download them again.")
    return events.Warned(title=title, advice=in_turn(names, remedy), page="disk")


def make_room(home: paths.Home, cap_gb: float, in_use: Path) -> Room:
    """Remove the oldest saved states and models until the rest fits into `cap_gb` (0: no limit).

    The newest saved state and the model in use stay.
    """
    removed: list[str] = []
    models = 0
    if in_use.is_relative_to(paths.models()):
        os.utime(in_use)  # `_dispensable` sorts models by their last use
    if not cap_gb:
        return Room(removed)
    hub_cache.sweep(paths.models())
    used = sum(map(_size, (*(path for folder in _states(home) for path in _own_entries(folder)), paths.models())))
    for path in _removable_files(home, in_use):
        if used <= cap_gb * GB:
            break
        size = _size(path)
        if _remove(path):
            used -= size
            removed.append(hub_cache.name_of(path))
            models += path.is_relative_to(paths.models())
    return Room(removed, used if used > cap_gb * GB else 0, models)


def _remove(path: Path) -> bool:
    """Return False if it cannot be removed: the engine of another home uses it, or Windows has its files open."""
    try:
        if path.is_relative_to(paths.models()):
            return hub_cache.drop(path) if hub_cache.is_unfinished(path) else hub_cache.remove(path)
        if path.is_file():
            file_moves.unlink(path)
    except OSError:
        return False
    file_moves.remove_tree(path, ignore_errors=True)
    return not path.exists()


def _removable_files(home: paths.Home, in_use: Path) -> Iterator[Path]:
    """What can be removed, the least useful first: damaged states, unfinished downloads and conversions, models by last use,
    older states."""
    states = _states(home)
    for folder in states:
        yield from (path for path in _own_entries(folder) if path.name.startswith("damaged-"))
    yield from hub_cache.unfinished_work(paths.models())
    others = [folder for folder in paths.models().glob("*/*") if folder != in_use and not folder.name.startswith(".")]
    yield from sorted(others, key=lambda folder: folder.stat().st_mtime)
    for folder in states:
        yield from reversed(checkpoint.folders(folder)[1:])


def _states(home: paths.Home) -> list[Path]:
    """The folders of saved states of every model that this home has trained, the current model's last."""
    every = [home.root / "checkpoints", *sorted(home.root.glob("models/*/checkpoints"))]
    return [folder for folder in every if folder != home.model.checkpoints] + [home.model.checkpoints]


def _own_entries(folder: Path) -> list[Path]:
    """Waggle's own entries of a folder of saved states. A person's files there do not count, and stay."""
    return sorted(path for path in folder.iterdir() if SAVED_STATE_NAME.fullmatch(path.name)) if folder.is_dir() else []


def _size(path: Path) -> int:
    return sum(file.lstat().st_size for file in (path, *path.rglob("*")) if file.is_file())
