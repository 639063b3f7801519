"""Restrictions that a child applies to itself before it reads strangers' text: kernel limits, a seccomp filter, a tripwire.

The kernel enforces the limits and the filter, and they cannot be removed. The tripwire is an audit hook of Python, which is not a
sandbox (PEP 578): native code raises no events, and Python code that runs at all can avoid them.

- Linux: limits and filter.
- macOS: limits only. They do not prevent moving, truncating or removing a file, or replacing the child by another program.
- Windows: a job object (windows_job.py) bounds memory and prevents new processes. Only the tripwire watches files and sockets.

Why no library for the filter: `seccompy` is a beta, first released in September 2026; `pyseccomp` had its last release in January
2021 and needs the system's libseccomp; `landlock` has pre-releases only, and Landlock covers neither modes and owners of files
nor (before Linux 6.12) signals.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Literal

from waggle.tasks.sandbox import seccomp, windows_job

Sandbox = Literal["filtered", "limited", "tripwire"]

TRIPPED = 86  # exit code of a child that the tripwire ended; no signal or Python error uses it
MEMORY_BYTES = 4 << 30  # of address space; reasoning-gym and its imports take about 1 GiB
HARMLESS = frozenset({"builtins.id", "sys._getframe", "sys._getframemodulename", "sys.excepthook", "sys.unraisablehook"})


def limit_memory() -> None:
    """Bound this process's memory: a truth table of 2^n rows must end in a MemoryError, not in the computer's swap.

    macOS ignores RLIMIT_AS. There the parent kills a child that takes too much (see child_process.py).
    """
    if sys.platform == "win32":
        windows_job.enter(windows_job.limits(memory_bytes=MEMORY_BYTES))
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def limit_growth(by: int) -> None:
    """Bound the memory that this process takes from now on, in bytes, whatever its libraries have mapped. Can be called again.

    On Linux only. Elsewhere see `limit_memory` and child_process.py.
    """
    if sys.platform == "linux":
        import resource

        with open("/proc/self/statm") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = mapped + by
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def be_killed_first() -> None:
    """If the system runs out of memory, it is to end this process and not the one that trains. On Linux only."""
    if sys.platform == "linux":
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")


def write_no_files() -> None:
    """Give up writing to files."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def set_deadline(seconds: float) -> None:
    """Have the kernel end this process after this many seconds of wall-clock time; 0 cancels it.

    For a child whose parent was killed; a living parent ends it sooner. Not by CPU time: while an ITIMER_PROF timer runs, Linux
    counts CPU time in ticks, so that a short text would seem to cost nothing. Windows has no such timers.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def drop_privileges() -> Sandbox:
    """Drop privileges for good and return what the kernel enforces. Call it after all imports.

    `filtered`: no new files, sockets, processes, programs or signals, and no changes to existing files. `limited`: no new files,
    sockets or (except for root) processes; on Windows no new processes only. `tripwire`: nothing.
    """
    if sys.platform == "win32":
        return _enter_job()
    import resource

    put_on = seccomp.prepare()
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))  # open files stay open, but no descriptor can be allocated
    return _drop_rest(put_on)


def drop_all_but_reading() -> Sandbox:
    """As `drop_privileges`, but existing files can still be opened: for libraries that import lazily."""
    return _enter_job() if sys.platform == "win32" else _drop_rest(seccomp.prepare())


def _enter_job() -> Sandbox:
    return "limited" if windows_job.enter(windows_job.limits(alone=True)) else "tripwire"


def _drop_rest(put_on: Callable[[], bool] | None) -> Sandbox:
    if sys.platform != "win32":
        import resource

        write_no_files()
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    return "filtered" if put_on is not None and put_on() else "limited"


def install_tripwire(report: Callable[[str], None]) -> Callable[[], AbstractContextManager[None]]:
    """From now on, end this process at the first audit event that is not harmless, after `report(event)`.

    Returns a context manager, the only way to disarm it: the state lives in this closure, and Python cannot remove audit hooks.
    """
    armed = True

    def hook(event: str, _: tuple[object, ...]) -> None:
        nonlocal armed
        if not armed or event in HARMLESS:
            return
        armed = False  # or the report itself would raise an event
        try:
            report(event)
        finally:
            os._exit(TRIPPED)

    @contextmanager
    def unarmed() -> Iterator[None]:
        nonlocal armed
        armed = False
        try:
            yield
        finally:
            armed = True

    sys.addaudithook(hook)
    return unarmed
