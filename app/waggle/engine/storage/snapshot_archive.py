"""Archive of weights of earlier rounds, each from at least twice the round of the one before: earlier models stay askable."""

import os
from contextlib import suppress
from pathlib import Path

from waggle.core import paths
from waggle.core.system import file_moves
from waggle.models.shared.weight_files import WEIGHTS
from waggle.models.storage import checkpoint

MAX_BYTES = 64 * 1024 * 1024  # models with larger weights are not archived
NAME = "r{:08d}.safetensors"


def archive_newest(checkpoints: Path, album: Path) -> None:
    """Archive the newest checkpoint's weights, if it has at least twice as many rounds as the newest in the archive."""
    number = checkpoint.rounds(checkpoints)
    source = checkpoints / f"r{number:08d}" / WEIGHTS
    archived_rounds = rounds(album)
    if not source.is_file() or source.stat().st_size > MAX_BYTES or (archived_rounds and number < 2 * archived_rounds[-1]):
        return
    with suppress(OSError):  # nothing else needs it
        album.mkdir(exist_ok=True, mode=0o700)
        place = album / NAME.format(number)
        try:
            os.link(source, place)
        except OSError:  # a file system without hard links
            paths.write_atomically(place, source.read_bytes())


def set_aside_after(album: Path, number: int) -> None:
    """Set aside the weights of rounds after `number`: that state of the model is lost, and other rounds take its place."""
    for later_round in [archived_round for archived_round in rounds(album) if archived_round > number]:
        archived = album / NAME.format(later_round)
        with suppress(OSError):  # Windows, while another program has it open: the next start does it
            file_moves.replace(archived, archived.with_name(f"earlier-{archived.name}"))


def rounds(album: Path) -> list[int]:
    """The rounds in the archive, ascending."""
    names = sorted(album.glob("r????????.safetensors")) if album.is_dir() else []
    return [int(path.stem[1:]) for path in names if path.stem[1:].isdigit()]


def archived_weights(checkpoints: Path, album: Path) -> list[tuple[int, Path]]:
    """(round, file of weights or adapters) of the archive and of the newest checkpoint, ascending."""
    weights_by_round = {number: album / NAME.format(number) for number in rounds(album)}
    newest = checkpoint.rounds(checkpoints)
    for name in (WEIGHTS, checkpoint.ADAPTERS):
        if (path := checkpoints / f"r{newest:08d}" / name).is_file():
            weights_by_round[newest] = path
    return sorted(weights_by_round.items())
