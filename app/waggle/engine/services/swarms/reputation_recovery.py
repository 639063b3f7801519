"""Rebuilds a damaged reputation file: whom a person muted or blocked stands in the record of events, too."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from waggle.core import damaged_file, paths
from waggle.core.message import Message
from waggle.core.peer_id import peer_id_of
from waggle.engine.runtime.event_publisher import oldest_first
from waggle.network.identity.keys import name_of
from waggle.network.limits import reputation_file
from waggle.network.limits.reputation import MAX_PEERS, Choice, PeerReputation
from waggle.protocol import events, json_lines
from waggle.protocol.state import AnyEvent, Snapshot


def recover(home: paths.Home) -> events.Warned | None:
    """At a start: rebuild the file if it is damaged; return what a person has to know.

    All else that was known of peers is learned again. The damaged file is copied first, so that a kill leaves the one or the
    other. What the disk refuses is left to the node, which reports it.
    """
    if not reputation_file.is_damaged(home.reputation):
        return None
    choices = _choices(home.events)
    try:
        aside = damaged_file.keep_copy(home.reputation)
    except OSError:
        return None
    chosen = [PeerReputation(id=peer, name=name_of(peer), choice=choice) for peer, choice in choices.items() if choice]
    reputation_file.write(home.reputation, chosen[-MAX_PEERS:])
    return events.Warned(
        title=Message("What was known of peers could not be read."),
        advice=Message("Restored mutes and blocks: %1. The old file is kept as %2.", len(chosen), aside),
    )


def _choices(record: Path) -> dict[bytes, Choice]:
    """The last choice about each peer in the record."""
    choices: dict[bytes, Choice] = {}
    for file in oldest_first(record, time.time()):
        with suppress(OSError):  # the other files remain
            for event in json_lines.recording(file):
                for peer in _peers_in(event):
                    with suppress(ValueError):  # no peer of this network
                        choices[peer_id_of(peer.id)] = peer.choice
    return choices


def _peers_in(event: AnyEvent | None) -> Sequence[events.PeerInfo]:
    match event:
        case events.PeerChanged():
            return [event.peer]
        case Snapshot():
            return list(event.state.peers.values())
        case _:
            return []
