"""The file of standings: what was learned about peers outlives a restart, a person's mutes and blocks above all."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from waggle import paths
from waggle.errors import UNREADABLE
from waggle.swarm.identity import is_peer_id, name_of
from waggle.swarm.trust import MAX_PEERS, Standing

MAX_BYTES = 1024 * 1024

log = logging.getLogger(__name__)


def read(path: Path | None) -> list[Standing] | None:
    """The standings in the file; None for one that cannot be read: it is set aside, so that nothing in it is lost."""
    if path is None or not path.exists():
        return []
    try:
        with path.open("rb") as file:
            found = msgspec.json.decode(file.read(MAX_BYTES), type=list[Standing])
    except (OSError, *UNREADABLE) as error:  # peers are met anew, and the node says so
        log.info("the standings in %s cannot be read: %s", path, error)
        _set_aside(path)
        return None
    return [msgspec.structs.replace(peer, name=name_of(peer.id)) for peer in found[:MAX_PEERS] if is_peer_id(peer.id)]


def write(path: Path | None, standings: Sequence[Standing]) -> None:
    """Put these in the file's place, whole or not at all."""
    if path is None:
        return
    try:
        paths.put(path, msgspec.json.encode(standings))
    except OSError as error:  # a full disk costs what was learned since, not the swarm
        log.info("the standings cannot be written to %s: %s", path, error)


def _set_aside(path: Path) -> None:
    try:
        os.replace(path, path.with_suffix(".damaged"))
    except OSError as error:  # it is written over, then
        log.info("%s cannot be set aside: %s", path, error)
