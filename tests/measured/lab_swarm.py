#!/usr/bin/env python3
"""Plays the paper's table, extended, and writes lab_swarm.json beside this file; Python's standard library only.

    python3 tests/measured/lab_swarm.py

About twelve hours of one core, shared between all there are. Finished runs are kept in lab_swarm/, so that the command goes on
where it was stopped; report.html and the tables in that folder are made anew each time it ends.
"""

import json
import subprocess
import sys
from pathlib import Path

import keep

FOLDER = Path(__file__).with_suffix("")


def main() -> int:
    keep.require_clean()
    go_on = ["--resume"] if (FOLDER / "study.json").exists() else []
    command = ["packaging/dev.py", "lab", "swarm", "--paper", "--out", str(FOLDER.relative_to(keep.ROOT)), *go_on]
    subprocess.check_call([sys.executable, *command], cwd=keep.ROOT)
    commits = {json.loads(line)["commit"] for line in (FOLDER / "runs.jsonl").read_text().splitlines()}
    figures = json.loads((FOLDER / "figures.json").read_text())
    keep.write(Path(__file__).resolve(), figures, commit=", ".join(sorted(commits)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
