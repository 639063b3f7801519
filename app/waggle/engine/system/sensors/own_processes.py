"""Which processes of this computer are Waggle's own: no rule about other programs may count them."""

from collections.abc import Sequence
from pathlib import PurePath

import psutil

NAME = "waggle"


def pids() -> frozenset[int]:
    """The process ids of every engine and window on this computer, and of all that they started."""
    parents = {process.pid: process.info["ppid"] for process in psutil.process_iter(["ppid"])}
    ours = {psutil.Process().pid}
    ours |= {process.pid for process in psutil.process_iter(["cmdline"]) if is_waggle(process.info["cmdline"] or ())}
    while more := {pid for pid, parent in parents.items() if parent in ours and pid not in ours}:
        ours |= more
    return frozenset(ours)


def is_waggle(command: Sequence[str]) -> bool:
    """Whether a command line starts Waggle: as an installed app, as a script, or as a module of Python."""
    if not command:
        return False
    program, *arguments = command
    if _plain(program) == NAME:
        return True
    if not _plain(program).startswith("python"):
        return False
    for place, word in enumerate(arguments):
        if word == "-m":
            return arguments[place + 1 : place + 2] == [NAME]
        if not word.startswith("-"):
            return _plain(word) == NAME
    return False


def _plain(path: str) -> str:
    """The name of a program or script in small letters, without folder and `.exe`."""
    return PurePath(path.replace("\\", "/")).name.lower().removesuffix(".exe")
