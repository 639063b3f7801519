"""Home's answer to "Does sharing help?", and who is here."""

import math
from collections.abc import Iterable

from msgspec.structs import replace
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from waggle.gui.charts.painted.swarm_graph import SwarmGraph
from waggle.gui.charts.painted.swarm_graph_layout import is_faded
from waggle.gui.i18n.formatting import figure, listed, one_line, tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.state.story.learning_story import INVITE, Sharing, company, company_words, sharing_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.drawing import draw_avatar, hexagon
from waggle.gui.widgets.layout import column, restyle, row
from waggle.gui.widgets.painted_widgets import PaintedWidget
from waggle.gui.widgets.text import text
from waggle.protocol.events import PeerInfo
from waggle.protocol.state import HALTED_PHASES, State

ALONE, LEAST = 60, 170  # pixels of height of the picture, before text scaling: of you, and with peers and their names
AVATAR, APART = 12, 30  # pixels, before text scaling: the radius of an avatar in a row, and between two of them
SPOKEN = 5  # names that a screen reader reads
CELL, CELLS = 46, 6  # pixels, before text scaling: the radius of a free cell at most; and how many there are


class AvatarRow(PaintedWidget):
    """The peers where their picture has no room: those who are here first, then those of most use.

    Each has a line with its name if there is room for all of these, else they stand side by side.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._peers: tuple[tuple[str, str, bool], ...] = ()  # id, name, and whether it is grey

    def show_peers(self, peers: Iterable[PeerInfo], *, halts: bool) -> None:
        """`halts`: training pauses, so that all are grey."""
        ranked = sorted(peers, key=lambda peer: (peer.connection == "gone", bool(peer.choice), -peer.used, peer.id))
        in_order = tuple((peer.id, one_line(peer.name) or tr("A peer"), halts or is_faded(peer)) for peer in ranked)
        if in_order != self._peers:
            self._peers = in_order
            self.setAccessibleName(listed([name for _, name, _ in in_order], SPOKEN))
            self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        radius, apart = self.theme.px(AVATAR), self.theme.px(APART)
        if len(self._peers) * apart <= place.height():
            self._draw_names(painter, place)
            return
        place.setTop(place.bottom() - 2 * radius - 4)  # on the line that says how many they are
        room = int(place.width()) // apart
        fitting = self._peers if len(self._peers) <= room else self._peers[: room - 1]
        for number, (identity, _name, gone) in enumerate(fitting):
            centre = QPointF(place.left() + radius + number * apart, place.center().y())
            draw_avatar(painter, self.theme, identity, centre, radius, gone=gone)
        if len(fitting) < len(self._peers):
            rest = place.adjusted(len(fitting) * apart, 0, 0, 0)
            painter.setFont(self.theme.font("small"))
            painter.setPen(self.theme.colour("text_soft"))
            align = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(rest, align, f"+{figure(len(self._peers) - len(fitting))}")

    def _draw_names(self, painter: QPainter, place: QRectF) -> None:
        radius, apart = self.theme.px(AVATAR), self.theme.px(APART)
        painter.setFont(self.theme.font("small"))
        for number, (identity, name, gone) in enumerate(reversed(self._peers)):
            middle = place.bottom() - (number + 0.5) * apart
            draw_avatar(painter, self.theme, identity, QPointF(place.left() + radius, middle), radius, gone=gone)
            line = QRectF(place.left() + 2 * radius + 8, middle - radius, place.width() - 2 * radius - 8, 2 * radius)
            painter.setPen(self.theme.colour("text_faint" if gone else "text"))
            words = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, int(line.width()))
            painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)


class FreeCells(PaintedWidget):
    """This node in its comb: the cells around it are free, or those who are connected stand there before any trains with it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._node, self._peers = "", tuple[str, ...]()

    def show_node(self, node: str, peers: tuple[str, ...]) -> None:
        """`peers`: the identities of CELLS peers at most."""
        if (node, peers) != (self._node, self._peers):
            self._node, self._peers = node, peers
            self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        radius = min(self.theme.px(CELL), place.height() / 5.2, place.width() / 5.4)
        apart, middle = math.sqrt(3) * (radius + 2), place.center()
        painter.setBrush(self.theme.colour("sunken"))
        painter.setPen(QPen(self.theme.colour("border"), 1))
        turns = [math.radians(60 * turn) for turn in range(CELLS)]
        around = [middle + QPointF(apart * math.cos(turn), apart * math.sin(turn)) for turn in turns]
        for cell in around:
            painter.drawPolygon(hexagon(cell.x(), cell.y(), radius))
        for cell, peer in zip(around, self._peers, strict=False):
            draw_avatar(painter, self.theme, peer, cell, radius * 0.5)
        painter.setBrush(self.theme.colour("accent_soft"))
        painter.setPen(QPen(self.theme.colour("accent"), 2))
        painter.drawPolygon(hexagon(middle.x(), middle.y(), radius))
        draw_avatar(painter, self.theme, self._node, middle, radius * 0.6, mine=True)


