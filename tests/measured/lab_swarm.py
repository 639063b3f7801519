#!/usr/bin/env python3
"""Play the extended table of the SAPO paper, and write lab_swarm.json beside this file; standard library only.

    python3 tests/measured/lab_swarm.py

It takes about twelve hours of one core, divided by the number of cores. Finished runs are saved in lab_swarm/, so the command
continues where it was stopped; at its end it writes report.html and the tables in that folder again.
"""

import json
import subprocess
import sys
from pathlib import Path

import figures_file

FOLDER = Path(__file__).with_suffix("")


def main() -> int:
    figures_file.require_clean_tree()
    resume = ["--resume"] if (FOLDER / "study.json").exists() else []
    command = ["packaging/dev.py", "lab", "swarm", "--paper", "--out", str(FOLDER.relative_to(figures_file.ROOT)), *resume]
    subprocess.check_call([sys.executable, *command], cwd=figures_file.ROOT)
    commits = {json.loads(line)["commit"] for line in (FOLDER / "runs.jsonl").read_text().splitlines()}
    figures = json.loads((FOLDER / "figures.json").read_text())
    figures_file.write(Path(__file__).resolve(), figures, commit=", ".join(sorted(commits)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
