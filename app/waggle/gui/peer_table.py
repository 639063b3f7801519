"""Who is here, as a table: a model that says which rows changed, and one hand that paints every cell."""

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QTableView

from waggle.gui.look import Look
from waggle.gui.paint import draw_avatar
from waggle.gui.parts import tip
from waggle.gui.words import figure, one_line, short_ago, tr
from waggle.protocol.events import PeerInfo

COLUMNS = ("Name", "Connection", "Model", "Round", "You used", "They took", "Mean reward", "Rejected", "Delay", "Seen")
WIDTHS = (178, 128, 120, 64, 122, 84, 104, 78, 72, 64)
RIGHT = frozenset((3, 4, 5, 6, 7, 8, 9))
THIRD_RANK = (2, 7)  # drop out when there is little room
WORDS = {"direct": "Direct", "relay": "Relay", "lan": "Your network", "gone": "Gone"}
TONES = {"direct": "good", "lan": "good", "relay": "peer", "gone": "text_faint"}
SOFT = frozenset((2, 3, 8, 9))
PEER = Qt.ItemDataRole.UserRole
Index = QModelIndex | QPersistentModelIndex


def cells(peer: PeerInfo, now: float) -> tuple[str, ...]:
    """One row, in the order of COLUMNS."""
    used = tr("%1 of %2").replace("%1", figure(peer.used)).replace("%2", figure(peer.received)) if peer.received else "–"
    return (
        one_line(peer.name) or one_line(peer.id),
        tr(WORDS[peer.connection]),
        one_line(peer.model) or "–",
        figure(peer.round) if peer.round else "–",
        used,
        figure(peer.taken) if peer.taken else "–",
        f"{peer.mean_reward:.2f}" if peer.received else "–",
        figure(peer.rejected) if peer.rejected else "–",
        f"{peer.delay_ms:.0f} ms" if peer.delay_ms is not None else "–",
        short_ago(peer.seen_at, now) if peer.seen_at else "–",
    )


class PeerTable(QAbstractTableModel):
    """Rows keep their order while the same peers are known; only rows whose words changed are said to have changed."""

    def __init__(self, look: Look, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._look = look
        self._peers: list[PeerInfo] = []
        self._cells: list[tuple[str, ...]] = []

    def show_peers(self, peers: Sequence[PeerInfo], now: float) -> None:
        known = {peer.id: peer for peer in peers}
        if known.keys() != {peer.id for peer in self._peers}:
            self._arrange(peers, now)
            return
        for i, before in enumerate(self._peers):
            peer = known[before.id]
            words = cells(peer, now)
            if words != self._cells[i] or peer.connection != before.connection:
                self._cells[i] = words
                self._peers[i] = peer
                self.dataChanged.emit(self.index(i, 0), self.index(i, len(COLUMNS) - 1))

    def _arrange(self, peers: Sequence[PeerInfo], now: float) -> None:
        self.beginResetModel()
        self._peers = sorted(peers, key=lambda peer: (peer.connection == "gone", -peer.used, -peer.received, peer.name, peer.id))
        self._cells = [cells(peer, now) for peer in self._peers]
        self.endResetModel()

    def rowCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(self._peers)

    def columnCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(COLUMNS)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self._cells[index.row()][index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip(self._cells[index.row()][index.column()])
        if role == PEER:
            return self._peers[index.row()]
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return tr(COLUMNS[section])
        if role == Qt.ItemDataRole.FontRole:
            return self._look.font("caption")
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if section in RIGHT else Qt.AlignmentFlag.AlignLeft
            return Qt.AlignmentFlag.AlignVCenter | side
        return None


class PeerCell(QStyledItemDelegate):
    """Avatar, state icon, tabular figures, hairline."""

    def __init__(self, look: Look, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._look = look

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        peer, words, at = index.data(PEER), str(index.data()), index.column()
        place = QRectF(option.rect)
        gone = peer.connection == "gone"
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(place, self._look.colour("accent_soft"))
        if index.row() < index.model().rowCount() - 1:
            painter.fillRect(QRectF(place.left(), place.bottom() - 1, place.width(), 1), self._look.colour("border"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left = 12.0
        middle = place.center().y()
        if at == 0:
            draw_avatar(painter, self._look, peer.id, QPointF(place.left() + 24, middle), 12, gone=gone)
            left = 46.0
        elif at == 1:
            self._look.draw_icon(painter, peer.connection, TONES[peer.connection], QRectF(place.left() + 12, middle - 8, 16, 16))
            left = 34.0
        self._words(painter, place.adjusted(left, 0, -12, 0), words, at, self._ink(at, words, gone=gone))
        painter.restore()

    def _ink(self, column: int, words: str, *, gone: bool) -> QColor:
        if gone:
            return self._look.colour("text_faint")
        if column == 7 and words != "–":
            return self._look.colour("bad")
        return self._look.colour("text_soft" if column in SOFT else "text")

    def _words(self, painter: QPainter, room: QRectF, words: str, column: int, ink: QColor) -> None:
        painter.setFont(self._look.font("label" if column == 0 else "small"))
        painter.setPen(ink)
        side = Qt.AlignmentFlag.AlignRight if column in RIGHT else Qt.AlignmentFlag.AlignLeft
        cut = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(room, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, cut)

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(80, self._look.size["row"])


class PeerView(QTableView):
    """Names take what room is left; third-rank columns drop out in a compact window."""

    def __init__(self, look: Look, model: PeerTable) -> None:
        super().__init__()
        self.setModel(model)
        self.setItemDelegate(PeerCell(look, self))
        self.setAccessibleName(tr("Peers"))
        self.setShowGrid(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(look.size["row"])
        head = self.horizontalHeader()
        head.setFont(look.font("caption"))
        head.setFixedHeight(34)
        head.setHighlightSections(False)
        for i, width in enumerate(WIDTHS):
            self.setColumnWidth(i, width)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)

    def set_compact(self, compact: bool) -> None:
        for column in THIRD_RANK:
            self.setColumnHidden(column, compact)
