"""Removes an invite from this process's command line, which every user of the computer can read on Linux.

The link of a private swarm contains its key. Systems pass a clicked link as an argument, except macOS, which sends an event.
"""

import ctypes
import sys
from pathlib import Path

PLACE = 45, 46  # fields of /proc/self/stat after the name: arg_start and arg_end, see proc_pid_stat(5)


def hide(invite: str) -> None:
    """Overwrite the invite in the memory that the system shows as the command line. Does nothing on other systems than Linux."""
    if sys.platform != "linux" or not invite:
        return
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = (int(fields[place]) for place in PLACE)
    except (OSError, LookupError):  # /proc is missing or different
        return
    if not 0 < start < end:  # the system does not say
        return
    words, encoded = ctypes.string_at(start, end - start), invite.encode("utf-8", "surrogateescape")
    at = words.find(encoded)
    while at >= 0:
        ctypes.memset(start + at, ord("-"), len(encoded))
        at = words.find(encoded, at + len(encoded))
