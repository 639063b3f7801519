"""The file of peer addresses, which any transport may use as additional seeds.

It is only a cache: if it cannot be read, it is empty.
"""

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from waggle.core import paths
from waggle.core.errors import UNREADABLE
from waggle.core.peer_id import text_of
from waggle.core.system.os_faults import fault_of
from waggle.network.limits.address_ranges import source_of

MAX_KEPT = 64
MAX_BYTES = 64 * 1024

log = logging.getLogger(__name__)


def read(path: Path | None) -> tuple[str, ...]:
    """The addresses in the file: those of trusted peers first, then the newest."""
    if path is None or not path.exists():
        return ()
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(MAX_BYTES), type=tuple[str, ...])[:MAX_KEPT]
    except (OSError, *UNREADABLE) as error:  # the seeds remain, and the file is written again
        log.info("the known peers in %s cannot be read: %s", path, type(error).__name__)
        return ()


def update(path: Path | None, known: tuple[str, ...], met: Sequence[str], trusted: Collection[bytes] = ()) -> tuple[str, ...]:
    """Put the addresses of peers just met first, but behind trusted peers, and write the file if its addresses changed.

    Addresses of one address range take at most a quarter of the places, because the next start calls all of them. A peer may
    have two addresses, its last direct one and its last relayed one: some peers change between these every day.
    """
    names = set(map(text_of, trusted))
    newest: dict[tuple[str, bool], str] = {}
    for address in (*met, *known):
        newest.setdefault((_peer(address), "/p2p-circuit" in address), address)
    per_range: Counter[str] = Counter()
    after = []
    for address in sorted(newest.values(), key=lambda address: _peer(address) not in names):
        address_range = source_of(address, relayed="/p2p-circuit" in address) or address.split("/")[2]
        per_range[address_range] += 1
        if per_range[address_range] <= MAX_KEPT // 4:
            after.append(address)
    return _write(path, known, tuple(after[:MAX_KEPT]))


def _peer(address: str) -> str:
    return address.rpartition("/")[2]


def _write(path: Path | None, before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    if path is None or set(after) == set(before):
        return after
    try:
        paths.write_atomically(path, msgspec.json.encode(after))
    except OSError as error:  # with a full disk we lose a few addresses, not the swarm
        log.info("the known peers cannot be written to %s: %s", path, fault_of(error).reason)
    return after
