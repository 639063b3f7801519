"""The file of addresses met lately: extra seeds for the next start. Only a cache: whatever is wrong with it, it is empty."""

import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec

from waggle import paths
from waggle.errors import UNREADABLE

MAX_KEPT = 64
MAX_BYTES = 64 * 1024

log = logging.getLogger(__name__)


def read(path: Path | None) -> tuple[str, ...]:
    """The addresses in the file, newest first."""
    if path is None or not path.exists():
        return ()
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(MAX_BYTES), type=tuple[str, ...])[:MAX_KEPT]
    except (OSError, *UNREADABLE) as error:  # seeds are still there, and the file is written anew
        log.info("the known peers in %s cannot be read: %s", path, error)
        return ()


def keep(path: Path | None, known: tuple[str, ...], met: Sequence[str]) -> tuple[str, ...]:
    """Put those just met in front, and write the file if that changed whom it names."""
    after = tuple(dict.fromkeys((*met, *known)))[:MAX_KEPT]
    if path is None or set(after) == set(known):
        return after
    try:
        paths.put(path, msgspec.json.encode(after))
    except OSError as error:  # a full disk costs a few addresses, not the swarm
        log.info("the known peers cannot be written to %s: %s", path, error)
    return after
