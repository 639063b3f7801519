"""Layout of the swarm graph: which peers are drawn, how near and how large. No painting."""

import hashlib
import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import msgspec
from PySide6.QtCore import QPointF, QRectF

from waggle.core.peer_id import fingerprint
from waggle.gui.i18n.formatting import one_line
from waggle.gui.state.story.namesakes import namesakes
from waggle.gui.state.traffic_flow import silence_level
from waggle.protocol.events import PeerInfo

MOST, NAMED = 40, 12  # peers that are drawn, and those of them with a name
SLOW = 200.0  # ms of delay on the outer ring
FASTEST, INNER_RING = 0.42, 0.56  # shares of the outer ring: no delay, and the inner ring
NAME_ROOM, BESIDE_NAME = 88, 28  # pixels: of a name at least, and of its peer and the space beside it
NAME_HIGH = 18  # pixels of a name above or below its peer
NEAREST = 60.0  # pixels from the centre: a dot must fit between two avatars
LOWEST = 48.0  # pixels: half of the rings' height at least
LONGEST, TALLEST = 4.0, 1.4  # times as wide as high, and as high as wide: the rings at most
INNER, OUTER = 32.0, 18.0  # pixels at both ends of an edge that moving groups stay clear of
LARGEST, SMALLER, AROUND = 13.0, 11.0, 4.0  # pixels: radius of an avatar, where there is little room, and the outline around it


class GraphPeer(msgspec.Struct, frozen=True):
    """Everything about a peer that is drawn; the graph is painted again only if this changes."""

    id: str
    name: str
    named: bool
    place: int  # among all that are drawn, those of most use first: it chooses first where its name stands
    relay: bool
    gone: bool
    faded: bool
    reach: float
    age: int
    met: bool  # groups were exchanged


class PlacedPeer(msgspec.Struct, frozen=True):
    """A peer with its position and radius in pixels; `right`: in the right half, so its name stands right of it."""

    peer: GraphPeer
    place: QPointF
    radius: float
    right: bool


def radius_share(peer: PeerInfo) -> float:
    """Distance of a peer from the centre as a share of the outer ring, by its delay."""
    if peer.connection == "gone" or peer.delay_ms is None:
        return 1.0
    return FASTEST + (1 - FASTEST) * min(1.0, math.sqrt(max(0.0, peer.delay_ms) / SLOW))


def outer_ring(rect: QRectF, *, named: bool = True) -> tuple[float, float]:
    """Half axes of the outer ring, with room around it for names if it is `named`."""
    across, down = rect.width() * 0.42, rect.height() * 0.42
    if named:
        across = max(64.0, min(across, rect.width() / 2 - NAME_ROOM - BESIDE_NAME))
        down = max(LOWEST, min(down, rect.height() / 2 - LARGEST - NAME_HIGH))
    return min(across, LONGEST * down), min(down, TALLEST * across)


def ring_of(reach: float, outer: tuple[float, float]) -> tuple[float, float]:
    """Half axes of the ring on which peers of this reach stand: between the outer one, and the nearest clear of the centre."""
    part = (reach - FASTEST) / (1 - FASTEST)
    across, down = ((1 - part) * min(0.85 * axis, max(FASTEST * axis, NEAREST)) + part * axis for axis in outer)
    return across, down


def most_active_peers(peers: Sequence[PeerInfo], now: float) -> tuple[GraphPeer, ...]:
    """The peers seen last, then those that exchange most, ordered by a hash of their ids so that none jumps about."""
    ranked = sorted(
        peers, key=lambda peer: (peer.connection == "gone", silence_level(peer, now), -peer.used - peer.groups_pulled, peer.id)
    )[:MOST]
    by_use = sorted(ranked, key=lambda peer: (peer.connection == "gone" or bool(peer.choice), -peer.used))
    places = {peer.id: place for place, peer in enumerate(by_use)}
    several = namesakes(peers)
    ordered = sorted(ranked, key=lambda peer: hashlib.sha256(peer.id.encode("utf-8", "replace")).digest())
    names = {peer.id: _key_first(peer) if peer.name.casefold() in several else one_line(peer.name) for peer in ordered}
    return tuple(_graph_peer(peer, now, place=places[peer.id], name=names[peer.id]) for peer in ordered)


def _key_first(peer: PeerInfo) -> str:
    """The fingerprint before the name: the end of a long label is cut off."""
    return one_line(f"{fingerprint(peer.id)} · {peer.name}")


def _graph_peer(peer: PeerInfo, now: float, *, place: int, name: str) -> GraphPeer:
    gone = peer.connection == "gone"
    return GraphPeer(
        id=peer.id, name=name, named=place < NAMED, place=place, relay=peer.connection == "relay", gone=gone,
        faded=gone or bool(peer.choice), reach=round(radius_share(peer), 2), age=silence_level(peer, now),
        met=peer.received > 0 or peer.groups_pulled > 0,
    )  # fmt: skip


@lru_cache(maxsize=64)
def angles(count: int, flat: float, parts: int = 360) -> list[float]:
    """`count` angles with equal arc lengths between them, on an ellipse `flat` times as high as wide."""
    turns = [2 * math.pi * (i + 0.5) / parts for i in range(parts)]
    walked = list(accumulate(math.hypot(math.sin(turn), flat * math.cos(turn)) for turn in turns))
    return [2 * math.pi / parts * bisect_left(walked, walked[-1] * (i + 0.35) / count) for i in range(count)]


def place_peers(peers: Sequence[GraphPeer], rect: QRectF) -> list[PlacedPeer]:
    """Place peers around the centre: smaller if there are many, and smaller the longer one was not seen."""
    outer = outer_ring(rect)
    full = LARGEST if len(peers) <= 20 and outer[1] >= NEAREST else SMALLER
    placed = []
    for peer, angle in zip(peers, angles(len(peers), outer[1] / outer[0]), strict=True):
        across, down = ring_of(peer.reach, outer)
        step = QPointF(across * math.cos(angle), down * math.sin(angle))
        placed.append(PlacedPeer(peer, rect.center() + step, full * (1 - 0.1 * peer.age), step.x() >= 0))
    return placed


def point_on_edge(centre: QPointF, node: PlacedPeer, share: float) -> QPointF:
    """A point on the edge between this node (share 0) and a peer (1), clear of both avatars."""
    way = node.place - centre
    length = max(1.0, math.hypot(way.x(), way.y()))
    return centre + way * ((INNER + max(0.0, length - INNER - OUTER) * share) / length)
