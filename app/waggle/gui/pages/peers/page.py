"""The page Peers: a picture of the swarm, how others reach this computer, a table of peers, and the chosen peer."""

from functools import cached_property

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QSizePolicy, QSpacerItem, QWidget

from waggle.gui.charts.painted.swarm_graph import SwarmGraph
from waggle.gui.i18n.formatting import figure, one_line, plural, tr
from waggle.gui.i18n.placeholders import why_unavailable, without_connections
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.page import Page
from waggle.gui.pages.peers.nobody_yet import NobodyYet
from waggle.gui.pages.peers.peer_details import PeerDetails
from waggle.gui.pages.peers.peer_table import PeerTableModel, PeerTableView
from waggle.gui.state.story.learning_story import company_words
from waggle.gui.state.traffic_flow import Flow
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.page_header import header_margins, page_header
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.copy_button import CopyButton
from waggle.gui.widgets.controls.inputs import TextField
from waggle.gui.widgets.drawing import draw_cell
from waggle.gui.widgets.layout import UNLIMITED, as_widget, card, column, frame, in_the_middle, row
from waggle.gui.widgets.painted_widgets import Icon, PaintedWidget
from waggle.gui.widgets.table import WholeRows
from waggle.gui.widgets.text import ElidedLabel, set_tip, text
from waggle.protocol.events import PeerInfo
from waggle.protocol.state import State, trains_with

FEW = 8  # with more peers than this, they can be searched
REACH, PICTURE = 280, 330  # pixels of width at a text size of 100%
ALONE = 820  # pixels before text scaling: the width of the card where nobody is
HIGHEST, FLATTEST = 360, 4  # pixels of height, and parts of its width: no higher is the picture of few peers
LARGE = 400  # pixels of height: a picture that is at least as high may stand above the table in a wide window, too
BESIDE = 80  # pixels: the margins of page and card
MEANINGS_EDGE = 12  # pixels before what the columns mean: the margin of a cell
TABLE_EDGES = (6, 2, 6, 8)  # pixels: the margins of the table in its card
CARD_EDGES = 34  # pixels: the margins and borders of a card above and below its content
KINDS = (("direct", "good"), ("lan", "good"), ("relay", "peer"), ("gone", "text_faint"))
COUNT_COLUMNS = (("direct", "relay"), ("lan", "gone"))  # in which their counts stand
HEADS = {
    "connecting": ("Looking for peers", "live", "text_soft"), "alone": ("Nobody else is here yet", "you", "text_soft"),
    "connected": ("Connected to the swarm", "check", "good"), "solo": ("This computer only", "you", "text_soft"),
}  # fmt: skip


NOT_CONNECTED = ("Not connected", "gone", "text_faint")


def headline(state: State) -> str:
    """How many peers train with this node, and how many took groups of it."""
    if why := why_unavailable(state):
        return f"{why} {tr('These are the peers of before.')}" if state.peers else why
    return company_words(state) or tr("Computers that train with you appear here")


def nobody_words(state: State) -> tuple[str, str]:
    """Why nobody is here, in a few words and in a sentence."""
    if _is_resting(state):
        return tr(NOT_CONNECTED[0]), reach_words(state)
    if state.reach == "connected":
        return tr(HEADS["alone"][0]), tr("Invite someone with a link.")
    return tr(HEADS[state.reach][0]), reach_words(state)


def _is_resting(state: State) -> bool:
    """Whether no engine runs that could connect."""
    return bool(why_unavailable(state)) and state.reach != "solo"


def reach_words(state: State) -> str:
    """How others reach this computer, in one sentence."""
    if state.phase == "preparing" and state.reach != "solo":
        return tr("Waggle looks for peers once it has started.")
    if why_unavailable(state) and state.reach != "solo":
        return tr("Nothing is sent or received until training runs again.")
    match state.reach:
        case "connecting":
            tried = (
                plural(state.seeds_tried, "%n address tried so far.", "%n addresses tried so far.") if state.seeds_tried else ""
            )
            return " ".join(filter(None, (tr("Training does not wait for peers."), tried)))
        case "alone":
            if state.seeds_tried:
                return tr("You train alone: nobody answers. The others may be off, or a firewall is in the way.")
            return tr("You train alone; invite someone to learn together.")
        case "solo":
            return tr("This swarm was chosen to be just this computer: nothing is sent and nothing received.")
        case "connected":
            if state.way == "gateway":
                return tr("Through a gateway: this computer calls nobody. Your part counts all the same.")
            if state.way == "relay":
                return tr("Through a relay: your router blocks calls. Your part counts all the same.")
            if state.address:
                return tr("Others can connect to you.")
            return tr("You reach others; no address is known at which they could reach this computer.")


