"""Progress as a table: one row a round, newest first; the same rows are what is saved as CSV."""

import csv
import time
from bisect import bisect_left
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from waggle.gui import series
from waggle.gui.look import Look
from waggle.gui.reading import Place, Rows
from waggle.gui.words import clock, date_of, day, decimal, figure, tr
from waggle.protocol.events import HeldOutScore, RoundSummary
from waggle.protocol.state import State

COLUMNS = ("Round", "Finished", "Held-out", "Reward", "Right", "Seconds", "Answers", "Own groups", "From peers", "Loss")
THIRD_RANK = (COLUMNS.index("Seconds"), COLUMNS.index("Loss"))  # left out where there is little room
FIXED = {"Round": 72, "Finished": 132}  # pixels; the others share what is left
Row = tuple[RoundSummary, HeldOutScore | None]


def cells(summary: RoundSummary, score: HeldOutScore | None) -> tuple[str, ...]:
    """One row of what is saved, in the order of COLUMNS."""
    return (
        str(summary.round),
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(summary.at)),
        f"{score.right} / {score.total}" if score else "",
        f"{summary.reward:.4f}",
        f"{summary.solved:.4f}",
        f"{summary.seconds:.1f}",
        str(summary.completions),
        str(summary.local),
        str(summary.external),
        f"{round(summary.metrics.loss, 4) + 0.0:.4f}",  # never "-0.0000"
    )


def shown(summary: RoundSummary, score: HeldOutScore | None) -> tuple[str, ...]:
    """The same row as a person reads it."""
    return (
        figure(summary.round), f"{day(date_of(summary.at))}, {clock(summary.at)}",
        f"{score.right} / {score.total}" if score else "",
        decimal(summary.reward, 2), decimal(summary.solved, 2), decimal(summary.seconds, 1), figure(summary.completions),
        figure(summary.local), figure(summary.external), decimal(round(summary.metrics.loss, 2) + 0.0, 2),
    )  # fmt: skip


def rows(state: State) -> list[Row]:
    """All rounds, newest first, each score beside the last of them that was played when it was measured.

    The very first was measured before any, and stands beside the first.
    """
    played = series.rounds(state)
    numbers = [summary.round for summary in played]
    scores: dict[int, HeldOutScore] = {}
    for score in series.scores(state):  # `score.round` counts the rounds that were played, the first of which is 0
        if numbers and score.round >= numbers[0]:
            scores[max(0, bisect_left(numbers, score.round) - 1)] = score
    return [(summary, scores.get(place)) for place, summary in enumerate(played)][::-1]


def save_csv(state: State, path: Path) -> None:
    """Oldest first, as spreadsheets expect; raises OSError."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(cells(summary, score) for summary, score in reversed(rows(state)))


class RoundTable(Rows[Row]):
    """The rows; new rounds come in above those that are there."""

    def __init__(self, look: Look) -> None:
        super().__init__(look, [tr(name) for name in COLUMNS], lambda row: row[0].round, lambda row: shown(*row))


def round_table_view(look: Look, model: RoundTable) -> QTableView:
    view = QTableView()
    view.setModel(model)
    view.setAccessibleName(tr("All rounds as a table"))
    view.setShowGrid(False)
    view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    view.verticalHeader().hide()
    view.verticalHeader().setDefaultSectionSize(look.px(32))
    head = view.horizontalHeader()
    head.setFont(look.font("caption"))
    head.setFixedHeight(look.px(34))
    head.setHighlightSections(False)
    head.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
    head.setTextElideMode(Qt.TextElideMode.ElideRight)
    for name, width in FIXED.items():
        head.setSectionResizeMode(COLUMNS.index(name), QHeaderView.ResizeMode.Fixed)
        view.setColumnWidth(COLUMNS.index(name), look.px(width))
    view.setWordWrap(False)
    Place(view)
    return view
