"""The table of peers: a model that reports which rows changed, a delegate that paints every cell, and the view."""

from collections.abc import Callable, Sequence
from math import ceil

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from waggle.core.peer_id import fingerprint
from waggle.core.text.round_number import round_number
from waggle.gui.charts.painted.swarm_graph_layout import is_faded
from waggle.gui.i18n.formatting import decimal, figure, later, one_line, peer_name, short_ago, tooltip_text, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import CHIP_INK, draw_avatar, mirror_box
from waggle.gui.widgets.table import SortableHead, explained, style_table, table_legend
from waggle.protocol.events import PeerInfo
from waggle.protocol.text.peer_text import Standing, standing, standing_text

COLUMNS = ("Name", "Connection", "Model", "Round", "You used", "You gave", "Mean reward", "Standing", "Delay", "Seen")
TIPS = {
    "You used": later("its examples that your model learned from, of all that arrived"),
    "You gave": later("your examples that it fetched"),
    "Mean reward": later("how right its answers were, 0 to 1"),
    "Delay": later("how long a message to it and back takes"),
}
EXPLAINED = ("You used", "You gave", "Mean reward")  # below the table, too
WIDTHS = (0, 128, 116, 62, 115, 82, 99, 110, 72, 66)
CONNECTION_COLUMN, STANDING_COLUMN = COLUMNS.index("Connection"), COLUMNS.index("Standing")
NAME_ROOM = 144  # pixels that the column of names keeps, at a text size of 100%
NAME_PARTS = 2.5  # times that room: what is more than this is shared by all columns
DROPPED = (2, 8, 3, 9, 5, 6, 1)  # columns that are hidden for it, in this order; from the fourth on only with large text
RIGHT = frozenset((3, 4, 5, 6, 8, 9))
SOFT = frozenset((2, 3, 8, 9))
WORDS = {"direct": "Direct", "relay": "Relay", "lan": "Your network", "gone": "Gone"}
TONES = {"direct": "good", "lan": "good", "relay": "peer", "gone": "text_faint"}
CONNECTION_ORDER = ("lan", "direct", "relay", "gone")
STANDING_CHIPS: dict[Standing, tuple[str, str, str]] = {  # icon, word and tone, as a chip takes them
    "trusted": ("shield", "Trusted", "good"), "doubted": ("warn", "Doubtful", "bad"),
    "differs": ("differs", "Mismatch", "bare"),
    "muted": ("muted", "Muted", "bare"), "blocked": ("blocked", "Blocked", "bare"), "plain": ("", "–", "bare"),
}  # fmt: skip
STANDING_ORDER = tuple(STANDING_CHIPS)
SORT_KEYS: tuple[Callable[[PeerInfo, float], object], ...] = (  # of each column; what is unknown comes first
    lambda peer, _now: (not peer.name, peer.name.casefold(), peer.id),
    lambda peer, _now: CONNECTION_ORDER.index(peer.connection),
    lambda peer, _now: peer.model.casefold(),
    lambda peer, _now: peer.round,
    lambda peer, _now: (peer.used, peer.received),
    lambda peer, _now: peer.groups_pulled,
    lambda peer, _now: peer.mean_reward if peer.received else -1.0,
    lambda peer, now: STANDING_ORDER.index(standing(peer, now)),
    lambda peer, _now: -1.0 if peer.delay_ms is None else peer.delay_ms,
    lambda peer, _now: -peer.seen_at,
)
PEER, STANDING = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1
Index = QModelIndex | QPersistentModelIndex


def cells(peer: PeerInfo, now: float) -> tuple[str, ...]:
    """One row, in the order of COLUMNS."""
    used = tr("%1 of %2").replace("%1", figure(peer.used)).replace("%2", figure(peer.received)) if peer.received else "–"
    return (
        peer_name(peer.name, peer.id),
        tr(WORDS[peer.connection]),
        one_line(peer.model) or "–",
        figure(round_number(peer.round)) if peer.received else "–",
        used,
        figure(peer.groups_pulled) if peer.groups_pulled else "–",
        decimal(peer.mean_reward, 2) if peer.received else "–",
        _sign(peer, now),
        _delay_text(peer.delay_ms),
        _last_seen_text(peer, now),
    )


