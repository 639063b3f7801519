"""How much memory a process uses."""

import psutil


def resident_bytes(pid: int) -> int:
    """The resident set size in bytes; 0 if the process has ended, even while it is read."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
