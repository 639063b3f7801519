"""A small file of learned values: read up to a bound, written atomically, set aside if it cannot be read."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from waggle.core import damaged_file, paths
from waggle.core.errors import UNREADABLE

T = TypeVar("T")

log = logging.getLogger(__name__)


def read(path: Path, decode: Callable[[bytes], T], most_bytes: int) -> T | None:
    """The decoded file; None if it cannot be read. Such a file is kept as `.damaged`, so that nothing in it is lost."""
    try:
        with path.open("rb") as file:
            return decode(file.read(most_bytes))
    except (OSError, *UNREADABLE) as error:  # its values are learned again
        log.info("%s cannot be read: %s", path, error)
    try:
        damaged_file.set_aside(path)
    except OSError as error:  # the next write replaces it
        log.info("%s cannot be set aside: %s", path, error)
    return None


def write(path: Path, content: bytes) -> None:
    """Replace the file."""
    try:
        paths.write_atomically(path, content)
    except OSError as error:  # on a full disk only recent values are lost; the node works on
        log.info("%s cannot be written: %s", path, error)
