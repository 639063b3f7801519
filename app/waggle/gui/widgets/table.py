"""Tables: a model whose rows keep their identity, and the style of all table views."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from waggle.gui.i18n.formatting import tooltip_text, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.text import announce

MOST_STRETCHES = 100  # runs of inserted or removed rows; for more, resetting the model is faster than signalling each
NO_INDEX = QModelIndex()
Index = QModelIndex | QPersistentModelIndex
Row = TypeVar("Row")


class RowsModel(QAbstractTableModel, Generic[Row]):
    """A table model that inserts, removes and changes single rows, so that views keep selection and scroll position.

    `name` returns the identity of a row, `words` its cells. All columns after the first `text_columns` are right-aligned.
    """

    def __init__(
        self, theme: Theme, heads: Sequence[str], name: Callable[[Row], object], words: Callable[[Row], Sequence[str]], *,
        text_columns: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self._theme, self._heads, self._name, self._words, self._text_columns = theme, heads, name, words, text_columns
        self._rows: list[Row] = []

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Replace the rows. Rows that stay must keep their order among each other."""
        before, after = ({self._name(row) for row in rows} for rows in (self._rows, rows))
        gone = _stretches(place for place, row in enumerate(self._rows) if self._name(row) not in after)
        come = _stretches(place for place, row in enumerate(rows) if self._name(row) not in before)
        if len(gone) + len(come) > MOST_STRETCHES:
            self.beginResetModel()
            self._rows = list(rows)
            self.endResetModel()
            return
        for first, last in reversed(gone):
            self.beginRemoveRows(NO_INDEX, first, last)
            del self._rows[first : last + 1]
            self.endRemoveRows()
        for first, last in come:
            self.beginInsertRows(NO_INDEX, first, last)
            self._rows[first:first] = rows[first : last + 1]
            self.endInsertRows()
        for place, (then, now) in enumerate(zip(self._rows, rows, strict=True)):
            if then != now:
                self._rows[place] = now
                self.dataChanged.emit(self.index(place, 0), self.index(place, len(self._heads) - 1))

    def rowCount(self, _parent: Index = NO_INDEX) -> int:
        return len(self._rows)

    def columnCount(self, _parent: Index = NO_INDEX) -> int:
        return len(self._heads)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._words(self._rows[index.row()])[index.column()]
            case Qt.ItemDataRole.ToolTipRole:
                return tooltip_text(self._words(self._rows[index.row()])[index.column()])
            case Qt.ItemDataRole.FontRole:
                return self._theme.font("small")
            case Qt.ItemDataRole.TextAlignmentRole:
                return self._side(index.column())
            case _:
                return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.ToolTipRole:
                return self._heads[section]
            case Qt.ItemDataRole.FontRole:
                return self._theme.font("caption")
            case Qt.ItemDataRole.TextAlignmentRole:
                return self._side(section)
            case _:
                return None

    def _side(self, column: int) -> Qt.AlignmentFlag:
        side = Qt.AlignmentFlag.AlignLeft if column < self._text_columns else Qt.AlignmentFlag.AlignRight
        return Qt.AlignmentFlag.AlignVCenter | side


def _stretches(places: Iterable[int]) -> list[tuple[int, int]]:
    """The first and last number of each run of consecutive numbers."""
    stretches: list[tuple[int, int]] = []
    for place in places:
        if stretches and stretches[-1][1] == place - 1:
            stretches[-1] = stretches[-1][0], place
        else:
            stretches.append((place, place))
    return stretches


