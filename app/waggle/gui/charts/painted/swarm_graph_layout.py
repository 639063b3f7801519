"""Layout of the swarm graph: which peers are drawn, where and how large. No painting."""

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
from waggle.protocol.state import trains_with

MOST, NAMED = 40, 12  # peers that are drawn, and those of them with a name
NAME_ROOM, BESIDE_NAME = 88, 28  # pixels: of a name at least, and of its peer and the space beside it
NAME_HIGH = 18  # pixels of a name above or below its peer
NEAREST, CROWDED_NEAREST = 60.0, 44.0  # pixels from the centre: a dot must fit between two avatars
LOWEST = 48.0  # pixels: half of the ring's height at least
APART_NAMED, APART = 112, 30  # pixels along the ring between peers with names, and between any two before they stand in rows
MOST_ROWS, TALLEST = 3, 1.4  # rows at most, and times as high as wide
UPRIGHT = 0.55  # the cosine of the angle at which a peer is at the top or bottom of the ring
INNER, OUTER = 32.0, 18.0  # pixels at both ends of an edge that moving groups stay clear of
LARGEST, SMALLER, TINY = 13.0, 11.0, 7.0  # pixels: radius of an avatar, where there is little room, and where there is least
AROUND = 4.0  # pixels: the outline around an avatar
MINE = 25  # pixels: radius of this node


class GraphPeer(msgspec.Struct, frozen=True):
    """Everything about a peer that is drawn; the graph is painted again only if this changes."""

    id: str
    name: str
    named: bool
    place: int  # among all that are drawn, those of most use first: it chooses first where its name stands
    relay: bool
    gone: bool
    faded: bool
    age: int
    blocked: bool
    trains: bool  # with this node


class PlacedPeer(msgspec.Struct, frozen=True):
    """A peer with its position and radius in pixels.

    Its name stands above or below it if it is `upright`, at the top or bottom of the ring; else beside it, `right` or left.
    """

    peer: GraphPeer
    place: QPointF
    radius: float
    right: bool
    upright: bool


def ring(rect: QRectF, count: int = 0) -> tuple[float, float]:
    """Half axes of the ring of so many peers, with room around it for names.

    A circle; longer if their names need it, and higher where more peers than have names stand in a narrow place.
    """
    across, down = rect.width() * 0.42, rect.height() * 0.42
    if count:
        across = max(64.0, min(across, rect.width() / 2 - NAME_ROOM - BESIDE_NAME))
        down = max(LOWEST, min(down, rect.height() / 2 - LARGEST - NAME_HIGH))
    long = 2 * (min(count, NAMED) * APART_NAMED / (2 * math.pi)) ** 2 - down**2  # so that the ring is long enough
    return min(across, max(down, math.sqrt(max(0.0, long)))), min(down, across * (TALLEST if count > NAMED else 1.0))


def rows_of(count: int, axes: tuple[float, float]) -> int:
    """In how many rows, one inside the other, so many peers stand, so that they do not overlap."""
    return min(MOST_ROWS, math.ceil(count * APART / circumference(axes))) if count else 1


def most_active_peers(peers: Sequence[PeerInfo], now: float) -> tuple[GraphPeer, ...]:
    """The peers seen last, then those that exchange most, ordered by a hash of their ids so that none jumps about."""
    ranked = sorted(
        peers, key=lambda peer: (peer.connection == "gone", silence_level(peer, now), -peer.used - peer.groups_pulled, peer.id)
    )[:MOST]
    by_use = sorted(ranked, key=lambda peer: (is_faded(peer), -peer.used))
    places = {peer.id: place for place, peer in enumerate(by_use)}
    several = namesakes(peers)
    ordered = sorted(ranked, key=lambda peer: hashlib.sha256(peer.id.encode("utf-8", "replace")).digest())
    names = {peer.id: _key_first(peer) if peer.name.casefold() in several else one_line(peer.name) for peer in ordered}
    return tuple(_graph_peer(peer, now, place=places[peer.id], name=names[peer.id]) for peer in ordered)


def is_faded(peer: PeerInfo) -> bool:
    """Whether a peer is shown in grey: it is gone, or was muted or blocked."""
    return peer.connection == "gone" or bool(peer.choice)


def _key_first(peer: PeerInfo) -> str:
    """The fingerprint before the name: the end of a long label is cut off."""
    return one_line(f"{fingerprint(peer.id)} · {peer.name}")


def _graph_peer(peer: PeerInfo, now: float, *, place: int, name: str) -> GraphPeer:
    return GraphPeer(
        id=peer.id, name=name, named=place < NAMED, place=place, relay=peer.connection == "relay",
        gone=peer.connection == "gone", faded=is_faded(peer), age=silence_level(peer, now), blocked=peer.choice == "blocked",
        trains=trains_with(peer),
    )  # fmt: skip


def circumference(axes: tuple[float, float]) -> float:
    """About the length of an ellipse, from its half axes."""
    return 2 * math.pi * math.hypot(*axes) / math.sqrt(2)


@lru_cache(maxsize=64)
def angles(count: int, axes: tuple[float, float], parts: int = 360) -> list[float]:
    """`count` angles on an ellipse with these half axes.

    They have equal arc lengths between them; where all have names and these need more room, there are fewer at the top and
    bottom, where a name takes its width, than at the sides, where it takes the height of its peer.
    """
    across, down = axes
    crowded = count <= NAMED and circumference(axes) < count * APART_NAMED - 1
    turns = [2 * math.pi * (i + 0.5) / parts for i in range(parts)]
    steps = [(across * abs(math.sin(turn)), down * abs(math.cos(turn))) for turn in turns]
    walked = list(accumulate(x / NAME_ROOM + y / (2 * LARGEST) if crowded else math.hypot(x, y) for x, y in steps))
    return [2 * math.pi / parts * bisect_left(walked, walked[-1] * (i + 0.35) / count) for i in range(count)]


def place_peers(peers: Sequence[GraphPeer], rect: QRectF) -> list[PlacedPeer]:
    """Place peers around the centre: smaller if there are many, and smaller the longer one was not seen."""
    axes = ring(rect, len(peers))
    rows = rows_of(len(peers), axes)
    full = TINY if rows > 1 else LARGEST if len(peers) <= 20 and axes[1] >= NEAREST else SMALLER
    nearest = CROWDED_NEAREST if rows > 1 else NEAREST
    placed = []
    for number, (peer, angle) in enumerate(zip(peers, angles(len(peers), axes), strict=True)):
        across, down = (axis - (axis - min(0.85 * axis, nearest)) * (number % rows) / rows for axis in axes)
        step = QPointF(across * math.cos(angle), down * math.sin(angle))
        radius, upright = full * (1 - 0.1 * peer.age), abs(math.cos(angle)) < UPRIGHT
        placed.append(PlacedPeer(peer, rect.center() + step, radius, right=step.x() >= 0, upright=upright))
    return placed


def point_on_edge(centre: QPointF, node: PlacedPeer, share: float) -> QPointF:
    """A point on the edge between this node (share 0) and a peer (1), clear of both avatars."""
    way = node.place - centre
    length = max(1.0, math.hypot(way.x(), way.y()))
    return centre + way * ((INNER + max(0.0, length - INNER - OUTER) * share) / length)
