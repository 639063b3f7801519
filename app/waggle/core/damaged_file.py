"""Sets a file aside that cannot be read, so that nothing in it is lost and a person can put it back."""

import os
import shutil
from itertools import chain
from pathlib import Path

from waggle.core.message import Message
from waggle.core.system import access_list, file_moves

MOST = 1000  # files set aside under one name


def set_aside(path: Path) -> Path:
    """Rename a file to `NAME.damaged`, or to `NAME.damaged-2` and so on where that name is taken; return the new name.

    Raises OSError.
    """
    return file_moves.rename(path, free_name(path.with_suffix(".damaged")))


def keep_copy(path: Path) -> Path:
    """Copy a file to such a name, for a file that is replaced next; return the name. Raises OSError."""
    free = free_name(path.with_suffix(".damaged"))
    shutil.copyfile(path, free)
    free.chmod(0o600)
    access_list.restrict(free)
    return free


def free_name(path: Path) -> Path:
    """This path, or the first of PATH-2, PATH-3 and so on that does not exist. Raises FileExistsError if there are too many."""
    names = chain((path,), (path.with_name(f"{path.name}-{number}") for number in range(2, MOST)))
    free = next((name for name in names if not os.path.lexists(name)), None)
    if free is None:
        raise FileExistsError(Message("too many files like %1", path))
    return free
