"""The file of marks: the comparison of a swarm's models outlives a restart. Bounded, and set aside where it cannot be read."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from waggle import paths
from waggle.errors import UNREADABLE
from waggle.swarm.identity import is_peer_id
from waggle.swarm.marks import Mark
from waggle.tasks.questions import epoch_at

MOST = 10_000  # marks: about a megabyte and a half
MAX_BYTES = 4 * 1024 * 1024

log = logging.getLogger(__name__)


def read(path: Path | None, now: float) -> list[Mark]:
    """The marks in the file; none of an epoch that has yet to come."""
    if path is None or not path.exists():
        return []
    try:
        with path.open("rb") as file:
            found = msgspec.msgpack.decode(file.read(MAX_BYTES), type=list[Mark])
    except (OSError, *UNREADABLE) as error:  # the comparison begins anew
        log.info("the marks in %s cannot be read: %s", path, error)
        _set_aside(path)
        return []
    last = epoch_at(now) + 1
    return [mark for mark in found[:MOST] if is_peer_id(mark.origin) and mark.right <= mark.total and mark.epoch <= last]


def write(path: Path | None, marks: Sequence[Mark]) -> None:
    """Put these in the file's place, whole or not at all."""
    if path is None:
        return
    try:
        path.parent.mkdir(exist_ok=True, mode=0o700)
        paths.put(path, msgspec.msgpack.encode(marks))
    except OSError as error:  # a full disk costs what was marked since, not the swarm
        log.info("the marks cannot be written to %s: %s", path, error)


def _set_aside(path: Path) -> None:
    try:
        os.replace(path, path.with_suffix(".damaged"))
    except OSError as error:  # it is written over, then
        log.info("%s cannot be set aside: %s", path, error)
