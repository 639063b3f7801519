"""The file of scores: the comparison of a swarm's models survives a restart."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from waggle.core.peer_id import is_peer_id
from waggle.core.text.legible_name import legible
from waggle.network.leaderboard.scores import MAX_SCORES, SheetScore
from waggle.network.limits import bounded_file
from waggle.tasks.questions import epoch_at

MAX_BYTES = 4 * 1024 * 1024


def read(path: Path | None, now: float) -> list[SheetScore]:
    """The scores in the file, without those of future epochs."""
    if path is None or not path.exists():
        return []
    scores = bounded_file.read(path, msgspec.msgpack.Decoder(list[SheetScore]).decode, MAX_BYTES) or []
    last = epoch_at(now) + 1
    return [
        msgspec.structs.replace(score, model=legible(score.model))
        for score in scores[:MAX_SCORES]
        if is_peer_id(score.origin) and score.right <= score.total and score.epoch <= last
    ]


def write(path: Path | None, scores: Sequence[SheetScore]) -> None:
    """Replace the file."""
    if path is not None:
        bounded_file.write(path, msgspec.msgpack.encode(scores))
