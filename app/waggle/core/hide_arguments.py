"""Takes an invite out of this process's own command line, which on Linux everybody who uses the computer can read.

A link to a private swarm holds its key. Systems pass a clicked link as an argument, except macOS, which sends an event.
"""

import ctypes
import sys
from pathlib import Path

PLACE = 45, 46  # in /proc/self/stat behind the name: where the command line begins and ends in memory, see proc_pid_stat(5)


def hide(invite: str) -> None:
    """Write over it, in memory: what was read of it before stays as it is. Nothing happens on other systems."""
    if sys.platform != "linux" or not invite:
        return
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = (int(fields[place]) for place in PLACE)
    except (OSError, LookupError):  # a /proc of another kind, or none
        return
    if not 0 < start < end:  # the system does not say
        return
    words, encoded = ctypes.string_at(start, end - start), invite.encode("utf-8", "surrogateescape")
    at = words.find(encoded)
    while at >= 0:
        ctypes.memset(start + at, ord("-"), len(encoded))
        at = words.find(encoded, at + len(encoded))
