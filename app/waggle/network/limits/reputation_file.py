"""The file of standings: what was learned about peers outlives a restart, a person's mutes and blocks above all."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from waggle.core.peer_id import is_peer_id
from waggle.network.identity.keys import name_of
from waggle.network.limits import bounded_file
from waggle.network.limits.reputation import MAX_PEERS, PeerReputation

MAX_BYTES = 1024 * 1024


def read(path: Path | None) -> list[PeerReputation] | None:
    """The standings in the file; None for one that cannot be read: peers are met anew then, and the node says so."""
    if path is None or not path.exists():
        return []
    standings = bounded_file.read(path, msgspec.json.Decoder(list[PeerReputation]).decode, MAX_BYTES)
    if standings is None:
        return None
    return [msgspec.structs.replace(peer, name=name_of(peer.id)) for peer in standings[:MAX_PEERS] if is_peer_id(peer.id)]


def write(path: Path | None, standings: Sequence[PeerReputation]) -> None:
    """Put these in the file's place."""
    if path is not None:
        bounded_file.write(path, msgspec.json.encode(standings))
