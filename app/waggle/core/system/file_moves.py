"""Renames, replaces and removes files and folders.

On Windows that fails while another program has the file open, such as a virus scanner that reads what was just written. There it
is tried again for a moment. Everywhere else these are the functions of Python.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

WINDOWS = os.name == "nt"
PATIENCE_SECONDS = 2.0  # a scanner has a file for less; a file that is in use stays in use
FIRST_WAIT, LONGEST_WAIT = 0.01, 0.25  # seconds between two tries, doubled each time
NOT_EMPTY = 145  # ERROR_DIR_NOT_EMPTY: a removed file is there until the scanner closes it


def rename(path: Path, to: Path) -> Path:
    """Rename a file or folder, and return its new path. Raises OSError; on Windows also where `to` exists."""
    _patiently(lambda: os.rename(path, to))
    return to


def replace(path: Path, to: Path) -> Path:
    """Rename a file or folder, in place of a file of that name; return its new path. Raises OSError."""
    _patiently(lambda: os.replace(path, to))
    return to


def unlink(path: Path, *, missing_ok: bool = False) -> None:
    """Remove a file. Raises OSError."""
    _patiently(lambda: path.unlink(missing_ok=missing_ok))


def remove_tree(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a folder with all that is in it. Raises OSError, unless errors are ignored: then what is in use stays."""
    if WINDOWS and path.is_dir():
        try:
            return _patiently(lambda: shutil.rmtree(path))
        except OSError:
            if not ignore_errors:
                raise
    shutil.rmtree(path, ignore_errors=ignore_errors)


def _patiently(move: Callable[[], None]) -> None:
    deadline, wait = time.monotonic() + PATIENCE_SECONDS, FIRST_WAIT
    while True:
        try:
            return move()
        except OSError as error:
            if not (WINDOWS and _may_pass(error)) or time.monotonic() + wait > deadline:
                raise
        time.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT)


def _may_pass(error: OSError) -> bool:
    """Whether the reason may be another program: Windows calls that "access denied" or "in use by another process"."""
    return isinstance(error, PermissionError) or getattr(error, "winerror", None) == NOT_EMPTY
