"""Tables: a model whose rows keep their identity, and the style of all table views."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from waggle.gui.i18n.formatting import tooltip_text
from waggle.gui.theme.theme import Theme

MOST_STRETCHES = 100  # of rows that come or go, each of which a view takes in by itself
NO_INDEX = QModelIndex()
Index = QModelIndex | QPersistentModelIndex
Row = TypeVar("Row")


class RowsModel(QAbstractTableModel, Generic[Row]):
    """A table whose rows stay what they are, with whoever reads or has chosen them, when others come and go around them.

    `name` tells a row from the others, `words` says it; all but the first `text_columns` columns are figures, at the right.
    """

    def __init__(
        self, theme: Theme, heads: Sequence[str], name: Callable[[Row], object], words: Callable[[Row], Sequence[str]], *,
        text_columns: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self._theme, self._heads, self._name, self._words, self._text_columns = theme, heads, name, words, text_columns
        self._rows: list[Row] = []

    def show_rows(self, rows: Sequence[Row]) -> None:
        """These now, in an order in which no row ever overtakes another."""
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
    """The first and the last of each run of neighbours."""
    stretches: list[tuple[int, int]] = []
    for place in places:
        if stretches and stretches[-1][1] == place - 1:
            stretches[-1] = stretches[-1][0], place
        else:
            stretches.append((place, place))
    return stretches


def style_table(view: QTableView, theme: Theme, row_height: int) -> QHeaderView:
    """A table as all of them look: whole rows, no grid, a small head, which is returned; Tab leaves it."""
    view.setShowGrid(False)
    view.setTabKeyNavigation(False)
    view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    view.verticalHeader().hide()
    view.verticalHeader().setDefaultSectionSize(row_height)
    head = view.horizontalHeader()
    head.setFont(theme.font("caption"))
    head.setHighlightSections(False)
    return head
