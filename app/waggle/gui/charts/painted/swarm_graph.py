"""The swarm as a graph: this node in the centre, peers around it, a dashed edge is a relay, a pale one leads to a peer
that trains nothing here; cells move along while groups do.

It paints sixty frames a second only while something moves and is visible; otherwise no timer runs.
"""

import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
from PySide6.QtCore import QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetricsF, QHideEvent, QKeyEvent, QMouseEvent, QPainter, QPen, QPixmap

from waggle.gui.charts.painted.painted_chart import PaintedChart
from waggle.gui.charts.painted.swarm_graph_layout import (
    AROUND,
    MINE,
    NAMED,
    GraphPeer,
    PlacedPeer,
    most_active_peers,
    place_peers,
    point_on_edge,
)
from waggle.gui.charts.painted.swarm_graph_names import NamePlace, NamePlacer, ground_of, side_of
from waggle.gui.i18n.formatting import one_line, peer_name, plural, tr
from waggle.gui.state.traffic_flow import Direction, Flow, flows
from waggle.gui.theme.theme import Theme, tokens
from waggle.gui.widgets.drawing import draw_avatar, draw_cell, hexagon
from waggle.protocol.events import PeerInfo
from waggle.protocol.state import HALTED_PHASES, State
from waggle.protocol.text.peer_text import standing_text

MOST_CELLS, MOST_OF_ONE = 120, 12  # moving at once, and of one flow: a peer may take hundreds of groups at once
FRAME_MS = 16
APART = 0.28  # seconds between two groups of one flow
NAME_LINE = 18  # pixels: the height of a name, before text scaling
COUNT_MS = 4000  # how long a count stays, with reduced motion
STEP = {Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1}


class MovingGroup(msgspec.Struct, frozen=True):
    """A group on its way. `about` is the index of its specialty, -1 if unknown."""

    peer: str
    way: Direction
    about: int
    begun: float


def flow_words(flow: Flow, state: State) -> str:
    """A flow in words."""
    peer = state.peers.get(flow.peer)
    name = peer_name(peer.name, peer.id) if peer else one_line(flow.peer)
    count, known = len(flow.specialties), set(flow.specialties)
    if len(known) == 1 and "" not in known:
        groups = tr(one_line(flow.specialties[0]))
    else:
        groups = plural(count, "%n example", "%n examples")
    words = {"out": tr("%2 to %1"), "in": tr("%2 from %1"), "used": tr("%2 learned from %1")}[flow.way]
    return words.replace("%2", groups).replace("%1", name)


