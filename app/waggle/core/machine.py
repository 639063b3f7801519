"""The cores and the memory that this process may use, which a container or an affinity mask may keep below the computer's.

On Linux the limits of control groups count: https://docs.kernel.org/admin-guide/cgroup-v2.html, and the memory controller of
version 1. Other systems set no such limits.
"""

import math
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from waggle.core.os_faults import fault_of

CGROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def usable_cores() -> int:
    """How many cores this process may use at once; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = min((_cores_of(folder) for folder in _groups("cpu")), default=math.inf)
    return max(1, min(cores, math.ceil(quota) if math.isfinite(quota) else cores))


def available_memory() -> int:
    """The bytes of memory that this process may still take."""
    free = min((_free_in(folder) for folder in _groups("memory")), default=math.inf)
    available = int(psutil.virtual_memory().available)
    return max(0, int(min(available, free)))


def total_memory() -> int:
    """The bytes of memory that this process may have, together with all others that share its limit."""
    limit = min((_limit_of(folder) for folder in _groups("memory")), default=math.inf)
    return int(min(int(psutil.virtual_memory().total), limit))


def shared_memory_fault() -> str:
    """Why this process can share no locks with others, which hivemind does when it is imported; empty if it can.

    On Linux they are files in /dev/shm. A container may lack it, or have it for reading only; the error that Python raises
    then names no file.
    """
    try:
        multiprocessing.Lock()
    except OSError as error:
        return fault_of(error).reason
    return ""


def _groups(controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of all groups above it: each may set a limit."""
    try:
        lines = OWN.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        root = CGROUPS / controllers if controllers else CGROUPS
        folder = root / path.lstrip("/")
        yield from (place for place in (folder, *folder.parents) if place == root or root in place.parents)


def _cores_of(folder: Path) -> float:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):  # there is no such file, or it says "max"
        return math.inf


def _limit_of(folder: Path) -> float:
    return min(_number(folder / name) for name in ("memory.max", "memory.limit_in_bytes"))


def _free_in(folder: Path) -> float:
    """What a group leaves free. File caches count as free: the kernel drops them before it refuses memory."""
    used = min(_number(folder / name) for name in ("memory.current", "memory.usage_in_bytes"))
    if not math.isfinite(used):
        return math.inf
    return _limit_of(folder) - used + _cached(folder / "memory.stat")


def _cached(path: Path) -> int:
    try:
        numbers = dict(line.split() for line in path.read_text().splitlines())
        return int(numbers.get("total_inactive_file", numbers.get("inactive_file", "0")))
    except (OSError, ValueError):
        return 0


def _number(path: Path) -> float:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # there is no such file, or it says "max"
        return math.inf
