"""A limit on the memory of this process, enforced by the system: past it, an allocation fails and the process ends."""

import sys

from waggle.tasks.sandbox import windows_job


def limit_memory(size: int) -> bool:
    """Limit this process to so many bytes of private writable memory; whether the system enforces it.

    Linux counts data segments and private anonymous mappings for RLIMIT_DATA since version 4.7. RLIMIT_AS would count what is
    only reserved, too: a gigabyte at every start. macOS enforces neither, so there the parent looks (`process.py`).
    On Windows a job object limits what the process may commit; that has not run on a Windows computer yet.
    """
    if sys.platform == "win32":
        return windows_job.enter(windows_job.limits(memory_bytes=size))
    if sys.platform != "linux":
        return False
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    size = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the key is in memory
    return True
