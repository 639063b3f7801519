#!/usr/bin/env python3
"""Measure what the bounds on peers cost in learning, and write bounds.json beside this file; standard library only.

    python3 tests/measured/bounds.py

It takes about half an hour of two cores: simulated swarms of eight honest nodes in the sparse setting, with both bounds, with
each alone and with none. Finished runs are saved in bounds/, so the command continues where it was stopped. Beside the costs it
writes the benefit: how often models of a live swarm under attack by poisoners say the planted phrase (from hostile.py).
"""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from statistics import fmean, stdev

import figures_file

FOLDER = Path(__file__).with_suffix("")
SIEGES = FOLDER.with_name("hostile.json")
BOUNDS = ("default", "default-share", "default-surprise")  # with both, and with each alone
UNBOUNDED = "default-unbounded"
SEEDS, STUDENT_QUANTILE = 5, 2.7764  # of Student's t, two-sided 95%, for so many seeds
MEASURES = ("heldout_auc", "heldout_final")
STUDY = [
    "--settings", "sparse", "--configurations", ",".join((*BOUNDS, UNBOUNDED)), "--rounds", "150", "--split", "test",
    "--seeds", ",".join(map(str, range(1, SEEDS + 1))),
]  # fmt: skip


def main() -> int:
    figures_file.require_clean_tree()
    resume = ["--resume"] if (FOLDER / "study.json").exists() else []
    command = ["packaging/dev.py", "lab", "swarm", "--out", str(FOLDER.relative_to(figures_file.ROOT)), *STUDY, *resume]
    subprocess.check_call([sys.executable, *command], cwd=figures_file.ROOT)
    commits = {json.loads(line)["commit"] for line in (FOLDER / "runs.jsonl").read_text().splitlines()}
    with (FOLDER / "runs.csv").open(newline="") as table:
        cost_figures = costs(list(csv.DictReader(table)))
    figures_file.write(Path(__file__).resolve(), {**cost_figures, **trigger_rates()}, commit=", ".join(sorted(commits)))
    return 0


def costs(runs: list[dict[str, str]]) -> dict[str, list[float]]:
    """The held-out score with bounds over the score without, paired by seed: mean, low and high of the 95% interval."""
    scores = {(run["configuration"], run["seed"]): run for run in runs}
    seeds = sorted({seed for _, seed in scores})
    figures = {}
    for name in BOUNDS:
        for measure in MEASURES:
            ratios = [float(scores[name, seed][measure]) / float(scores[UNBOUNDED, seed][measure]) for seed in seeds]
            mean, half = fmean(ratios), STUDENT_QUANTILE * stdev(ratios) / math.sqrt(SEEDS)
            figures[f"{measure}_ratio_{name}"] = [round(number, 4) for number in (mean, mean - half, mean + half)]
    return figures


def trigger_rates() -> dict[str, float]:
    """How often models say the planted phrase after a siege by poisoners, with each of these bounds and with none."""
    return {name: value for name, value in json.loads(SIEGES.read_text())["figures"].items() if "_poison_" in name}


if __name__ == "__main__":
    raise SystemExit(main())
