"""How much memory p2pd may take: what its collector aims at, where its strangers have to leave, and where the system ends it.

Go's own limit (GOMEMLIMIT) does not stop what strangers begin, because that is in use; it makes Go give back sooner what is not.
A limit on the address space (RLIMIT_AS) counts what Go only reserves; one on writable memory (RLIMIT_DATA) counts what it uses.
Both end p2pd. What keeps it small are the bounds on streams (`call_streams.py`).
"""

import sys

MIB = 1024 * 1024
AIM = 384 * MIB  # of Go's collector
MOST_MEMORY = 768 * MIB  # resident: beyond it, strangers are hung up on, and p2pd is restarted if that does not help
SYSTEM_LIMIT = 1024 * MIB  # writable, by the system
# In front of p2pd's command line. With GOGC=50 it collects twice as often as by default, and a flood makes it grow half as much.
ENVIRONMENT = ("/usr/bin/env", f"GOMEMLIMIT={AIM}", "GOGC=50")


def limit_by_system(pid: int) -> bool:
    """Let the system refuse this process more than SYSTEM_LIMIT; whether it can. macOS has no such limit for one process."""
    if not sys.platform.startswith("linux"):
        return False
    import resource

    try:
        resource.prlimit(pid, resource.RLIMIT_DATA, (SYSTEM_LIMIT, SYSTEM_LIMIT))
    except (OSError, ValueError):  # it has just ended, or the limit of our own process is lower already
        return False
    return True
