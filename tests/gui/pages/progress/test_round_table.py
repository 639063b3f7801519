"""Test that the table of rounds shows why a round has no loss."""

import pytest
from msgspec.structs import replace

from waggle.gui.pages.progress.round_table import display_cells
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
