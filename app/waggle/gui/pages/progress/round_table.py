"""The rounds as a table, newest first. Rounds after which the model was tested stand out."""

import datetime
from itertools import pairwise
from typing import NamedTuple

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QBrush, QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QTableView

from waggle.core.text.round_number import round_number
from waggle.gui.i18n.formatting import clock, date_of, day, decimal, figure, later, percent, tooltip_text, tr
from waggle.gui.state import chart_series
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.scroll_anchor import ScrollAnchor
from waggle.gui.widgets.table import Index, RowsModel, explained, style_table, table_legend
from waggle.protocol.events import HeldOutScore, RoundSummary
from waggle.protocol.figures.rounds_csv import score_places
from waggle.protocol.state import State

COLUMNS = ("Round", "Finished", "Test score", "Right", "Reward", "Own examples", "From peers", "Time (s)", "Loss")
TIPS = {
    "Right": later("of its answers in training"),
    "Reward": later("0 to 1; close answers count in part"),
    "Own examples": later("Examples of its own from which your model learned"),
    "From peers": later("Examples of peers from which your model learned"),
    "Loss": later("the lower, the better it fits what it learns from; may be below 0"),
}
EXPLAINED = ("Right", "Reward", "Loss")  # below the table, too
DROPPED = ("Loss", "Time (s)", "Own examples", "From peers", "Finished")  # hidden in this order
FIXED = {"Round": 64, "Finished": 120}  # pixels; the other columns share the rest
TESTED = COLUMNS.index("Test score")
EDGES = 32  # pixels beside the text of a column's head


class Row(NamedTuple):
    """A round, the score after it, if any, and whether it is the newest round of its day, which names the day."""

    summary: RoundSummary
    score: HeldOutScore | None
    names_day: bool = True


def display_cells(summary: RoundSummary, score: HeldOutScore | None, names_day: bool = True) -> tuple[str, ...]:
    """One row, in the order of COLUMNS."""
    finished = clock(summary.at)
    return (
        figure(round_number(summary.round)), f"{day(date_of(summary.at))}, {finished}" if names_day else finished,
        percent(score.right / max(1, score.total), 1) if score else "",
        percent(summary.solved), decimal(summary.reward, 2), figure(summary.local), figure(summary.external),
        decimal(summary.seconds, 1), _loss_text(summary),
    )  # fmt: skip


def _loss_text(summary: RoundSummary) -> str:
    """The loss, or why there is none."""
    if summary.left_out:
        return tr("not finite")
    return tr("none") if summary.taught == 0 else decimal(round(summary.metrics.loss, 2) + 0.0, 2)


def rows(state: State) -> list[Row]:
    """All rounds, newest first, each score with the last round before it was measured."""
    played = chart_series.rounds(state)
    scores = score_places(played, chart_series.scores(state))
    days = [date_of(summary.at) for summary in played]
    last = [day != after for day, after in pairwise([*days, datetime.date.min])]
    return [Row(summary, scores.get(place), last[place]) for place, summary in enumerate(played)][::-1]


class RoundTableModel(RowsModel[Row]):
    """The rows of the table; new rounds are inserted at the top."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, [tr(name) for name in COLUMNS], lambda row: row.summary.round, lambda row: display_cells(*row))

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        score = self._rows[index.row()].score
        match role:
            case Qt.ItemDataRole.FontRole if score is not None:
                return self._theme.font("label")
            case Qt.ItemDataRole.BackgroundRole if score is not None:
                return QBrush(self._theme.colour("accent_soft"))
            case Qt.ItemDataRole.ToolTipRole if score is not None and index.column() == TESTED:
                words = tr("%1 of %2 new questions right, asked after this round")
                return tooltip_text(words.replace("%1", figure(score.right)).replace("%2", figure(score.total)))
            case _:
                return super().data(index, role)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.ToolTipRole:
            return tooltip_text(explained(COLUMNS[section], TIPS))
        return super().headerData(section, orientation, role)


class RoundTableView(QTableView):
    """Hides columns rather than cutting their heads. `legend_changed` carries what some of the others mean."""

    legend_changed = Signal(str)

    def __init__(self, theme: Theme, model: RoundTableModel) -> None:
        super().__init__()
        self.setModel(model)
        self.setAccessibleName(tr("All rounds as a table"))
        self.setWordWrap(False)
        head = style_table(self, theme, theme.px(32))
        head.setFixedHeight(theme.px(34))
        head.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        head.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._widths = [QFontMetrics(head.font()).horizontalAdvance(tr(name)) + EDGES for name in COLUMNS]
        for name, width in FIXED.items():
            place = COLUMNS.index(name)
            self._widths[place] = max(theme.px(width), self._widths[place])
            head.setSectionResizeMode(place, QHeaderView.ResizeMode.Fixed)
            self.setColumnWidth(place, self._widths[place])
        ScrollAnchor(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        shared = [place for place, name in enumerate(COLUMNS) if name not in FIXED]
        visible_columns = set(range(len(COLUMNS)))
        bar = self.verticalScrollBar()
        room = self.viewport().width() - (0 if bar.isVisible() else bar.sizeHint().width())  # it may come later
        for place in map(COLUMNS.index, DROPPED):
            widest = max(self._widths[each] for each in shared if each in visible_columns)  # shared columns are equally wide
            fixed = sum(self._widths[each] for each in visible_columns if each not in shared)
            drops = fixed + widest * len(visible_columns.intersection(shared)) > room
            self.setColumnHidden(place, drops)
            if drops:
                visible_columns.discard(place)
        in_sight = [name for name in EXPLAINED if COLUMNS.index(name) in visible_columns]
        self.legend_changed.emit(table_legend(in_sight, TIPS))
        super().resizeEvent(event)
