"""One name for each peer: what its person chose, where this node knows that, else the name of its key.

An event names a peer as its writer knew it. In the State, every place that names a peer has the name of `State.peers`.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from waggle.protocol import events, events_leaderboard

Peers = Mapping[str, events.PeerInfo]


def name_in(peers: Peers, peer_id: str, name: str) -> str:
    """The name of the peer with this id; `name` if these peers do not include it."""
    known = peers.get(peer_id)
    return known.name if known is not None and known.name else name


def own_name(ready: events.Ready) -> str:
    """The name that members see of this node. Others see that of its key, so it belongs on nothing that is shown to them."""
    return ready.member_name or ready.name


def of_aha(aha: events.Aha, peers: Peers) -> events.Aha:
    """A first right answer that names its peer as these peers do."""
    name = name_in(peers, aha.origin, aha.name)
    return aha if name == aha.name else replace(aha, name=name)


def of_comparison(compared: events_leaderboard.ModelsCompared, peers: Peers) -> events_leaderboard.ModelsCompared:
    """A comparison of models that names their nodes as these peers do."""
    names = [name_in(peers, entrant.id, entrant.name) for entrant in compared.entrants]
    if names == [entrant.name for entrant in compared.entrants]:
        return compared
    entrants = (replace(entrant, name=name) for entrant, name in zip(compared.entrants, names, strict=True))
    return replace(compared, entrants=tuple(entrants))
