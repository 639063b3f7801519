"""What this process may use of the computer, and what its surroundings lack: the one place that asks the system for it.

A container, a quota, `ulimit` or an affinity mask may keep cores and memory below the computer's; a container may have no HOME,
no user name and no working directory; a network disk may have no locks and no flush.

On Linux the limits of control groups count: https://docs.kernel.org/admin-guide/cgroup-v2.html, and the memory controller of
version 1. Other systems set no such limits.
"""

import getpass
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of

PROBE = ".doctor"  # of a home
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
    return max(0, int(min(available, free, _free_by_ulimit())))


def total_memory() -> int:
    """The bytes of memory that this process may have, together with all others that share its limit."""
    limit = min((_limit_of(folder) for folder in _groups("memory")), default=math.inf)
    return int(min(int(psutil.virtual_memory().total), limit, _ulimit()))


def shared_memory_fault() -> str:
    """Why this process can share no locks with others, which hivemind does when it is imported; empty if it can.

    On Linux they are files in /dev/shm. A container may lack it, or have it for reading only; the error that Python raises
    then names no file.
    """
    import multiprocessing  # this rare check alone needs it

    try:
        multiprocessing.Lock()
    except OSError as error:
        return fault_of(error).reason
    return ""


def free_disk(folder: Path) -> int:
    """The bytes that this user may still write where a folder is, or will be. Raises OSError."""
    place = next((each for each in (folder, *folder.absolute().parents) if each.exists()), folder)
    return shutil.disk_usage(place).free


def disk_faults(folder: Path) -> list[str]:
    """What the disk of a folder lacks that Waggle needs: writing, flushing, locks. Tried with a file that is removed again."""
    probe, faults = folder / PROBE, list[str]()
    try:
        with probe.open("wb") as file:
            file.write(b"x")
            file.flush()
            for what, ask in (("cannot flush a file (fsync)", os.fsync), ("has no locks", _lock)):
                try:
                    ask(file.fileno())
                except (OSError, NotImplementedError) as error:
                    faults.append(f"{what}: {error}")
        file_moves.unlink(probe)
    except OSError as error:
        faults.append(f"cannot be written: {fault_of(error).reason}")
    return faults


def user_faults() -> list[str]:
    """What this user lacks: a home folder, a name, a working directory."""
    faults = []
    if not os.path.isabs(os.path.expanduser("~")):
        faults.append("this user has no home folder: set HOME, or choose folders with --home and XDG_CACHE_HOME")
    try:
        getpass.getuser()
    except (OSError, KeyError, ImportError):
        faults.append("this user has no name: set USER")
    try:
        os.getcwd()
    except OSError:
        faults.append("the working directory was removed: change to another one")
    return faults


def name_user() -> None:
    """Give a user without a name one for this process: libraries ask for it, and end if there is none."""
    try:
        getpass.getuser()
    except (OSError, KeyError, ImportError):
        os.environ["USER"] = f"user-{os.getuid() if hasattr(os, 'getuid') else 0}"


def _lock(descriptor: int) -> None:
    """Lock a file as `filelock` does. Raises OSError."""
    try:
        import fcntl
    except ImportError:  # Windows: its disks have locks
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _ulimit() -> float:
    """The most memory that `ulimit -v` or `ulimit -d` allow this process."""
    try:
        import resource
    except ImportError:  # Windows has none
        return math.inf
    soft = (resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return min((float(limit) for limit in soft if limit != resource.RLIM_INFINITY), default=math.inf)


def _free_by_ulimit() -> float:
    limit = _ulimit()
    return limit if math.isinf(limit) else limit - psutil.Process().memory_info().vms


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
        pass
    quota_v1, period_v1 = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    return quota_v1 / period_v1 if 0 < quota_v1 < math.inf and 0 < period_v1 < math.inf else math.inf  # -1: no quota


def _limit_of(folder: Path) -> float:
    return min(_number(folder / name) for name in ("memory.max", "memory.high", "memory.limit_in_bytes"))


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
