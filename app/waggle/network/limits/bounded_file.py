"""A file of what was learned: read up to a bound, written whole or not at all, set aside where it cannot be read."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from waggle.core import paths
from waggle.core.errors import UNREADABLE

T = TypeVar("T")

log = logging.getLogger(__name__)


def read(path: Path, decode: Callable[[bytes], T], most_bytes: int) -> T | None:
    """What is in the file; None for one that cannot be read, which is kept beside it so that nothing in it is lost."""
    try:
        with path.open("rb") as file:
            return decode(file.read(most_bytes))
    except (OSError, *UNREADABLE) as error:  # it is learned anew
        log.info("%s cannot be read: %s", path, error)
    try:
        os.replace(path, path.with_suffix(".damaged"))
    except OSError as error:  # it is written over, then
        log.info("%s cannot be set aside: %s", path, error)
    return None


def write(path: Path, content: bytes) -> None:
    """Put this in the file's place."""
    try:
        paths.write_atomically(path, content)
    except OSError as error:  # a full disk costs what was learned since, not the swarm
        log.info("%s cannot be written: %s", path, error)
