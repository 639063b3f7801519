"""The example notebook: its cells run as they are, one after the other in one process, with a real engine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from end_to_end.programs import ENVIRONMENT, SLOW

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs/notebook/one_node.ipynb"
PLAY = """
import json, sys
names = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
"""


def cells() -> list[dict]:
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


def test_it_is_stored_without_outputs():
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells() if cell["cell_type"] == "code")


def test_every_cell_runs(tmp_path):
    pytest.importorskip("matplotlib", reason="an extra: pip install matplotlib")
    environment = {**ENVIRONMENT, "MPLBACKEND": "agg", "MPLCONFIGDIR": str(tmp_path)}
    command = [sys.executable, "-c", PLAY, str(NOTEBOOK)]
    played = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120 * SLOW, check=False
    )
    assert played.returncode == 0, played.stderr
    lines = played.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:5]] == [f"round {number}" for number in (9, 19, 29, 39, 49)]
    assert "Starter 0.8M in First light" in lines[5]
    assert [line.partition(":")[0] for line in lines[6:12]] == [f"before round {number}" for number in range(0, 51, 10)]
    assert len(lines[12:]) == 8, "a line for each question of the last round"