class ReachPanel(QWidget):
    """How others reach this computer, and how many peers are connected in which way."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._sign, self._head = Icon(theme, "live", "text_soft", 18), ElidedLabel(theme, role="heading")
        self._words = text(theme, "", "small", "soft", wrap=True)
        self._lines = {kind: ElidedLabel(theme, role="small") for kind, _tone in KINDS}
        self._rows = {kind: as_widget(row(Icon(theme, kind, tone), (self._lines[kind], 1))) for kind, tone in KINDS}
        self._rejected = ElidedLabel(theme, role="caption", tone="text_faint")
        self._copy = CopyButton(theme, tr("Copy address"), small=True)
        head, copy = row(self._sign, (self._head, 1)), row(self._copy, None)
        counts = row(*(column(*(self._rows[kind] for kind in kinds), None, gap=6) for kinds in COUNT_COLUMNS), None, gap=10)
        self.setLayout(column(head, self._words, 4, counts, self._rejected, 4, copy, None, gap=6))

    def show_state(self, state: State) -> None:
        resting = _is_resting(state)
        words, icon, ink = NOT_CONNECTED if resting else HEADS[state.reach]
        self._head.say(tr(words))
        self._sign.show_icon(icon, ink)
        self._words.setText(reach_words(state))
        for kind, line in self._lines.items():
            count = sum(peer.connection == kind for peer in state.peers.values())
            line.say(_connection_count_text(kind, count))
            self._rows[kind].setVisible(count > 0)
        refused = state.rejected
        self._rejected.say(plural(refused, "%n unreadable message was ignored", "%n unreadable messages were ignored"))
        self._rejected.setVisible(refused > 0)
        self._copy.offer(state.address)
        self._copy.setToolTip(one_line(state.address))
        self._copy.setVisible(bool(state.address) and state.reach == "connected" and not resting)


def _connection_count_text(kind: str, count: int) -> str:
    match kind:
        case "direct":
            return plural(count, "%n direct", "%n direct")
        case "lan":
            return plural(count, "%n on your network", "%n on your network")
        case "relay":
            return plural(count, "%n through a relay", "%n through a relay")
        case _:
            return plural(count, "%n gone", "%n gone")


class LegendCell(PaintedWidget):
    """A group, drawn as in the picture."""

    def __init__(self, theme: Theme, *, mine: bool) -> None:
        super().__init__(theme, QSize(16, 16))
        self._value_and_owner = (-1, mine)

    def show_cell(self, about: int, *, mine: bool) -> None:
        if self._value_and_owner != (about, mine):
            self._value_and_owner = (about, mine)
            self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        about, mine = self._value_and_owner
        draw_cell(painter, self.theme, place.center(), 4.5, about, mine=mine)


class Legend(QWidget):
    """What the moving cells mean, and the last exchange in words."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        out, back = self._kinds = (
            ElidedLabel(theme, tr("your example, going out"), "caption", "text_soft"),
            ElidedLabel(theme, tr("a peer's example, coming in"), "caption", "text_soft"),
        )
        self._cell = LegendCell(theme, mine=False)
        self._words = ElidedLabel(theme, "", "caption", "text_faint")
        self._cell.hide()
        kinds = (row(LegendCell(theme, mine=True), out, gap=4), row(LegendCell(theme, mine=False), back, gap=4))
        self.setLayout(row(*kinds, row(self._cell, (self._words, 1), gap=4), gap=16))

    def fit(self, room: float) -> None:
        """Adapt to a width in pixels: cut the last exchange first, the meanings only if they do not fit alone."""
        needed = sum(line.sizeHint().width() for line in self._kinds) + 112  # cells, gaps, and a part of the last exchange
        for line in self._kinds:
            policy = QSizePolicy.Policy.Minimum if needed < room else QSizePolicy.Policy.Preferred
            line.setSizePolicy(policy, QSizePolicy.Policy.Fixed)

    def say(self, latest: tuple[Flow, str, int] | None, *, has_relay: bool, has_idle: bool) -> None:
        """Say the last exchange; before the first, what dashed and pale lines mean if there are any."""
        self._cell.setVisible(latest is not None)
        if latest is None:
            lines = [tr("dashed: a relay")] * has_relay + [tr("pale: idle")] * has_idle
            self._words.say("; ".join(lines), "text_faint")
        else:
            flow, words, about = latest
            self._cell.show_cell(about, mine=flow.way == "out")
            self._words.say(words, "text_soft")


