"""The reputation file: what the node learned about peers, above all the person's mutes and blocks, survives a restart."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from waggle.core.errors import UNREADABLE
from waggle.core.message import english, unpacked_message
from waggle.core.peer_id import is_peer_id
from waggle.core.text.legible_name import legible
from waggle.network.identity.keys import name_of
from waggle.network.limits import bounded_file
from waggle.network.limits.reputation import MAX_PEERS, PeerReputation

MAX_BYTES = 1024 * 1024


def read(path: Path | None) -> list[PeerReputation] | None:
    """The reputations in the file; None if it cannot be read: then all peers are new, and the node reports it."""
    if path is None or not path.exists():
        return []
    reputations = bounded_file.read(path, msgspec.json.Decoder(list[PeerReputation], dec_hook=unpacked_message).decode, MAX_BYTES)
    if reputations is None:
        return None
    return [
        msgspec.structs.replace(peer, name=name_of(peer.id), model=legible(peer.model))
        for peer in reputations[:MAX_PEERS]
        if is_peer_id(peer.id)
    ]


def is_damaged(path: Path) -> bool:
    """Whether there is a file, and its content cannot be read."""
    try:
        with path.open("rb") as file:
            msgspec.json.decode(file.read(MAX_BYTES), type=list[PeerReputation], dec_hook=unpacked_message)
    except OSError:  # none, or one whose rights are wrong
        return False
    except UNREADABLE:
        return True
    return False


def write(path: Path | None, reputations: Sequence[PeerReputation]) -> None:
    """Replace the file. Names that people chose in a private swarm stay out of it."""
    if path is not None:
        without_names = [msgspec.structs.replace(peer, chosen_name="") for peer in reputations]
        bounded_file.write(path, msgspec.json.encode(without_names, enc_hook=english))
