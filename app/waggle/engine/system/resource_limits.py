"""Resource limits: priority, cores, share of time, traffic, disk and memory. All can change while the engine runs."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from waggle.core import paths
from waggle.core.settings import ComputerSettings
from waggle.core.system import file_moves
from waggle.core.system.process_memory import resident_bytes
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.models.backend import OpenedPolicy, threads_for, use_threads
from waggle.models.storage import checkpoint, hub_cache
from waggle.rl.batch import nothing

NICENESS = {"lowest": 19, "low": 10, "normal": 0}
GB = 1e9
SAVED_STATE_NAME = re.compile(r"(damaged-)?(journal-)?r\d{8}")


class ResourceLimits:
    """Applies the limits of the settings. `limit_traffic` takes bytes a second (None: no limit).

    `before_thread_change` is called before the number of threads changes.
    """

    def __init__(
        self,
        gate: PauseGate,
        opened: OpenedPolicy,
        limit_traffic: Callable[[float | None], None],
        before_thread_change: Callable[[], None] = nothing,
    ) -> None:
        self._gate, self._opened = gate, opened
        self._limit_traffic, self._before_thread_change = limit_traffic, before_thread_change
        self._threads = opened.threads
        self.computer: ComputerSettings | None = None

    def apply(self, computer: ComputerSettings) -> tuple[str, ...]:
        """Apply the settings after a change. All of them apply at once, so there is no name to return."""
        self.computer = computer
        self._gate.set_percent(share_of_time(computer, self._opened.device))
        self._limit_traffic(computer.traffic_kb * 1000.0 or None)
        return ()

    def before_round(self) -> None:
        """Apply the number of cores. Call it in the policy thread, the only one in which torch can change it."""
        if self.computer is None or self._opened.backend != "torch":
            return
        threads = threads_for(self.computer.threads)
        if threads != self._threads:
            self._before_thread_change()
            use_threads(threads)
            self._threads = threads


def share_of_time(computer: ComputerSettings, device: str) -> int:
    """The percentage of time that the device may work."""
    return computer.cpu_percent if device == "cpu" else computer.gpu_percent


def set_priority(priority: str) -> bool:
    """Give this process, its threads and its children a priority; return False if the system refuses to raise it again."""
    me = psutil.Process()
    done = [_set_niceness(process, priority) for process in (me, *me.children(recursive=True))]
    return all(done)


def _set_niceness(process: psutil.Process, priority: str) -> bool:
    try:
        if sys.platform == "win32":
            classes = {"lowest": psutil.IDLE_PRIORITY_CLASS, "low": psutil.BELOW_NORMAL_PRIORITY_CLASS}
            process.nice(classes.get(priority, psutil.NORMAL_PRIORITY_CLASS))
        else:
            for number in _threads(process):  # on Linux each thread has a priority of its own
                with suppress(ProcessLookupError):  # this thread has just ended; continue with the others
                    os.setpriority(os.PRIO_PROCESS, number, NICENESS[priority])
    except psutil.NoSuchProcess:
        return True
    except (psutil.AccessDenied, PermissionError):
        return False
    return True


def _threads(process: psutil.Process) -> list[int]:
    return [thread.id for thread in process.threads()] if sys.platform == "linux" else [process.pid]


def memory_used() -> float:
    """The bytes that this process and its children use."""
    me = psutil.Process()
    return float(sum(resident_bytes(process.pid) for process in (me, *me.children(recursive=True))))


@dataclass(frozen=True)
class Room:
    """What `make_room` did: the names of what it removed, and the bytes that stay if those are above the limit, else 0.

    `models` is how many of these were downloaded models.
    """

    removed: list[str]
    unmet: int = 0
    models: int = 0


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