class SwarmGraph(PaintedChart):
    """Painted from consecutive States. `chosen` carries the id of the peer that was clicked or reached by an arrow key."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(theme)
        self._clock = clock
        self._state: State | None = None  # the previous one, while this was visible
        self._peers: tuple[GraphPeer, ...] = ()
        self._me, self._more, self._marked, self._halts = "", 0, "", False
        self._known: tuple[dict[str, PeerInfo], float] = ({}, 0.0)  # for tooltips: the peers, and the time of that State
        self._around: list[PlacedPeer] = []
        self._still = QPixmap()  # everything that does not move; below, what it was painted for
        self._still_of: tuple[object, ...] = ()
        self.travelling: list[MovingGroup] = []
        self.latest: tuple[Flow, str, int] | None = None  # with its words and the index of its specialty
        self.frames, self.hold, self.changed = QTimer(self), QTimer(self), QTimer(self)
        self.frames.setInterval(FRAME_MS)
        self.frames.setTimerType(Qt.TimerType.PreciseTimer)
        self.frames.timeout.connect(self._frame)
        self.hold.setSingleShot(True)
        self.hold.setInterval(COUNT_MS)
        self.hold.timeout.connect(self._stop_moving)
        self.changed.setSingleShot(True)  # at once, but in an event of its own: hundreds of peers take long to paint
        self.changed.timeout.connect(self._repaint_still)
        self.setMinimumHeight(150)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._describe(State())

    def show_state(self, state: State, now: float) -> None:
        before, self._state = self._state, state if self.isVisible() else None
        self._me, halted = state.ready.node if state.ready else "", self._halts
        self._halts = state.phase in HALTED_PHASES
        if not state.peers:
            self.latest = None
        if before is not None:
            self._start_flows(flows(before, state), state)
        if before is None or state.peers is not before.peers or state.cards is not before.cards:
            self._describe(state)
        self._known = (state.peers, now)
        peers = most_active_peers(list(state.peers.values()), now)
        if peers != self._peers or self._halts != halted:
            self._peers, self._more = peers, len(state.peers) - len(peers)
            self.changed.start()

    def mark(self, identity: str) -> None:
        """Outline a peer; empty outlines none."""
        if identity != self._marked:
            self._marked = identity
            self.update()

    def _describe(self, state: State) -> None:
        """Say the same as text, for screen readers."""
        peers = state.peers.values()
        relays = sum(peer.connection == "relay" for peer in peers)
        around = plural(len(peers), "you in the middle, %n peer around you", "you in the middle, %n peers around you")
        through = plural(relays, ", %n of them through a relay", ", %n of them through a relay") if relays else ""
        self.setAccessibleName(tr("Picture of the swarm: ") + around + through)
        busiest = heapq.nlargest(NAMED, peers, key=lambda peer: peer.used + peer.groups_pulled)
        words = [self.latest[1] + "."] if self.latest else []
        for peer in busiest:
            name, sent = peer_name(peer.name, peer.id), plural(peer.received, "%1 sent you %n example", "%1 sent you %n examples")
            words.append(
                sent.replace("%1", name) + plural(peer.groups_pulled, " and took %n of yours.", " and took %n of yours.")
            )
        self.setAccessibleDescription(" ".join(words))

    def _start_flows(self, new_flows: Sequence[Flow], state: State) -> None:
        """Show new flows: as movement, or as counts with reduced motion."""
        if not new_flows:
            return
        titles = [specialty.title for specialty in state.ready.specialties] if state.ready else []
        now = self._clock()
        for flow in new_flows:
            for i, title in enumerate(flow.specialties[:MOST_OF_ONE]):
                number = titles.index(title) if title in titles else -1
                self.travelling.append(MovingGroup(flow.peer, flow.way, number, now + i * APART))
        self.latest = (new_flows[-1], flow_words(new_flows[-1], state), number)
        del self.travelling[:-MOST_CELLS]
        (self.frames if self.theme.moves else self.hold).start()
        self.update()

    def _frame(self) -> None:
        handle = self.window().windowHandle()
        if not self.theme.moves or handle is None or not handle.isExposed():
            self._stop_moving()
            return
        ended = self._clock() - tokens().duration["flow"] / 1000
        self.travelling = [group for group in self.travelling if group.begun > ended]
        if not self.travelling:
            self.frames.stop()
        self.update()

    def _stop_moving(self) -> None:
        self.frames.stop()
        self.hold.stop()
        self.travelling.clear()
        self.update()

    def hideEvent(self, event: QHideEvent) -> None:
        """Flows while hidden are not shown later."""
        self._stop_moving()
        self._state = None
        super().hideEvent(event)

    def _repaint_still(self) -> None:
        """Paint again: peers came, left or moved."""
        self._still_of = ()
        self._paint_still(QRectF(self.rect()))
        self.update()

    def _paint_still(self, place: QRectF) -> None:
        ratio = self.devicePixelRatioF()
        frame = (self._me, self._marked, self._halts, place.size(), ratio, self.theme.mode, self.layoutDirection())
        if frame == self._still_of or place.isEmpty():  # it has no room yet
            return
        self._still_of = frame
        self._still = QPixmap((place.size() * ratio).toSize())
        self._still.setDevicePixelRatio(ratio)
        self._still.fill(Qt.GlobalColor.transparent)
        layer = QPainter(self._still)
        layer.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._draw_still(layer, place)
        layer.end()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        self._paint_still(place)
        painter.drawPixmap(QPointF(0, 0), self._still)
        if self.theme.moves:
            self._draw_travelling(painter, place.center())
        else:
            self._draw_counts(painter, place.center())
        if self.hasFocus():
            painter.setPen(QPen(self.theme.colour("focus"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(place.adjusted(1, 1, -1, -1), 8, 8)

    def _draw_still(self, painter: QPainter, place: QRectF) -> None:
        centre = place.center()
        self._around = place_peers(self._peers, place)
        for node in self._around:
            self._draw_edge(painter, centre, node)
        for node in self._around:
            painter.setOpacity(1 - 0.15 * node.peer.age)
            draw_avatar(painter, self.theme, node.peer.id, node.place, node.radius, gone=self._is_faded(node))
            painter.setOpacity(1)
            if node.peer.id == self._marked:
                painter.setPen(QPen(self.theme.colour("text"), 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawPolygon(hexagon(node.place.x(), node.place.y(), node.radius + AROUND))
        self._names(painter)
        painter.setPen(QPen(self.theme.colour("surface"), 5))
        painter.setBrush(self.theme.colour("accent"))
        painter.drawPolygon(hexagon(centre.x(), centre.y(), MINE))
        draw_avatar(painter, self.theme, self._me, centre, 19, mine=True)
        if self._more:
            painter.setFont(self.theme.font("caption"))
            painter.setPen(self.theme.colour("text_faint"))
            words = plural(self._more, "and %n more", "and %n more")
            painter.drawText(place, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignRight, words)

    def _draw_edge(self, painter: QPainter, centre: QPointF, node: PlacedPeer) -> None:
        if node.peer.gone or node.peer.blocked:
            return
        tone = self.theme.colour("control")
        tone.setAlphaF(0.6 if node.peer.trains else 0.25)
        pen = QPen(tone, 1.2)
        if node.peer.relay:
            pen.setDashPattern([4, 4])
        painter.setPen(pen)
        painter.drawLine(centre, node.place)

    def _is_faded(self, node: PlacedPeer) -> bool:
        """Whether a peer is grey: all are during a pause."""
        return node.peer.faded or self._halts

    def _names(self, painter: QPainter) -> None:
        """Draw each name that fits. The selected peer always has its name."""
        font = self.theme.font("caption")
        painter.setFont(font)
        nodes = {node.peer.id: node for node in self._around}
        for peer, (box, words) in self.name_places(QFontMetricsF(font)).items():
            painter.fillRect(ground_of(box), self.theme.colour("surface"))
            painter.setPen(self.theme.colour("text_faint" if self._is_faded(nodes[peer]) else "text_soft"))
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | side_of(box, nodes[peer]), words)

    def name_places(self, metrics: QFontMetricsF) -> dict[str, NamePlace]:
        """Where names are drawn, by peer id."""
        return NamePlacer(self._around, QRectF(self.rect()), metrics, self.theme.px(NAME_LINE)).places(self._marked)

    def _draw_travelling(self, painter: QPainter, centre: QPointF) -> None:
        now, span = self._clock(), tokens().duration["flow"] / 1000
        places = {node.peer.id: node for node in self._around}
        for moving in self.travelling:
            gone, node = (now - moving.begun) / span, places.get(moving.peer)
            if node is None or not 0 <= gone < 1:
                continue
            eased = (1 - math.cos(math.pi * gone)) / 2
            if moving.way == "used":
                tone = self.theme.colour("peer")
                tone.setAlphaF(1 - gone)
                painter.setPen(QPen(tone, 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawPolygon(hexagon(centre.x(), centre.y(), 27 + 12 * eased))
                painter.drawLine(point_on_edge(centre, node, 0), point_on_edge(centre, node, 1))
            else:
                place = point_on_edge(centre, node, eased if moving.way == "out" else 1 - eased)
                draw_cell(painter, self.theme, place, 4.5, moving.about, mine=moving.way == "out")

    def _draw_counts(self, painter: QPainter, centre: QPointF) -> None:
        """With reduced motion: highlight the edge for a while, with the number of groups."""
        places = {node.peer.id: node for node in self._around}
        counts = Counter((moving.peer, moving.way) for moving in self.travelling)
        painter.setFont(self.theme.font("tag"))
        for (peer, way), count in counts.items():
            node = places.get(peer)
            if node is None:
                continue
            role = "accent_line" if way == "out" else "peer"
            painter.setPen(QPen(self.theme.colour(role), 2.5))
            painter.drawLine(point_on_edge(centre, node, 0), point_on_edge(centre, node, 1))
            if way != "used":
                middle = point_on_edge(centre, node, 0.3 if way == "in" else 0.7)
                painter.setPen(QPen(self.theme.colour(role), 1.5))
                painter.setBrush(self.theme.colour("surface"))
                painter.drawPolygon(hexagon(middle.x(), middle.y(), 11))
                painter.setPen(self.theme.colour("text"))
                painter.drawText(QRectF(middle.x() - 11, middle.y() - 11, 22, 22), Qt.AlignmentFlag.AlignCenter, str(count))

    def _at(self, point: QPointF) -> PlacedPeer | None:
        near = [
            node for node in self._around if math.hypot(node.place.x() - point.x(), node.place.y() - point.y()) < node.radius + 4
        ]
        return near[-1] if near else None

    def about(self, identity: str) -> str:
        """The tooltip of a peer: its name and the verdict on it."""
        peers, now = self._known
        peer = peers.get(identity)
        return f"{peer_name(peer.name, peer.id)}: {tr(standing_text(peer, now))}" if peer else ""

    def words_at(self, point: QPointF) -> str:
        node = self._at(point)
        return self.about(node.peer.id) if node else ""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        node = self._at(event.position())
        if node is not None:
            self.chosen.emit(node.peer.id)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrow keys select the next peer around the ring."""
        step = STEP.get(Qt.Key(event.key()))
        if step is None or not self._peers:
            super().keyPressEvent(event)
            return
        names = [peer.id for peer in self._peers]
        place = names.index(self._marked) + step if self._marked in names else 0
        self.chosen.emit(names[place % len(names)])
