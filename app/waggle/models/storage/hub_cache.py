"""Downloaded models: locked while in use, removed completely or not at all. hub_download.py describes their folders."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from waggle.core.system import file_moves
from waggle.models.gguf.conversion import CONVERTING

MARK = "config.json"  # locked by every process that uses the model
UNFINISHED = ".downloading-"  # prefix of the folder of an unfinished download
UNFINISHED_WORK = (UNFINISHED, CONVERTING)  # of a conversion, too: a kill ends both


def lock_of(unfinished: Path) -> Path:
    """The lock file of a download or a conversion."""
    return unfinished.with_name(f"{unfinished.name}.lock")


def hold(folder: Path) -> IO[bytes]:
    """Protect a model from removal until the file is closed. Raises OSError if the model is gone."""
    file = (folder / MARK).open("rb")
    if sys.platform != "win32":  # Windows does not rename a folder with an open file
        import fcntl

        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_SH)
    return file


def remove(folder: Path) -> bool:
    """Remove a model by renaming it first, because every folder with its name counts as complete.

    False if it is in use. Raises OSError.
    """
    going = folder.with_name(f".removing-{folder.name}")
    file_moves.remove_tree(going, ignore_errors=True)
    if _is_held(folder):
        return False
    file_moves.rename(folder, going)
    file_moves.remove_tree(going, ignore_errors=True)
    return True


def unfinished_work(cache: Path) -> list[Path]:
    """The folders of unfinished downloads and conversions, oldest first."""
    folders = (path for path in cache.glob("*/*") if is_unfinished(path) and path.is_dir())
    return sorted(folders, key=lambda path: path.stat().st_mtime)


def is_unfinished(folder: Path) -> bool:
    """Whether a folder is of a download or a conversion that is under way or was interrupted."""
    return folder.name.startswith(UNFINISHED_WORK)


def name_of(folder: Path) -> str:
    """The name of a folder's model, complete or not."""
    return folder.name.removeprefix(UNFINISHED).removeprefix(CONVERTING)


def drop(unfinished: Path) -> bool:
    """Remove an unfinished download or conversion; False if it is under way."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(lock_of(unfinished), timeout=0):
            file_moves.remove_tree(unfinished, ignore_errors=True)
    except Timeout:
        return False
    return not unfinished.exists()


def sweep(cache: Path) -> None:
    """Finish removals that were interrupted."""
    for going in cache.glob("*/.removing-*"):
        file_moves.remove_tree(going, ignore_errors=True)


def _is_held(folder: Path) -> bool:
    if sys.platform == "win32":
        return False  # renaming would fail
    import fcntl

    try:
        with (folder / MARK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no model, or a file system without locks
        return False
    return False
