"""Test that the table of rounds shows why a round has no loss."""

import pytest
from msgspec.structs import replace
from pytestqt.qtbot import QtBot

from waggle.gui.pages.progress.round_table import COLUMNS, RoundTableModel, RoundTableView, display_cells
from waggle.gui.theme.theme import Theme
from waggle.protocol.events import Metrics, RoundSummary

SUMMARY = RoundSummary(
    round=7, at=1.0, reward=0.5, solved=0.5, seconds=2.0, completions=8, taught=3, metrics=Metrics(loss=0.25)
)  # fmt: skip


@pytest.mark.parametrize(
    ("summary", "loss"),
    [
        (SUMMARY, "0.25"),
        (replace(SUMMARY, taught=None), "0.25"),  # of an earlier version
        (replace(SUMMARY, taught=0), "none"),
        (replace(SUMMARY, taught=0, left_out=True), "not finite"),
    ],
)
def test_a_round_without_a_step_says_why_it_has_no_loss(summary: RoundSummary, loss: str) -> None:
    assert display_cells(summary, None)[-1] == loss


def test_the_columns_in_sight_that_look_alike_are_explained(theme: Theme, qtbot: QtBot) -> None:
    view, legends = RoundTableView(theme, RoundTableModel(theme)), list[str]()
    qtbot.addWidget(view)
    view.legend_changed.connect(legends.append)
    view.resize(1200, 400)
    view.show()
    assert legends[-1].startswith("Right: of its answers in training  ·  Reward: 0 to 1; close answers count in part  ·  Loss: ")
    view.resize(700, 400)
    assert view.isColumnHidden(COLUMNS.index("Loss"))
    assert "Reward: " in legends[-1]
    assert "Loss" not in legends[-1]
