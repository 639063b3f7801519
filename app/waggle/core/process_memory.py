"""How much memory a process holds: of those that we start, each may end in the middle of the question."""

import psutil


def resident_bytes(pid: int) -> int:
    """Bytes in use; 0 where the process has ended."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