def _sign(peer: PeerInfo, now: float) -> str:
    return tr(STANDING_CHIPS[standing(peer, now)][1])


def _delay_text(milliseconds: float | None) -> str:
    """Narrow enough for the column: from a second on in seconds."""
    if milliseconds is None:
        return "–"
    return f"{milliseconds:.0f} ms" if milliseconds < 999.5 else f"{decimal(milliseconds / 1000, 1)} s"


def _last_seen_text(peer: PeerInfo, now: float) -> str:
    return short_ago(peer.seen_at, now) if peer.seen_at else "–"


class PeerTableModel(QAbstractTableModel):
    """Rows keep their order while the same peers are shown. `dataChanged` names only rows whose text changed.

    At first the most useful peers come first; `sort` orders them by a column. `find` shows only some of them.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._peers: list[PeerInfo] = []
        self._cells: list[tuple[str, ...] | None] = []  # None: never painted, so not worded yet (there may be hundreds)
        self._now = 0.0
        self._all: Sequence[PeerInfo] = ()
        self._searched: list[str] = []  # words, all of which a peer must have
        self._column, self._order = -1, Qt.SortOrder.AscendingOrder

    def show_peers(self, peers: Sequence[PeerInfo], now: float) -> None:
        self._now, self._all = now, peers
        if self._searched:
            peers = [peer for peer in peers if self._matches(peer)]
        known = {peer.id: peer for peer in peers}
        if known.keys() != {peer.id for peer in self._peers}:
            self._arrange(peers, now)
            return
        for i, (before, current) in enumerate(zip(self._peers, self._cells, strict=True)):
            self._peers[i] = peer = known[before.id]
            if current is None or (
                peer is before and current[STANDING_COLUMN:] == (_sign(peer, now), current[-2], _last_seen_text(peer, now))
            ):
                continue  # unchanged: most rows are, and wording one is what costs time
            words = cells(peer, now)
            if words != current:
                self._cells[i] = words
                self.dataChanged.emit(self.index(i, 0), self.index(i, len(COLUMNS) - 1))

    def _arrange(self, peers: Sequence[PeerInfo], now: float) -> None:
        self.beginResetModel()
        self._peers = sorted(peers, key=lambda peer: (peer.connection == "gone", -peer.used, -peer.received, peer.name, peer.id))
        if 0 <= self._column < len(COLUMNS):
            descending = self._order == Qt.SortOrder.DescendingOrder
            self._peers.sort(key=lambda peer: SORT_KEYS[self._column](peer, now), reverse=descending)  # type: ignore[arg-type, return-value]
        self._cells = [None] * len(self._peers)
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Order the rows by a column; -1: the most useful peers first."""
        if (column, order) != (self._column, self._order):
            self._column, self._order = column, order
            self._arrange(self._peers, self._now)

    def find(self, words: str) -> None:
        """Show the peers whose name, fingerprint or model has all of these words; empty: all peers."""
        self._searched = words.casefold().split()
        self.show_peers(self._all, self._now)

    def _matches(self, peer: PeerInfo) -> bool:
        words = f"{peer_name(peer.name, peer.id)} {one_line(peer.model)} {tr(WORDS[peer.connection])}".casefold()
        return all(word in words for word in self._searched)

    def _words(self, row: int) -> tuple[str, ...]:
        peer_cells = self._cells[row]
        if peer_cells is None:
            self._cells[row] = peer_cells = cells(self._peers[row], self._now)
        return peer_cells

    def rowCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(self._peers)

    def columnCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(COLUMNS)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self._words(index.row())[index.column()]
        peer = self._peers[index.row()]
        match role:
            case Qt.ItemDataRole.AccessibleDescriptionRole:
                return tr(standing_text(peer, self._now))
            case Qt.ItemDataRole.ToolTipRole if index.column() == STANDING_COLUMN:
                return tooltip_text(tr(standing_text(peer, self._now)))
            case Qt.ItemDataRole.ToolTipRole:
                return tooltip_text(self._words(index.row())[index.column()])
            case _:
                return {PEER: peer, STANDING: standing(peer, self._now)}.get(role)

    def place_of(self, identity: str) -> int | None:
        """The row of a peer; None if it is not in the table."""
        return next((i for i, peer in enumerate(self._peers) if peer.id == identity), None)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return tr(COLUMNS[section])
        if role == Qt.ItemDataRole.ToolTipRole:
            return tooltip_text(explained(COLUMNS[section], TIPS))
        if role == Qt.ItemDataRole.FontRole:
            return self._theme.font("caption")
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if section in RIGHT else Qt.AlignmentFlag.AlignLeft
            return Qt.AlignmentFlag.AlignVCenter | side
        return None


