"""The source and the kind of computer that a measurement was made with."""

import os
import platform
import subprocess
from pathlib import Path

import waggle


def commit() -> str:
    """The commit of this source, marked if files differ from it; Waggle's version if this is no git checkout."""
    here = Path(waggle.__file__).parents[2]
    try:
        head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=here, text=True, stderr=subprocess.DEVNULL).strip()
        changed = subprocess.check_output(["git", "status", "--porcelain", "--", "app", "resources"], cwd=here, text=True)
    except (OSError, subprocess.CalledProcessError):
        return waggle.__version__
    return f"{head} with changes" if changed.strip() else head


def machine() -> str:
    """The system, the number of cores and the version of Python; nothing that identifies a person."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
