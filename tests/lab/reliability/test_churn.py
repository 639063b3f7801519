"""Test that no node gets stuck and nothing stays open while nodes come and go, and that the log is summed."""

from pathlib import Path

import msgspec
import pytest

from waggle.core.errors import LabError
from waggle_lab.reliability import churn


async def test_nodes_that_come_and_go_are_never_stuck_and_leave_no_process_behind(tmp_path: Path) -> None:
    run = await churn.churn(3, 5.0, tmp_path, every=0.2, tempo=0.2)
    assert run.joined >= 1
    assert (run.stuck, run.processes, run.files) == (0, 0, 0)


def test_the_log_is_added_up_and_another_file_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "churn.jsonl"
    assert churn.figures(churn.read(log))["churn_minutes"] == 0
    run = churn.ChurnRun(
        seconds=90, nodes=16, joined=30, departed=20, stuck=1, groups=9, files=0, processes=0, commit="c", machine="m"
    )
    log.write_bytes((msgspec.json.encode(run) + b"\n") * 2)
    assert churn.figures(churn.read(log)) == {
        "churn_minutes": 3.0, "churn_joined": 60, "churn_left": 40, "churn_stuck_nodes": 2, "churn_left_open": 0,
    }  # fmt: skip
    log.write_text("no log")
    with pytest.raises(LabError, match="not a run of churn"):
        churn.read(log)