class PeerCellDelegate(QStyledItemDelegate):
    """Paints a cell: avatar or icon, text, and the line below."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        peer, stands = index.data(PEER), index.data(STANDING)
        words, at = str(index.data()), index.column()
        place = QRectF(option.rect)
        faded = is_faded(peer)
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(place, self._theme.colour("accent_soft"))
        if index.row() < index.model().rowCount() - 1:
            painter.fillRect(QRectF(place.left(), place.bottom() - 1, place.width(), 1), self._theme.colour("border"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        x, middle = 12.0, place.center().y()
        icon = peer.connection if at == 1 else STANDING_CHIPS[stands][0] if at == STANDING_COLUMN else ""
        ink = self._ink(peer, stands, at, faded=faded)
        if at == 0:
            face = mirror_box(painter, QRectF(place.left() + 12, middle - 12, 24, 24), place)
            draw_avatar(painter, self._theme, peer.id, face.center(), 12, gone=faded)
            x = 46.0
        elif icon:
            tone, side = TONES[peer.connection] if at == 1 and not faded else ink, self._theme.size["icon_small"]
            self._theme.draw_icon(
                painter, icon, tone, mirror_box(painter, QRectF(place.left() + 12, middle - side / 2, side, side), place)
            )
            x = side + 18.0
        room = place.adjusted(x, 0, -12, 0)
        if at == 0 and peer.name:
            self._name(painter, mirror_box(painter, room, place), peer, self._theme.colour(ink))
        else:
            self._words(painter, mirror_box(painter, room, place), words, at, self._theme.colour(ink))
        painter.restore()

    def _name(self, painter: QPainter, room: QRectF, peer: PeerInfo, ink: QColor) -> None:
        """The friendly name, and below it, small, the fingerprint of the key."""
        name, key = self._theme.font("label"), self._theme.font("caption")
        high, low = QFontMetricsF(name).height(), QFontMetricsF(key).height()
        top = room.center().y() - (high + low) / 2
        for words, font, colour, y, height in (
            (one_line(peer.name), name, ink, top, high),
            (one_line(fingerprint(peer.id)), key, self._theme.colour("text_faint"), top + high, low),
        ):
            painter.setFont(font)
            painter.setPen(colour)
            cut = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, int(room.width()))
            line = QRectF(room.left(), y, room.width(), height)
            painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, cut)

    def _ink(self, peer: PeerInfo, stands: Standing, column: int, *, faded: bool) -> str:
        if column == STANDING_COLUMN and peer.connection != "gone":
            return CHIP_INK.get(STANDING_CHIPS[stands][2], "text_soft")
        return "text_faint" if faded else "text_soft" if column in SOFT else "text"

    def _words(self, painter: QPainter, room: QRectF, words: str, column: int, ink: QColor) -> None:
        painter.setFont(self._theme.font("label" if column == 0 else "small"))
        painter.setPen(ink)
        side = Qt.AlignmentFlag.AlignRight if column in RIGHT else Qt.AlignmentFlag.AlignLeft
        cut = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(room, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, cut)

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(80, self._theme.size["row"])


def _widths(theme: Theme) -> list[int]:
    """The widths of the columns in pixels: WIDTHS, or what the longest word beside a sign needs in the present language."""
    widths, metrics = [theme.px(width) for width in WIDTHS], QFontMetricsF(theme.font("small"))
    chips = [word for _, word, _ in STANDING_CHIPS.values()]
    for place, words in ((CONNECTION_COLUMN, WORDS.values()), (STANDING_COLUMN, chips)):
        longest = max(metrics.horizontalAdvance(tr(word)) for word in words)
        widths[place] = max(widths[place], ceil(longest) + theme.size["icon_small"] + 32)  # gap, margin, and a pixel or two
    return widths


class PeerTableView(QTableView):
    """Hides columns rather than cutting names, and shares what names do not need.

    A chosen peer stays chosen when its row moves.
    """

    chosen = Signal(str)  # a peer's id; empty: none
    legend_changed = Signal(str)

    def __init__(self, theme: Theme, model: PeerTableModel) -> None:
        super().__init__()
        self._model = model
        self._chosen, self._place = "", 0
        self._widths, self._name_room = _widths(theme), theme.px(NAME_ROOM)
        self.setHorizontalHeader(SortableHead(theme))
        self.setModel(model)
        self.setItemDelegate(PeerCellDelegate(theme, self))
        self.setAccessibleName(tr("Peers"))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        head = style_table(self, theme, theme.size["row"])
        head.setFixedHeight(theme.px(34))
        self.setMinimumHeight(theme.px(38) + 2 * theme.size["row"])
        head.setTextElideMode(Qt.TextElideMode.ElideRight)
        head.setMinimumSectionSize(24)
        head.setSectionsClickable(True)
        head.setSortIndicatorClearable(True)  # the third click gives back the first order
        head.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        head.setSortIndicatorShown(True)
        head.sortIndicatorChanged.connect(model.sort)
        for i, width in enumerate(self._widths):
            self.setColumnWidth(i, width)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.selectionModel().selectionChanged.connect(self._choose_selected)
        model.modelAboutToBeReset.connect(self._mark_place)
        model.modelReset.connect(self._return)

    def sizeHint(self) -> QSize:
        """Ask for the minimum height, so that the table scrolls and not the page."""
        return QSize(super().sizeHint().width(), self.minimumHeight())

    def choose(self, identity: str) -> None:
        """Select the row of this peer; no row if it is not in the table."""
        place = self._model.place_of(identity)
        if place is None:
            self.clearSelection()
        else:
            self.selectRow(place)

    def _mark_place(self) -> None:
        self._place = self.verticalScrollBar().value()

    def _return(self) -> None:
        """Peers came or went: select the same peer again without scrolling to it."""
        self.choose(self._chosen)
        self.verticalScrollBar().setValue(self._place)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide as few columns as names need, and keep the chosen row in sight."""
        room = self.viewport().width() - sum(self._widths)
        for column in DROPPED:
            drops = room < self._name_room
            self.setColumnHidden(column, drops)
            room += self._widths[column] if drops else 0
        spare = max(0, int(room - NAME_PARTS * self._name_room)) // len(self._widths)
        for column, width in enumerate(self._widths[1:], 1):
            self.setColumnWidth(column, width + spare)
        in_sight = [name for name in EXPLAINED if not self.isColumnHidden(COLUMNS.index(name))]
        self.legend_changed.emit(table_legend(in_sight, TIPS))
        rows = self.selectionModel().selectedRows()
        place = self.visualRect(rows[0]) if rows else QRect()
        super().resizeEvent(event)
        if place.top() >= 0 and event.size().height() < place.bottom() <= event.oldSize().height():
            self.scrollTo(rows[0])

    def _choose_selected(self) -> None:
        rows = self.selectionModel().selectedRows()
        self._chosen = rows[0].data(PEER).id if rows else ""
        self.chosen.emit(self._chosen)
