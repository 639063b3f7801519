"""How a peer is named where names are read at a glance: with the fingerprint of its key only if another one has that name."""

from collections import defaultdict
from collections.abc import Iterable

from waggle.gui.i18n.formatting import one_line, peer_name
from waggle.protocol.events import Aha, PeerInfo

Namesakes = frozenset[str]  # names that several keys have, without regard to case


def namesakes(peers: Iterable[PeerInfo], ahas: Iterable[Aha] = ()) -> Namesakes:
    """The names that several of these peers have, and of those from whose answers the model learned."""
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for peer in peers:
        keys[peer.name.casefold()].add(peer.id)
    for aha in ahas:
        if aha.origin:
            keys[aha.name.casefold()].add(aha.origin)
    return frozenset(name for name, known in keys.items() if len(known) > 1)


def short_name(name: str, peer_id: str, several: Namesakes) -> str:
    """The name alone; with the fingerprint if it is missing or one of `several`."""
    return peer_name(name, peer_id) if not name or name.casefold() in several else one_line(name)
