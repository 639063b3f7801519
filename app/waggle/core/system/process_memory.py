"""How much memory a process uses, and how this one returns what it has freed to the system."""

import ctypes
import sys

import psutil

M_MMAP_THRESHOLD = -3  # as in malloc.h of glibc
LARGE_BLOCK = 1 << 20  # bytes


def resident_bytes(pid: int) -> int:
    """The resident set size in bytes; 0 if the process has ended, even while it is read."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def return_free_memory() -> None:
    """Return free heap memory to the system. glibc keeps it in fragments, and the next phase needs blocks of other sizes."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)


def return_large_blocks(least: int = LARGE_BLOCK) -> None:
    """Let glibc give every block of `least` bytes back as soon as it is free, for the rest of the process; nothing elsewhere.

    By itself it gives a block back alone only above a threshold that grows to 32 MB; smaller ones leave gaps. Measured with a
    0.5B shape (lean): after the first step the process keeps 0.2 GB instead of 1.1 GB, and its peak is 0.3 GB lower.
    """
    if sys.platform == "linux":
        adjust = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if adjust is not None:
            adjust(M_MMAP_THRESHOLD, least)