class PeersPage(Page):
    """Picture, reach, table and the chosen peer; without the table before any peer was met."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme = context.theme
        self._state, self._now, self._chosen = State(), 0.0, ""
        self._line = ElidedLabel(theme, role="small", tone="text_soft")
        self._invite, self._replay = Button(theme, tr("Invite someone"), "primary", "invite"), False
        self._invite.clicked.connect(lambda: context.requests.page.emit("swarms", "invite"))
        self._picture, self._reach = SwarmGraph(theme), ReachPanel(theme)
        self._picture.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._picture.chosen.connect(self.choose)
        self._legend = Legend(theme)
        self._middle = column((self._picture, 1), self._legend, gap=4)
        self._beside = row((self._middle, 1), self._reach, gap=32)
        self._band = card((self._beside, 1), gap=0)
        self._model = PeerTableModel(theme, self)
        self._view = PeerTableView(theme, self._model)
        self._strip = PeerDetails(theme, context.client)
        self._strip.choice_sent.connect(self._view.setFocus)  # else some other button would get the focus of the disabled one
        self._view.chosen.connect(self._select_peer)
        self._view.addActions(self._strip.menu())
        self._view.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self._search = TextField(theme, tr("Find a peer"), tr("Find a peer"))
        self._search.setClearButtonEnabled(True)
        self._search.setFixedHeight(self._invite.height())  # it stands beside it
        self._search.textChanged.connect(self._find)
        self._rows = WholeRows(self._view)
        self._meanings = ElidedLabel(theme, "", "caption", "text_faint")  # of the columns; a chosen peer's details take its place
        self._view.legend_changed.connect(self._meanings.say)
        below = column(row(MEANINGS_EDGE, (self._meanings, 1), gap=0), self._strip, margins=(2, 0, 2, 0))
        self._table = frame("card", column((self._rows, 1), below, margins=TABLE_EDGES))
        self._page_head = page_header(theme, tr("Peers"), self._line, self._search, self._invite)
        self._box = column((in_the_middle(self._band), 2), (self._table, 3))
        self._above = QSpacerItem(0, 0)
        self._box.insertItem(0, self._above)
        self._box.addStretch(0)
        self._area = ScrollArea(self._box)  # with large text the parts may be higher than the window
        self.setLayout(column(self._page_head, (self._area, 1), gap=0))
        self.setTabOrder(self._view.horizontalHeader(), self._view)
        self.set_compact(False)

    @cached_property
    def nobody(self) -> NobodyYet:
        """Built when it is first shown: mostly there are peers."""
        nobody = NobodyYet(self.context.theme)
        nobody.invite_wanted.connect(self._invite.clicked)
        self._middle.insertWidget(0, nobody, 1)
        return nobody

    def arrange(self, edge: int, gap: int) -> None:
        self._page_head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        self._area.set_edges(edge, 12 if self.compact else 24)
        self._box.setSpacing(gap)
        self._fold()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()

    def _fold(self) -> None:
        """Put the reach below the picture where text is too large for the window."""
        px, ways = self.theme.px, QBoxLayout.Direction
        table = self._table_height()
        room = self._area.height() - self._box.contentsMargins().bottom() - self._box.spacing()
        alone = not self._state.peers
        policy = QSizePolicy.Policy
        self._above.changeSize(0, 0, policy.Fixed, policy.Expanding if alone else policy.Fixed)
        for place, share in ((0, int(alone)), (1, 0 if alone else 2), (self._box.count() - 1, int(alone))):
            self._box.setStretch(place, share)  # the only card stands in the middle, as high as its content
        self._band.setMaximumWidth(px(ALONE) if alone else UNLIMITED)
        in_two = self.wide and room - px(LARGE) < table and not alone
        self._box.setDirection(ways.LeftToRight if in_two else ways.TopToBottom)
        if in_two:  # the picture has the height of the page, and the table stands beside it
            self._fold_wide()
            return
        beside = self._area.width() - BESIDE >= px(REACH + PICTURE) + 32
        self._beside.setDirection(ways.LeftToRight if beside else ways.TopToBottom)
        self._legend.fit(self._area.width() - BESIDE - (px(REACH) + 32 if beside else 0))
        self._reach.setMinimumWidth(px(REACH) if beside else 0)
        self._reach.setMaximumWidth(px(REACH) if beside else UNLIMITED)
        picture, reach = px(206 if self.compact else 290), self._reach.sizeHint().height()
        height = max(picture, reach + CARD_EDGES) if beside else picture + 32 + reach
        self._band.setMinimumHeight(0 if alone else height)
        few = room - height > table  # what their table does not need is the picture's
        self._table.setMaximumHeight(table if few else UNLIMITED)
        highest = max(height, px(HIGHEST), self._area.width() // FLATTEST)
        self._band.setMaximumHeight(UNLIMITED if alone else min(highest, room - table) if few else height)

    def _table_height(self) -> int:
        """Pixels of height in which all peers are in sight."""
        edges = TABLE_EDGES[1] + TABLE_EDGES[3] + 2
        below = self._meanings if self._strip.isHidden() else self._strip
        room = 0 if below.isHidden() else below.sizeHint().height() + 8
        return self._rows.height_of(max(2, len(self._state.peers))) + edges + room

    def _fold_wide(self) -> None:
        self._beside.setDirection(QBoxLayout.Direction.TopToBottom)
        self._legend.fit(self._band.width() - CARD_EDGES)
        self._reach.setMinimumWidth(0)
        self._reach.setMaximumWidth(UNLIMITED)
        self._band.setMinimumHeight(0)
        self._band.setMaximumHeight(UNLIMITED)
        self._table.setMaximumHeight(UNLIMITED)

    def show_state(self, state: State, now: float) -> None:
        state = without_connections(state)
        self._state, self._now = state, now
        peers: list[PeerInfo] = list(state.peers.values())
        can_invite = state.reach != "solo" and not self._replay
        self._invite.setVisible(can_invite and bool(peers))
        self._invite.setEnabled(not why_unavailable(state))
        set_tip(self._invite, why_unavailable(state))
        self._picture.show_state(state, now)
        self._legend.say(
            self._picture.latest,
            has_relay=any(peer.connection == "relay" for peer in peers),
            has_idle=any(not trains_with(peer) and peer.choice != "blocked" for peer in state.connected),
        )
        self._reach.show_state(state)
        self._model.show_peers(peers, now)
        self._search.setVisible(len(peers) > FEW or bool(self._search.text()))
        self._show_headline()
        self._select_peer(self._chosen)
        for part in (self._picture, self._legend, self._table):
            part.setVisible(bool(peers))
        if not peers:
            self.nobody.show_state(state, *nobody_words(state), can_invite=can_invite)
        self._reach.setVisible(bool(peers) or (state.reach == "connected" and not _is_resting(state)))
        if "nobody" in vars(self):
            self.nobody.setVisible(not peers)

    def take_over(self, before: Page) -> None:
        """Take over the chosen peer."""
        assert isinstance(before, PeersPage)
        if before._chosen:
            self.show_state(before._state, before._now)
            self.choose(before._chosen)

    def go_to_search(self) -> None:
        if not self._search.isHidden():
            self._search.setFocus()

    def _find(self, words: str) -> None:
        self._model.find(words)
        self._show_headline()

    def _show_headline(self) -> None:
        """Say who is here, or how many a search leaves."""
        if not self._search.text().strip():
            self._line.say(headline(self._state))
            if self._state.members:
                set_tip(self._line, tr("Connected, and at least one of you learns from the other."))
            return
        count, whole = self._model.rowCount(), figure(len(self._state.peers))
        words = plural(count, "%n of %1 peers matches", "%n of %1 peers match") if count else tr("None of %1 peers matches")
        self._line.say(words.replace("%1", whole))

    def choose(self, identity: str) -> None:
        """Select this peer's row."""
        self._view.choose(identity)

    def show_replay(self, *, over: bool) -> None:
        self._replay = True
        self._strip.show_replay()

    def _select_peer(self, identity: str) -> None:
        self._chosen = identity
        self._picture.mark(identity)
        self._strip.show_peer(self._state.peers.get(identity), self._state, self._now)
        self._meanings.setVisible(self._strip.isHidden() and not self.compact)
        self._fold()
