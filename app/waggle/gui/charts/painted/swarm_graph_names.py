"""Where names stand in the swarm graph: clear of avatars and of each other, and of edges where that is possible. No painting."""

from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF

from waggle.gui.charts.painted.swarm_graph_layout import AROUND, MINE, NAME_ROOM, PlacedPeer
from waggle.gui.widgets.drawing import words_in_lines

WHOLE_NAME, LINES = 260, 3  # pixels of a name where there is room, and lines of it where there is less
SHIFTED = 8  # pixels that a name above or below an avatar reaches beyond its middle, where it stands aside

NamePlace = tuple[QRectF, str]  # the room of a name, and the lines of it that are drawn


class NamePlacer:
    """Places the names of the peers `around` the middle of a `picture`; names are `high` pixels high."""

    def __init__(self, around: Sequence[PlacedPeer], picture: QRectF, metrics: QFontMetricsF, high: float) -> None:
        self._around, self._picture, self._metrics, self._high = around, picture, metrics, high
        self._avatars = [(node.peer.id, _box(node.place, node.radius - 3)) for node in around]  # a hexagon has no corners there
        self._avatars.append(("", _box(picture.center(), MINE)))
        self._edges = [node for node in around if not (node.peer.gone or node.peer.blocked)]

    def places(self, marked: str) -> dict[str, NamePlace]:
        """The places by peer id. The most useful peers choose first, so that no name moves when a peer is `marked`.

        If the name of the marked peer fits nowhere, it replaces the names in its way.
        """
        placed: dict[str, NamePlace] = {}
        for node in sorted(self._around, key=lambda node: node.peer.place):
            if node.peer.named and (name := self._place(node, placed)):
                placed[node.peer.id] = name
        chosen = next((node for node in self._around if node.peer.id == marked), None)
        if chosen is not None and marked not in placed:
            box, words = self._place(chosen, {}) or self._any_place(chosen)
            placed = {peer: name for peer, name in placed.items() if not ground_of(name[0]).intersects(ground_of(box))}
            placed[marked] = box, words
        return placed

    def _place(self, node: PlacedPeer, placed: Mapping[str, NamePlace]) -> NamePlace | None:
        """Where the name of a peer fits, and as much of it as fits; None: nowhere."""
        others = [box for peer, box in self._avatars if peer != node.peer.id]
        others += [ground_of(box) for box, _ in placed.values()]
        for words in self._forms(node):
            first_free = None
            for box in self._boxes(node, words):
                ground = ground_of(box)
                if any(ground.intersects(other) for other in others):
                    continue
                if not self._is_crossed(ground, node):
                    return box, words
                first_free = first_free if first_free is not None else box
            if first_free is not None:
                return first_free, words
        return None

    def _forms(self, node: PlacedPeer) -> Iterator[str]:
        """What may be drawn of a name: all of it in one line or in several, and only where that has no room, its beginning."""
        name, beside = node.peer.name, self._room_beside(node)
        room = min(WHOLE_NAME, beside)
        if self._cut(node, room) == name:
            yield name
        elif words := self._in_lines(name, room):
            yield words
        for less in (room, min(NAME_ROOM, beside)):
            words = self._cut(node, less)
            if words != name and less >= NAME_ROOM:  # the beginning of a name says little
                yield words

    def _in_lines(self, name: str, room: float) -> str:
        """The name in up to LINES lines of this width; empty if one of its words is longer, or all of them are too many."""
        lines = words_in_lines(self._metrics, name, room, LINES)
        return "\n".join(lines) if max(map(self._metrics.horizontalAdvance, lines)) <= room else ""

    def _any_place(self, node: PlacedPeer) -> NamePlace:
        """Where to draw a name that fits nowhere."""
        words = self._cut(node, min(NAME_ROOM, self._room_beside(node)))
        return self._boxes(node, words)[0], words

    def _cut(self, node: PlacedPeer, room: float) -> str:
        return self._metrics.elidedText(node.peer.name, Qt.TextElideMode.ElideRight, room)

    def _is_crossed(self, box: QRectF, node: PlacedPeer) -> bool:
        """Whether the edge to another peer runs through a box."""
        centre, sides = self._picture.center(), _sides(box)
        for other in self._edges:
            if other is node or _lie_apart(box, centre, other.place):
                continue
            edge = QLineF(centre, other.place)
            if any(edge.intersects(side)[0] == QLineF.IntersectionType.BoundedIntersection for side in sides):
                return True
        return False

    def _boxes(self, node: PlacedPeer, words: str) -> list[QRectF]:
        """Where the name of a peer may stand, the best first: on its outer side, above or below it, and on its inner side."""
        lines = words.split("\n")
        x, y, width = node.place.x(), node.place.y(), max(map(self._metrics.horizontalAdvance, lines)) + 2
        high = self._high + (len(lines) - 1) * self._metrics.lineSpacing()
        sides = [x + 19, x - 17 - width]
        outer, inner = sides if node.right else reversed(sides)
        away = node.radius + 2  # the line around a marked one still is clear of the letters
        level, above, below = y - high / 2, y - away - high, y + away
        ends = (above, below) if y < self._picture.center().y() else (below, above)
        aside = x - SHIFTED if node.right else x + SHIFTED - width
        upright = [(start, end) for end in ends for start in (x - width / 2, aside)]
        corners = [*upright, (outer, level), (inner, level)] if node.upright else [(outer, level), *upright, (inner, level)]
        first, *others = [QRectF(*corner, width, high) for corner in corners]
        inside = self._picture.adjusted(0, 2 - AROUND, 0, AROUND - 2)  # letters are lower than their line
        return [first, *(box for box in others if inside.contains(box))]

    def _room_beside(self, node: PlacedPeer) -> float:
        """Pixels between an avatar and the edge of the picture."""
        return (self._picture.width() - node.place.x() if node.right else node.place.x()) - 22


def side_of(box: QRectF, node: PlacedPeer) -> Qt.AlignmentFlag:
    """On which side the lines of a name begin or end: the one that is nearer to its avatar."""
    if box.left() >= node.place.x():
        return Qt.AlignmentFlag.AlignLeft
    return Qt.AlignmentFlag.AlignRight if box.right() <= node.place.x() else Qt.AlignmentFlag.AlignHCenter


def ground_of(box: QRectF) -> QRectF:
    """The ground below a name."""
    return box.adjusted(-2, 2, 2, -2)


def _lie_apart(box: QRectF, start: QPointF, end: QPointF) -> bool:
    """Whether both ends of a line are beyond the same side of a box: then it cannot cross it. Most are, and this is fast."""
    x, y, end_x, end_y = start.x(), start.y(), end.x(), end.y()
    beside = max(x, end_x) < box.left() or min(x, end_x) > box.right()
    return beside or max(y, end_y) < box.top() or min(y, end_y) > box.bottom()


def _sides(box: QRectF) -> tuple[QLineF, ...]:
    """Both diagonals and both long sides: a straight line through the box crosses one of them."""
    corners = box.topLeft(), box.topRight(), box.bottomRight(), box.bottomLeft()
    return tuple(QLineF(corners[first], corners[last]) for first, last in ((0, 2), (1, 3), (0, 1), (3, 2)))


def _box(centre: QPointF, radius: float) -> QRectF:
    return QRectF(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius)
