"""Append-only files of JSON lines, one for each finished piece of work: a kill costs at most the line it tears."""

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from waggle.core.errors import UNREADABLE, LabError
from waggle.core.system.os_faults import fault_of

Line = TypeVar("Line")


def begin(path: Path) -> None:
    """Check that lines can be added, before any work is done; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.open("ab").close()


def append(path: Path, line: object) -> None:
    """Append a line and sync it to the disk. The rest of a torn line is removed first. Other processes may write, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        if file.read(1) not in (b"", b"\n"):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
        file.write(msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(path: Path, kind: type[Line], what: str, option: str) -> list[Line]:
    """The lines so far, oldest first, without one that a kill tore. The file is not changed.

    Raises LabError if a line is not `what`, with the advice to choose another `option`.
    """
    try:
        *whole, torn = path.read_bytes().split(b"\n") if path.exists() else [b""]
    except OSError as error:
        raise LabError(f"{path} cannot be read: {fault_of(error).reason}.", f"Choose another {option}.") from error
    lines = []
    for number, line in enumerate(whole, 1):
        try:
            lines.append(msgspec.json.decode(line, type=kind))
        except UNREADABLE as error:
            raise LabError(f"Line {number} of {path} is not {what}: {error}.", f"Choose another {option}.") from error
    beginning = b'{"%s":' % next(iter(kind.__annotations__)).encode()
    if torn[: len(beginning)] != beginning[: len(torn)]:
        raise LabError(f"The last line of {path} is not {what}.", f"Choose another {option}.")
    return lines
