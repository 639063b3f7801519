"""Which processes of this computer are Waggle's own: no rule about other programs may count them."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePath

import psutil

NAME = "waggle"


def is_own(pid: int) -> bool:
    """Whether a process is an engine or a window on this computer, or was started by one."""
    with suppress(psutil.Error):  # it has ended
        process = psutil.Process(pid)
        return any(each.pid == os.getpid() or is_waggle(_command(each)) for each in (process, *process.parents()))
    return False


def _command(process: psutil.Process) -> Sequence[str]:
    """A process's command line; empty if the system does not tell."""
    return process.as_dict(["cmdline"])["cmdline"] or ()


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
