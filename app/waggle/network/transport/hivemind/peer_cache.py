"""The file of addresses met lately: extra seeds for the next start. Only a cache: whatever is wrong with it, it is empty."""

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from waggle.core import paths
from waggle.core.errors import UNREADABLE
from waggle.core.peer_id import text_of
from waggle.network.limits.address_ranges import source_of

MAX_KEPT = 64
MAX_BYTES = 64 * 1024

log = logging.getLogger(__name__)


def read(path: Path | None) -> tuple[str, ...]:
    """The addresses in the file, those of trusted peers first, then the newest."""
    if path is None or not path.exists():
        return ()
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(MAX_BYTES), type=tuple[str, ...])[:MAX_KEPT]
    except (OSError, *UNREADABLE) as error:  # seeds are still there, and the file is written anew
        log.info("the known peers in %s cannot be read: %s", path, error)
        return ()


def keep(path: Path | None, known: tuple[str, ...], met: Sequence[str], trusted: Collection[bytes] = ()) -> tuple[str, ...]:
    """Put those just met in front, but behind whoever is trusted, and write the file if that changed whom it names.

    Nobody who owns one address range has more than a quarter of the places: at the next start whom it names is who is called.
    And a peer has two, where it was last met straight and through a relay: some move every day.
    """
    names = set(map(text_of, trusted))
    newest: dict[tuple[str, bool], str] = {}
    for address in (*met, *known):
        newest.setdefault((_peer(address), "/p2p-circuit" in address), address)
    per_network: Counter[str] = Counter()
    after = []
    for address in sorted(newest.values(), key=lambda address: _peer(address) not in names):
        whose = source_of(address, relayed="/p2p-circuit" in address) or address.split("/")[2]
        per_network[whose] += 1
        if per_network[whose] <= MAX_KEPT // 4:
            after.append(address)
    return _written(path, known, tuple(after[:MAX_KEPT]))


def _peer(address: str) -> str:
    return address.rpartition("/")[2]


def _written(path: Path | None, before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    if path is None or set(after) == set(before):
        return after
    try:
        paths.put(path, msgspec.json.encode(after))
    except OSError as error:  # a full disk costs a few addresses, not the swarm
        log.info("the known peers cannot be written to %s: %s", path, error)
    return after