class PicturePlace(QWidget):
    """The room of a picture, which asks for none: shows it from so many pixels of height on, `low` below that, or `empty`."""

    def __init__(self, picture: QWidget, low: QWidget, empty: QWidget, least: int) -> None:
        super().__init__()
        self._picture, self._low, self._empty, self._least, self._is_empty = picture, low, empty, least, True
        for each in (picture, low, empty):
            each.setParent(self)
            each.setMinimumHeight(0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_from(self, least: int, *, is_empty: bool) -> None:
        """Show the picture from so many pixels of height on, or that nobody trains with this node yet."""
        self._least, self._is_empty = least, is_empty
        self._choose()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._choose()

    def _choose(self) -> None:
        fitting = self._empty if self._is_empty else self._picture if self.height() >= self._least else self._low
        for each in (self._picture, self._low, self._empty):
            each.setGeometry(self.rect())
            each.setVisible(each is fitting)


class SharingCard(QFrame):
    """`page_wanted` carries a page of the window and its part."""

    page_wanted = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._theme, self._is_resting = theme, True
        self._sharing = Sharing("", "")
        self.says = text(theme, "", "title", wrap=True)
        self.detail = text(theme, "", "small", "soft", wrap=True)
        self._here = text(theme, "", "small", "soft", wrap=True)
        self.link = Button(theme, "", small=True)
        self.link.clicked.connect(lambda: self.page_wanted.emit(*self._sharing.offers))
        self._picture = SwarmGraph(theme)
        self._row, self._free = AvatarRow(theme), FreeCells(theme)
        self._counted: dict[str, PeerInfo] = {}  # the peers in the picture
        self._place = PicturePlace(self._picture, self._row, self._free, theme.px(LEAST))
        self._box = column(
            text(theme, tr("Does sharing help?"), "label", "soft"), self.says, self.detail, (self._place, 1000), self._here,
            None, row(self.link, None, margins=(0, 4, 0, 0)), gap=6, margins=(20, 14, 20, 16),
        )  # fmt: skip
        self.setLayout(self._box)

    def set_compact(self, compact: bool) -> None:
        """In the compact form with smaller words and less space between them."""
        self._box.setSpacing(2 if compact else 6)
        self._box.setContentsMargins(20, 10 if compact else 14, 20, 10 if compact else 16)
        self.says.setFont(self._theme.font("heading" if compact else "title"))

    def show_state(self, state: State, now: float) -> None:
        sharing = self._sharing = sharing_text(state)
        self.says.setText(sharing.says)
        restyle(self.says, "tone", sharing.tone)
        self.detail.setText(sharing.detail)
        self.detail.setVisible(bool(sharing.detail))
        self.link.setVisible(bool(sharing.offers[0]))
        self.link.say(tr("Invite someone") if sharing.offers == INVITE else tr("Compare with training alone"))
        self._is_resting = bool(why_unavailable(state))
        self._place.setVisible(not self._is_resting)
        if not self._place.isHidden():
            counted = {peer.id: peer for peer in company(state)}
            if counted != self._counted:  # else the picture would be described anew with each event
                self._counted = counted
            none_trains = not state.members and len(counted) <= CELLS
            self._place.show_from(self._theme.px(LEAST if counted else ALONE), is_empty=none_trains)
            self._free.show_node(state.ready.node if state.ready is not None else "", tuple(sorted(counted))[:CELLS])
            self._picture.show_state(replace(state, peers=self._counted), now)
            self._row.show_peers(counted.values(), halts=state.phase in HALTED_PHASES)
        words = "" if self._is_resting else company_words(state, brief=True)
        if not (words or self._is_resting or state.peers or state.reach == "solo"):
            words = tr("Nobody else is here yet")
        self._here.setText(words)
        self._here.setVisible(bool(words))

    @property
    def is_resting(self) -> bool:
        """Whether no engine runs, so that nobody is connected and the card ends at its words."""
        return self._is_resting
