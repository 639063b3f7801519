"""What the verifier child puts on before it reads strangers' text: kernel limits, a filter of system calls, and a tripwire.

The tripwire is an audit hook, and Python hooks are a tripwire, not a sandbox: native code that misbehaves raises no event,
and code that runs at all can get round them. The limits and the filter are the kernel's and cannot be taken off again.

Left out: a library for the filter, for none is kept well enough to stand here: `seccompy` works, but is a beta of one
small publisher, first released in September 2026; `pyseccomp` had its last release in January 2021 and wants the system's
libseccomp; `landlock` has pre-releases only, and Landlock itself leaves modes, owners and (before Linux 6.12) signals alone.
macOS has the limits alone, which let a file be moved, emptied or removed, and a program be started in the child's own place.
Windows has a job object (see windows_job.py), which bounds memory and lets no process start. Only the tripwire watches files and
sockets there.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

from waggle.tasks.sandbox import seccomp, windows_job

Sandbox = Literal["filtered", "limited", "tripwire"]

TRIPPED = 86  # exit code of a child that the tripwire ended
MEMORY_BYTES = 4 << 30  # of address space: reasoning-gym and what it imports take about a quarter
HARMLESS = frozenset({"builtins.id", "sys._getframe", "sys._getframemodulename", "sys.excepthook", "sys.unraisablehook"})


def limit_memory() -> None:
    """A formula with 2^n rows ends in MemoryError here instead of in the computer's swap.

    macOS ignores this limit: there the parent ends a child that took as much (see child_process.py)."""
    if sys.platform == "win32":
        windows_job.enter(windows_job.limits(memory_bytes=MEMORY_BYTES))
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def set_deadline(seconds: float) -> None:
    """Have the kernel end this process so many seconds from now; 0: never. The parent does it sooner, unless it was killed.

    By the clock: while a timer of the processor runs, Linux counts what a process works by the tick, and no text would cost
    anything. Windows has neither.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def drop_privileges() -> Sandbox:
    """Give up for good what needs no more doing, and say how far this system goes along with that.

    `filtered`: new files, sockets, processes, programs, signals, and every change to a file that is there. `limited`: new files,
    sockets and (but for root) processes; on Windows processes alone. `tripwire`: nothing. Call it once everything is imported.
    """
    if sys.platform == "win32":
        return "limited" if windows_job.enter(windows_job.limits(alone=True)) else "tripwire"
    put_on = seccomp.prepared()
    _limit()
    return "filtered" if put_on is not None and put_on() else "limited"


def _limit() -> None:
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))  # what is open goes on; no number is free again, whatever is closed
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def install_tripwire(report: Callable[[str], None]) -> Callable[[], AbstractContextManager[None]]:
    """End this process, after `report(event)`, at the first audit event but the harmless ones; armed from now on.

    Returns the only way to disarm it, a context: the state lives in this closure, and a hook cannot be removed.
    """
    armed = True

    def hook(event: str, _: tuple[object, ...]) -> None:
        nonlocal armed
        if not armed or event in HARMLESS:
            return
        armed = False  # the report itself must not trip
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
