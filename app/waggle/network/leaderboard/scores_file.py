"""The file of marks: the comparison of a swarm's models outlives a restart."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from waggle.core.peer_id import is_peer_id
from waggle.network.leaderboard.scores import MAX_MARKS, SheetScore
from waggle.network.limits import bounded_file
from waggle.tasks.questions import epoch_at

MAX_BYTES = 4 * 1024 * 1024


def read(path: Path | None, now: float) -> list[SheetScore]:
    """The marks in the file; none of an epoch that has yet to come."""
    if path is None or not path.exists():
        return []
    marks = bounded_file.read(path, msgspec.msgpack.Decoder(list[SheetScore]).decode, MAX_BYTES) or []
    last = epoch_at(now) + 1
    return [mark for mark in marks[:MAX_MARKS] if is_peer_id(mark.origin) and mark.right <= mark.total and mark.epoch <= last]


def write(path: Path | None, marks: Sequence[SheetScore]) -> None:
    """Put these in the file's place."""
    if path is not None:
        bounded_file.write(path, msgspec.msgpack.encode(marks))
