"""Archive of weights, each from at least twice the rounds of the one before, so that early models can still be asked."""

import os
from contextlib import suppress
from pathlib import Path

from waggle.core import paths
from waggle.models.shared.weight_files import WEIGHTS
from waggle.models.storage import checkpoint

MAX_BYTES = 64 * 1024 * 1024  # bytes of one model
NAME = "r{:08d}.safetensors"


def keep(checkpoints: Path, album: Path) -> None:
    """Keep the newest checkpoint's weights when twice as many rounds were played as at the last picture."""
    number = checkpoint.rounds(checkpoints)
    source = checkpoints / f"r{number:08d}" / "model.safetensors"
    archived_rounds = rounds(album)
    if not source.is_file() or source.stat().st_size > MAX_BYTES or (archived_rounds and number < 2 * archived_rounds[-1]):
        return
    with suppress(OSError):  # a picture that is missing is missed by nobody else
        album.mkdir(exist_ok=True, mode=0o700)
        place = album / NAME.format(number)
        try:
            os.link(source, place)
        except OSError:  # this disk knows no links
            paths.write_atomically(place, source.read_bytes())


def set_aside_after(album: Path, number: int) -> None:
    """After so many rounds. Later pictures are of a model that is no more: they are set aside, and its place is another's."""
    for later in (archived for archived in rounds(album) if archived > number):
        picture = album / NAME.format(later)
        with suppress(OSError):  # somebody holds it open, on Windows: it goes at the next start
            picture.replace(picture.with_name(f"earlier-{picture.name}"))


def rounds(album: Path) -> list[int]:
    """Those there are, oldest first."""
    names = sorted(album.glob("r????????.safetensors")) if album.is_dir() else []
    return [int(path.stem[1:]) for path in names if path.stem[1:].isdigit()]


def archived_weights(checkpoints: Path, album: Path) -> list[tuple[int, Path]]:
    """(round, weights or adapters) of all that is kept, oldest first, the newest checkpoint last."""
    weights_by_round = {number: album / NAME.format(number) for number in rounds(album)}
    newest = checkpoint.rounds(checkpoints)
    for name in (WEIGHTS, checkpoint.ADAPTERS):
        if (path := checkpoints / f"r{newest:08d}" / name).is_file():
            weights_by_round[newest] = path
    return sorted(weights_by_round.items())
