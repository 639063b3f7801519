"""How a peer is named where names are read at a glance: with the fingerprint of its key only if another one has that name."""

from collections import defaultdict

from waggle.gui.i18n.formatting import one_line, peer_name
from waggle.protocol.state import State

Namesakes = frozenset[str]  # names that several keys have, without regard to case


def namesakes(state: State) -> Namesakes:
    """The names that several of the peers in this State have: those here, and those whose answers were learned from."""
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for peer in state.peers.values():
        keys[peer.name.casefold()].add(peer.id)
    for aha in state.ahas:
        if aha.origin:
            keys[aha.name.casefold()].add(aha.origin)
    return frozenset(name for name, known in keys.items() if len(known) > 1)


def short_name(name: str, peer_id: str, several: Namesakes) -> str:
    """The name alone; with the fingerprint if it is missing or one of `several`."""
    return peer_name(name, peer_id) if not name or name.casefold() in several else one_line(name)
