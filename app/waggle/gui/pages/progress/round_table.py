"""The rounds as a table, newest first."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QTableView

from waggle.gui.i18n.formatting import clock, date_of, day, decimal, figure, tr
from waggle.gui.state import chart_series
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.scroll_anchor import ScrollAnchor
from waggle.gui.widgets.table import RowsModel, style_table
from waggle.protocol.events import HeldOutScore, RoundSummary
from waggle.protocol.rounds_csv import score_places
from waggle.protocol.state import State

COLUMNS = ("Round", "Finished", "Held-out", "Reward", "Right", "Seconds", "Answers", "Of its own", "From peers", "Loss")
DROPPED = ("Loss", "Seconds", "Of its own", "From peers", "Answers", "Finished")  # hidden in this order
FIXED = {"Round": 64, "Finished": 132}  # pixels; the other columns share the rest
EDGES = 30  # pixels beside the text of a column's head
Row = tuple[RoundSummary, HeldOutScore | None]


def display_cells(summary: RoundSummary, score: HeldOutScore | None) -> tuple[str, ...]:
    """One row, in the order of COLUMNS."""
    return (
        figure(summary.round), f"{day(date_of(summary.at))}, {clock(summary.at)}",
        f"{score.right} / {score.total}" if score else "",
        decimal(summary.reward, 2), decimal(summary.solved, 2), decimal(summary.seconds, 1), figure(summary.completions),
        figure(summary.local), figure(summary.external), _loss_text(summary),
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
    return [(summary, scores.get(place)) for place, summary in enumerate(played)][::-1]


class RoundTableModel(RowsModel[Row]):
    """The rows of the table; new rounds are inserted at the top."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, [tr(name) for name in COLUMNS], lambda row: row[0].round, lambda row: display_cells(*row))


class RoundTableView(QTableView):
    """Hides columns rather than cutting their heads."""

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
        for place in map(COLUMNS.index, DROPPED):
            widest = max(self._widths[each] for each in shared if each in visible_columns)  # shared columns are equally wide
            fixed = sum(self._widths[each] for each in visible_columns if each not in shared)
            drops = fixed + widest * len(visible_columns.intersection(shared)) > self.viewport().width()
            self.setColumnHidden(place, drops)
            if drops:
                visible_columns.discard(place)
        super().resizeEvent(event)
