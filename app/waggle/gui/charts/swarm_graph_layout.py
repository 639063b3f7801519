"""Where everybody stands in the picture of the swarm: who is drawn, how near, how large. No painting."""

import hashlib
import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import msgspec
from PySide6.QtCore import QPointF, QRectF

from waggle.gui.i18n.formatting import one_line
from waggle.gui.state.traffic_flow import silence_level
from waggle.protocol.events import PeerInfo

MOST, NAMED = 40, 10  # peers that are drawn, and of those the ones that are named
SLOW = 200.0  # ms that stand on the outer ring
NAME_ROOM = 116
NEAREST = 74.0  # pixels: two dots must find room between two avatars
INNER, OUTER = 32.0, 18.0  # radii that whatever is on a tie stays clear of
LARGEST, AROUND = 13.0, 4.0  # the radius of an avatar, and how much larger the line around the chosen one's is


class GraphPeer(msgspec.Struct, frozen=True):
    """All of a peer that is drawn: a picture is painted anew only where this has changed."""

    id: str
    name: str
    named: bool
    relay: bool
    gone: bool
    faded: bool
    reach: float
    age: int
    met: bool  # groups went one way or the other


class PlacedPeer(msgspec.Struct, frozen=True):
    peer: GraphPeer
    place: QPointF
    radius: float
    right: bool


def radius_share(peer: PeerInfo) -> float:
    """How far out a peer stands, in shares of the outer ring."""
    if peer.connection == "gone" or peer.delay_ms is None:
        return 1.0
    return 0.42 + 0.58 * min(1.0, math.sqrt(max(0.0, peer.delay_ms) / SLOW))


def outer_ring(rect: QRectF) -> tuple[float, float]:
    """The outer ring's half axes: names must find room beside it, and the chosen avatar above and below."""
    down = min(rect.height() * 0.42, rect.height() / 2 - LARGEST - AROUND - 2)
    return max(80.0, min(rect.width() * 0.36, rect.width() / 2 - NAME_ROOM)), down


def most_active_peers(peers: Sequence[PeerInfo], now: float) -> tuple[GraphPeer, ...]:
    """Those seen last, and of them those that exchange most, in an order that their identity decides: nobody jumps about."""
    ranked = sorted(
        peers, key=lambda peer: (peer.connection == "gone", silence_level(peer, now), -peer.used - peer.taken, peer.id)
    )[:MOST]
    named = {peer.id for peer in ranked[:NAMED]}
    ordered = sorted(ranked, key=lambda peer: hashlib.sha256(peer.id.encode("utf-8", "replace")).digest())
    return tuple(_graph_peer(peer, now, named=peer.id in named) for peer in ordered)


def _graph_peer(peer: PeerInfo, now: float, *, named: bool) -> GraphPeer:
    gone = peer.connection == "gone"
    return GraphPeer(
        id=peer.id, name=one_line(peer.name), named=named, relay=peer.connection == "relay", gone=gone,
        faded=gone or bool(peer.choice), reach=round(radius_share(peer), 2), age=silence_level(peer, now),
        met=peer.received > 0 or peer.taken > 0,
    )  # fmt: skip


@lru_cache(maxsize=64)
def angles(count: int, flat: float, parts: int = 360) -> list[float]:
    """So many places on an ellipse `flat` times as high as wide, the same way apart along it."""
    turns = [2 * math.pi * (i + 0.5) / parts for i in range(parts)]
    walked = list(accumulate(math.hypot(math.sin(turn), flat * math.cos(turn)) for turn in turns))
    return [2 * math.pi / parts * bisect_left(walked, walked[-1] * (i + 0.35) / count) for i in range(count)]


def place_peers(peers: Sequence[GraphPeer], rect: QRectF) -> list[PlacedPeer]:
    """Around the middle; the more there are, the smaller, and whoever was not seen for a while is smaller yet."""
    across, down = outer_ring(rect)
    full = LARGEST if len(peers) <= 20 else 11.0
    placed = []
    for peer, angle in zip(peers, angles(len(peers), down / across), strict=True):
        step = QPointF(across * math.cos(angle), down * math.sin(angle))
        share = max(peer.reach, min(1.0, NEAREST / max(1.0, math.hypot(step.x(), step.y()))))
        placed.append(PlacedPeer(peer, rect.center() + step * share, full * (1 - 0.1 * peer.age), step.x() >= 0))
    return placed


def point_on_edge(centre: QPointF, node: PlacedPeer, share: float) -> QPointF:
    """A place on the tie between me, at 0, and a peer, at 1, clear of both."""
    way = node.place - centre
    length = max(1.0, math.hypot(way.x(), way.y()))
    return centre + way * ((INNER + (length - INNER - OUTER) * share) / length)
