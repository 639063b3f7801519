#!/usr/bin/env python3
"""Play the extended table of the SAPO paper, and write lab_swarm.json beside this file; standard library only.

    python3 tests/measured/lab_swarm.py
    python3 tests/measured/lab_swarm.py --sparse    (four configurations with sparse reward, in lab_sparse/)

The whole table takes about twelve hours of one core, divided by the number of cores, and `--sparse` about five and a half.
Finished runs are saved in lab_swarm/ or lab_sparse/, so the command continues where it was stopped; at its end it writes
report.html and the tables in that folder again. `--sparse` replaces only the figures `sparse_true_keys` in lab_swarm.json.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import figures_file

FOLDER, SPARSE_FOLDER = Path(__file__).with_suffix(""), Path(__file__).with_name("lab_sparse")
SPARSE_STUDY = (
    "--settings", "sparse", "--configurations", "8/0,8/0-filtered,4/4,default", "--rounds", "600", "--seeds", "1,2,3,4,5",
    "--rates", "2.5e-4,5e-4,1e-3",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sparse", action="store_true", help="only the main table, four configurations with sparse reward")
    options = parser.parse_args()
    figures_file.require_clean_tree()
    script = Path(__file__).resolve()
    if not options.sparse:
        figures, commit = play(FOLDER, "--paper")
        figures_file.write(script, figures, commit=commit)
        return 0
    sparse, commit = play(SPARSE_FOLDER, *SPARSE_STUDY)
    former = json.loads(script.with_suffix(".json").read_text())
    figures = former["figures"] | {"sparse_true_keys": sparse["sparse"] | {"commit": commit}}
    figures_file.write(script, figures, commit=former["commit"], machine=former["machine"])
    return 0


def play(folder: Path, *study: str) -> tuple[dict[str, object], str]:
    """Play what is missing of a study; returns its figures, and the commits that played its runs."""
    resume = ["--resume"] if (folder / "study.json").exists() else []
    command = ["packaging/dev.py", "lab", "swarm", *study, "--out", str(folder.relative_to(figures_file.ROOT)), *resume]
    subprocess.check_call([sys.executable, *command], cwd=figures_file.ROOT)
    commits = {json.loads(line)["commit"] for line in (folder / "runs.jsonl").read_text().splitlines()}
    return json.loads((folder / "figures.json").read_text()), ", ".join(sorted(commits))


if __name__ == "__main__":
    raise SystemExit(main())
