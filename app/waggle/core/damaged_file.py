"""Sets a file aside that cannot be read, so that nothing in it is lost and a person can put it back."""

import os
import shutil
from itertools import chain
from pathlib import Path

MOST = 1000  # files set aside under one name


def set_aside(path: Path) -> Path:
    """Rename a file to `NAME.damaged`, or to `NAME.damaged-2` and so on where that name is taken; return the new name.

    Raises OSError.
    """
    return path.rename(_free_name(path))


def keep_copy(path: Path) -> Path:
    """Copy a file to such a name, for a file that is replaced next; return the name. Raises OSError."""
    free = _free_name(path)
    shutil.copyfile(path, free)
    free.chmod(0o600)
    return free


def _free_name(path: Path) -> Path:
    ends = chain(("",), (f"-{number}" for number in range(2, MOST)))
    names = (path.with_suffix(f".damaged{end}") for end in ends)
    free = next((name for name in names if not os.path.lexists(name)), None)
    if free is None:
        raise FileExistsError(f"too many files like {path.with_suffix('.damaged')}")
    return free
