"""Held-out curves of earlier runs, drawn faint beside the present one: their lines, their names and their legend."""

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from waggle.gui.charts.plotted.measured_legend import LineSample
from waggle.gui.i18n.formatting import one_line, plural, tr
from waggle.gui.state import chart_series
from waggle.gui.state.measured_curves import clipped
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import as_widget, row
from waggle.gui.widgets.text import ElidedLabel, set_tip, text
from waggle.protocol.events import HeldOutScore, TrainingRun

Line = tuple[str, Qt.PenStyle]
LINES: tuple[Line, ...] = (
    ("text_soft", Qt.PenStyle.DashDotLine), ("peer", Qt.PenStyle.DashDotDotLine), ("good", Qt.PenStyle.DotLine),
)  # fmt: skip
MOST = len(LINES)  # that are told apart


class RunCurve(msgspec.Struct, frozen=True):
    """The scores of a run on the same questions, by its own rounds."""

    x: list[float]
    shares: list[float]
    line: Line
    label: str


def run_name(run: TrainingRun) -> str:
    if run.is_starter:
        return tr("Starter")
    return one_line(run.model).rpartition("/")[2] or tr("A model from a folder")


def run_curves(runs: Sequence[TrainingRun], last: float) -> list[RunCurve]:
    """The curves up to the round `last`; a new one where a run's questions changed."""
    curves = []
    for run, line in zip(runs, LINES, strict=False):
        for exam in chart_series.by_question_set([score for score in run.held_out if score.total]):
            x, y = clipped([score.round for score in exam], [score.right / score.total for score in exam], last)
            if x:
                curves.append(RunCurve(x, y, line, run_name(run)))
    return curves


def is_comparable(run: TrainingRun, scores: Sequence[HeldOutScore]) -> bool:
    """Whether the run's newest score is on the questions of the present run's newest."""
    if not run.held_out or not scores:
        return False
    own, other = scores[-1], run.held_out[-1]
    return bool(own.exam) and (own.exam, own.total) == (other.exam, other.total)


class RunsLegend(QWidget):
    """Hidden while no earlier run is shown."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._names = [ElidedLabel(theme, role="caption", tone="text_soft") for _ in LINES]
        self._entries = [
            as_widget(row(LineSample(theme, line), name, gap=6)) for line, name in zip(LINES, self._names, strict=True)
        ]
        self.setLayout(row(text(theme, tr("Earlier runs"), "caption", "faint"), 6, *self._entries, None, gap=10))
        self.hide()

    def show_runs(self, runs: Sequence[TrainingRun], scores: Sequence[HeldOutScore]) -> None:
        self.setVisible(bool(runs))
        for place, (entry, name) in enumerate(zip(self._entries, self._names, strict=True)):
            entry.setVisible(place < len(runs))
            if place < len(runs):
                name.say(legend_words(runs[place], scores))
                set_tip(entry, legend_words(runs[place], scores))


def legend_words(run: TrainingRun, scores: Sequence[HeldOutScore]) -> str:
    """The name of a run and how long it is, and whether its questions are others."""
    words = f"{run_name(run)}, {plural(run.rounds, '%n round', '%n rounds')}"
    return words if is_comparable(run, scores) else tr("%1, other questions").replace("%1", words)
