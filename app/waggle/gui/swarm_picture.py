"""The swarm as a picture: me in the middle, near is fast, a dashed line is a relay, a dot says that groups travel."""

import hashlib
import math
from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from waggle.gui.look import Look
from waggle.gui.paint import Painted, draw_avatar, hexagon
from waggle.gui.words import one_line, plural, tr
from waggle.protocol.events import PeerInfo

MOST, NAMED = 24, 10
SLOW = 200.0  # ms that stand on the outer ring
NAME_ROOM = 116
NEAREST = 74.0  # pixels: two dots must find room between two avatars
INNER, OUTER = 32.0, 18.0  # radii that a tie's dots stay clear of


class Placed(msgspec.Struct, frozen=True):
    peer: PeerInfo
    place: QPointF
    right: bool
    named: bool

    @property
    def faded(self) -> bool:
        return self.peer.connection == "gone" or bool(self.peer.choice)


def reach(peer: PeerInfo) -> float:
    """How far out a peer stands, in shares of the outer ring."""
    if peer.connection == "gone" or peer.delay_ms is None:
        return 1.0
    return 0.42 + 0.58 * min(1.0, math.sqrt(max(0.0, peer.delay_ms) / SLOW))


def ring(rect: QRectF) -> tuple[float, float]:
    """The outer ring's half axes: names must find room beside it."""
    return max(80.0, min(rect.width() * 0.36, rect.width() / 2 - NAME_ROOM)), rect.height() * 0.42


def arranged(peers: Sequence[PeerInfo], rect: QRectF) -> list[Placed]:
    """Evenly around the middle, in an order that a peer's identity decides, so that nobody jumps about."""
    busiest = sorted(peers, key=lambda peer: (peer.connection == "gone", -peer.used - peer.taken, peer.id))[:MOST]
    named = {peer.id for peer in busiest[:NAMED]}
    ordered = sorted(busiest, key=lambda peer: hashlib.sha256(peer.id.encode("utf-8", "replace")).digest())
    across, down = ring(rect)
    made = []
    for i, peer in enumerate(ordered):
        angle = 2 * math.pi * (i + 0.35) / len(ordered)
        share = reach(peer)
        step = QPointF(across * math.cos(angle), down * math.sin(angle))
        share = max(share, min(1.0, NEAREST / max(1.0, math.hypot(step.x(), step.y()))))
        place = rect.center() + step * share
        made.append(Placed(peer, place, step.x() >= 0, peer.id in named))
    return made


class SwarmPicture(Painted):
    """Painted from the peers known; says how many in its accessible name."""

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._me, self._peers = "", ()  # type: tuple[str, tuple[PeerInfo, ...]]
        self.setMinimumHeight(150)

    def show_peers(self, me: str, peers: Sequence[PeerInfo]) -> None:
        if (me, tuple(peers)) == (self._me, self._peers):
            return
        self._me, self._peers = me, tuple(peers)
        relays = sum(peer.connection == "relay" for peer in peers)
        around = plural(len(peers), "you in the middle, %n peer around you", "you in the middle, %n peers around you")
        through = plural(relays, ", %n of them through a relay", ", %n of them through a relay") if relays else ""
        self.setAccessibleName(tr("Picture of the swarm: ") + around + through)
        self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        centre = place.center()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(self.look.colour("border"), 1))
        across, down = ring(place)
        for share in (0.56, 1.0):
            painter.drawEllipse(centre, across * share, down * share)
        around = arranged(self._peers, place)
        for one in around:
            self._tie(painter, centre, one)
        for one in around:
            draw_avatar(painter, self.look, one.peer.id, one.place, 13, gone=one.faded)
            if one.named:
                self._name(painter, one)
        painter.setPen(QPen(self.look.colour("surface"), 5))
        painter.setBrush(self.look.colour("accent"))
        painter.drawPolygon(hexagon(centre.x(), centre.y(), 25))
        draw_avatar(painter, self.look, self._me, centre, 19, mine=True)

    def _tie(self, painter: QPainter, centre: QPointF, one: Placed) -> None:
        if one.peer.connection == "gone":
            return
        tone = self.look.colour("control")
        tone.setAlphaF(0.55)
        pen = QPen(tone, 1.2)
        if one.peer.connection == "relay":
            pen.setDashPattern([4, 4])
        painter.setPen(pen)
        painter.drawLine(centre, one.place)
        painter.setPen(Qt.PenStyle.NoPen)
        way = one.place - centre
        length = max(1.0, math.hypot(way.x(), way.y()))
        free = length - INNER - OUTER
        for share, role, busy in ((0.30, "peer", one.peer.received), (0.70, "accent_line", one.peer.taken)):
            if busy:
                painter.setBrush(self.look.colour(role))
                painter.drawEllipse(centre + way * ((INNER + free * share) / length), 4, 4)

    def _name(self, painter: QPainter, one: Placed) -> None:
        font = self.look.font("caption")
        metrics = QFontMetricsF(font)
        words = metrics.elidedText(one_line(one.peer.name), Qt.TextElideMode.ElideRight, NAME_ROOM)
        width = metrics.horizontalAdvance(words)
        left = one.place.x() + 19 if one.right else one.place.x() - 19 - width
        box = QRectF(left, one.place.y() - 9, width + 2, 18)
        painter.fillRect(box.adjusted(-2, 2, 2, -2), self.look.colour("surface"))
        painter.setFont(font)
        painter.setPen(self.look.colour("text_faint" if one.faded else "text_soft"))
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, words)
