"""From the cause of an error of the operating system to a sentence, and to an advice that follows from it: one table for all.

An OSError says in a few words of the system what it met. Which file it was, and what a person can do, is added here.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from waggle.core.message import NOTHING, Message, as_message


class OsFault(NamedTuple):
    """What the system met, as a part of a sentence, and what a person can do about it."""

    reason: Message
    advice: Message


UNKNOWN = OsFault(NOTHING, Message("Look at the page Help, or run `waggle doctor`."))
NOT_HERE = OsFault(Message("there is no such file or folder"), Message("Check its path, and whether its disk is connected."))
NOT_YOURS = OsFault(Message("this user may not do that there"), Message("Mend its rights, or choose another place."))
GONE = OsFault(Message("its disk is gone"), Message("Connect the disk again, or choose another place."))
WITHOUT = OsFault(
    Message("its disk cannot do that"),
    Message("Some network disks have no locks or cannot flush: choose a folder on a local disk."),
)
TOO_MANY = OsFault(
    Message("too many files are open"), Message("Close other programs, or raise the limit of open files (ulimit -n).")
)
NO_CONNECTION = OsFault(Message("the connection failed"), Message("Check the internet connection, and try again later."))
IN_USE = OsFault(Message("another program uses it"), Message("Close the program that uses it, then try again."))
FAULTS: dict[int, OsFault] = {
    errno.ENOENT: NOT_HERE,
    errno.ENOTDIR: OsFault(Message("a part of its path is no folder"), Message("Check its path.")),
    errno.EISDIR: OsFault(Message("it is a folder, not a file"), Message("Choose a file.")),
    errno.EACCES: NOT_YOURS,
    errno.EPERM: NOT_YOURS,
    errno.EROFS: OsFault(Message("its disk is for reading only"), Message("Mount it for writing, or choose another place.")),
    errno.ENOSPC: OsFault(Message("the disk is full"), Message("Make room on the disk.")),
    errno.EFBIG: OsFault(Message("the file is too large for its disk"), Message("Choose a folder on another disk.")),
    errno.EIO: OsFault(Message("the disk reports an error"), Message("Save what is on this disk, and check it.")),
    errno.ENODEV: GONE,
    errno.ENXIO: GONE,
    errno.EINVAL: WITHOUT,
    errno.ENOSYS: WITHOUT,
    errno.ENOLCK: WITHOUT,
    errno.ENAMETOOLONG: OsFault(Message("its name is too long"), Message("Choose a shorter path.")),
    errno.ELOOP: OsFault(Message("its links lead in a circle"), Message("Mend the links, or choose another place.")),
    errno.EMFILE: TOO_MANY,
    errno.ENFILE: TOO_MANY,
    errno.ENOMEM: OsFault(Message("there is too little memory"), Message("Close other programs.")),
    errno.EAGAIN: OsFault(Message("the system allows no more processes or memory now"), Message("Close other programs.")),
    errno.EBUSY: IN_USE,
    errno.EADDRINUSE: OsFault(Message("another program listens there"), Message("Close it, or choose another port.")),
    errno.EADDRNOTAVAIL: OsFault(Message("this computer has no such address"), Message("Choose another address.")),
    errno.ECONNREFUSED: NO_CONNECTION,
    errno.ECONNRESET: NO_CONNECTION,
    errno.ETIMEDOUT: NO_CONNECTION,
    errno.ENETUNREACH: NO_CONNECTION,
    errno.EHOSTUNREACH: NO_CONNECTION,
    errno.EEXIST: OsFault(Message("there is something already"), Message("Choose another name.")),
    errno.EXDEV: OsFault(Message("it would have to move to another disk"), Message("Choose a folder on the same disk.")),
}
for _name, _fault in (
    (
        "EDQUOT",
        OsFault(Message("your share of the disk is used up"), Message("Make room on the disk, or ask for a larger share.")),
    ),
    ("ESTALE", GONE),
    ("ENOTCONN", GONE),
    ("EOPNOTSUPP", WITHOUT),
    ("ETXTBSY", IN_USE),
):
    if hasattr(errno, _name):  # Windows lacks some
        FAULTS.setdefault(getattr(errno, _name), _fault)


def fault_of(error: OSError) -> OsFault:
    """The reason, in the words of the system, which people can look up, where it has any; and the advice."""
    fault = FAULTS.get(error.errno or 0, UNKNOWN)
    return fault._replace(reason=as_message(error.strerror or fault.reason or type(error).__name__))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name a file in an OSError that names none, as those of writing, flushing and locking do."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def place_of(error: OSError) -> str:
    """The file or folder of an error. If it names none: the path that Waggle worked with where it happened, or ""."""
    if isinstance(error.filename, str | os.PathLike):
        return os.fspath(error.filename)
    if isinstance(error.filename, bytes):
        return os.fsdecode(error.filename)
    places = [place for trace in _innermost_first(error.__traceback__) if (place := _path_in(trace))]
    return places[0] if places else ""


def _innermost_first(trace: TracebackType | None) -> list[TracebackType]:
    traces: list[TracebackType] = []
    while trace is not None:
        traces.insert(0, trace)
        trace = trace.tb_next
    return traces


def _path_in(trace: TracebackType) -> str:
    """The first path among the local variables of one of Waggle's own functions."""
    if not str(trace.tb_frame.f_globals.get("__name__", "")).startswith("waggle"):
        return ""
    return next((str(value) for value in trace.tb_frame.f_locals.values() if isinstance(value, Path)), "")