class SortableHead(QHeaderView):
    """The heads of columns, for mouse and keyboard: Tab comes here, arrow keys choose a column, Enter or Space orders by it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._theme, self._at = theme, 0  # the chosen column
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(tr("Order by"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Left | Qt.Key.Key_Right:
                mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
                self._step(1 if (event.key() == Qt.Key.Key_Right) != mirrored else -1)
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_Space:
                self._order()
            case _:
                super().keyPressEvent(event)

    def _step(self, by: int) -> None:
        columns = [column for column in range(self.count()) if not self.isSectionHidden(column)]
        place = columns.index(self._at) if self._at in columns else 0
        self._at = columns[min(max(0, place + by), len(columns) - 1)]
        self._tell(str(self.model().headerData(self._at, Qt.Orientation.Horizontal)))

    def _order(self) -> None:
        """As clicks do: upwards, downwards, and back to the first order."""
        up, down = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
        if self.sortIndicatorSection() != self._at:
            self.setSortIndicator(self._at, up)
        elif self.sortIndicatorOrder() == up:
            self.setSortIndicator(self._at, down)
        else:
            self.setSortIndicator(-1, up)
        orders = {up: tr("lowest first"), down: tr("highest first")}
        chosen = self.sortIndicatorSection() == self._at
        self._tell(orders[self.sortIndicatorOrder()] if chosen else tr("in the first order"))

    def _tell(self, words: str) -> None:
        announce(self, words)
        self.viewport().update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._step(0)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def paintSection(self, painter: QPainter, place: QRect, section: int) -> None:
        super().paintSection(painter, place, section)
        if self.hasFocus() and section == self._at:
            painter.setPen(QPen(self._theme.colour("focus"), 2))
            painter.drawRoundedRect(QRectF(place).adjusted(2, 3, -2, -3), 5, 5)


class WholeRows(QWidget):
    """Shows whole rows of a table only; those of a table that scrolls are as much higher as fills the room."""

    def __init__(self, view: QTableView) -> None:
        super().__init__()
        self._view, self._each = view, view.verticalHeader().defaultSectionSize()
        view.setParent(self)
        for changed in (view.model().modelReset, view.model().rowsInserted, view.model().rowsRemoved):
            changed.connect(self._fit)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def height_of(self, rows: int) -> int:
        """The height in pixels that the head and so many rows need."""
        return self._view.horizontalHeader().height() + 2 * self._view.frameWidth() + rows * self._each

    def _fit(self) -> None:
        head = self.height_of(0)
        fitting = max(1, (self.height() - head) // self._each)
        scrolls = self._view.model().rowCount() > fitting
        each = max(self._each, (self.height() - head) // fitting) if scrolls else self._each
        chosen = self._view.selectionModel().selectedRows()
        in_sight = bool(chosen) and self._view.viewport().rect().contains(self._view.visualRect(chosen[0]).center())
        self._view.verticalHeader().setDefaultSectionSize(each)
        self._view.setGeometry(0, 0, self.width(), head + fitting * each)
        if in_sight:
            self._view.scrollTo(chosen[0])
        self._view.updateGeometries()  # else its scroll bar, and with it the head, come to their places after the first picture

    def sizeHint(self) -> QSize:
        return self._view.sizeHint()

    def minimumSizeHint(self) -> QSize:
        return QSize(self._view.minimumSizeHint().width(), self._view.minimumHeight())


def explained(column: str, tips: Mapping[str, str]) -> str:
    """A column's name and, after a colon, what stands in it; both translated."""
    return ": ".join(tr(words) for words in (column, tips.get(column, "")) if words)


def table_legend(columns: Iterable[str], tips: Mapping[str, str]) -> str:
    """What stands in these columns, in one line."""
    return "  \u00b7  ".join(explained(column, tips) for column in columns)


def style_table(view: QTableView, theme: Theme, row_height: int) -> QHeaderView:
    """Style a table: whole rows selected, no grid, small header (returned). Tab leaves the table instead of moving inside it."""
    view.setShowGrid(False)
    view.setTabKeyNavigation(False)
    view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    view.verticalHeader().hide()
    view.verticalHeader().setDefaultSectionSize(row_height)
    head = view.horizontalHeader()
    head.setFont(theme.font("caption"))
    head.setHighlightSections(False)
    return head
