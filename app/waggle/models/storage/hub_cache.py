"""Downloaded models: locked while in use, removed completely or not at all. hub_download.py says where they lie."""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

MARK = "config.json"  # is held by whoever uses a model
UNFINISHED = ".downloading-"  # how the name of what has come so far begins


def lock_of(unfinished: Path) -> Path:
    """Held by whoever downloads it."""
    return unfinished.with_name(f"{unfinished.name}.lock")


def hold(folder: Path) -> IO[bytes]:
    """Until it is closed nobody removes this model; raises OSError where it is gone already."""
    file = (folder / MARK).open("rb")
    if sys.platform != "win32":  # there a folder with an open file keeps its name
        import fcntl

        with suppress(OSError):  # a disk that knows no locks
            fcntl.flock(file, fcntl.LOCK_SH)
    return file


def remove(folder: Path) -> bool:
    """All of a model or nothing, for what has its name counts as complete; False where somebody holds it. Raises OSError."""
    going = folder.with_name(f".removing-{folder.name}")
    shutil.rmtree(going, ignore_errors=True)
    if _is_held(folder):
        return False
    os.rename(folder, going)
    shutil.rmtree(going, ignore_errors=True)
    return True


def unfinished(cache: Path) -> list[Path]:
    """What has come of models whose download did not end, the longest untouched first."""
    folders = (path for path in cache.glob(f"*/{UNFINISHED}*") if path.is_dir())
    return sorted(folders, key=lambda path: path.stat().st_mtime)


def drop(unfinished: Path) -> bool:
    """Remove it; False where it is being downloaded now."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(lock_of(unfinished), timeout=0):
            shutil.rmtree(unfinished, ignore_errors=True)
    except Timeout:
        return False
    return not unfinished.exists()


def sweep(cache: Path) -> None:
    """Remove what removals that were killed have left."""
    for going in cache.glob("*/.removing-*"):
        shutil.rmtree(going, ignore_errors=True)


def _is_held(folder: Path) -> bool:
    if sys.platform == "win32":
        return False  # the renaming fails there
    import fcntl

    try:
        with (folder / MARK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no model, or a disk that knows no locks
        return False
    return False
