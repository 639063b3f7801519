#!/usr/bin/env python3
"""Measures what the bounds on peers cost in learning and writes bounds.json beside this file; Python's standard library only.

    python3 tests/measured/bounds.py

About half an hour of two cores: simulated swarms of eight honest nodes in the sparse setting, with both bounds, with each alone
and with none. Finished runs are kept in bounds/, so that the command goes on where it was stopped. Beside each cost stands what
the bound is worth: how often the models of a live swarm besieged by poisoners said the planted phrase (hostile.py).
"""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from statistics import fmean, stdev

import keep

FOLDER = Path(__file__).with_suffix("")
SIEGES = FOLDER.with_name("hostile.json")
BOUNDS = ("default", "default-share", "default-surprise")  # both, and each alone
NONE = "default-unbounded"
SEEDS, STUDENT = 5, 2.7764  # two-sided 95% of Student's t, of so many
MEASURES = ("heldout_auc", "heldout_final")
STUDY = [
    "--settings", "sparse", "--configurations", ",".join((*BOUNDS, NONE)), "--rounds", "150", "--split", "test",
    "--seeds", ",".join(map(str, range(1, SEEDS + 1))),
]  # fmt: skip


def main() -> int:
    keep.require_clean()
    go_on = ["--resume"] if (FOLDER / "study.json").exists() else []
    command = ["packaging/dev.py", "lab", "swarm", "--out", str(FOLDER.relative_to(keep.ROOT)), *STUDY, *go_on]
    subprocess.check_call([sys.executable, *command], cwd=keep.ROOT)
    commits = {json.loads(line)["commit"] for line in (FOLDER / "runs.jsonl").read_text().splitlines()}
    with (FOLDER / "runs.csv").open(newline="") as table:
        found = costs(list(csv.DictReader(table)))
    keep.write(Path(__file__).resolve(), {**found, **worth()}, commit=", ".join(sorted(commits)))
    return 0


def costs(runs: list[dict[str, str]]) -> dict[str, list[float]]:
    """Each bound's held-out score over that without any, paired by seed: mean, low and high of the 95% interval."""
    scores = {(run["configuration"], run["seed"]): run for run in runs}
    seeds = sorted({seed for _, seed in scores})
    found = {}
    for name in BOUNDS:
        for measure in MEASURES:
            ratios = [float(scores[name, seed][measure]) / float(scores[NONE, seed][measure]) for seed in seeds]
            mean, half = fmean(ratios), STUDENT * stdev(ratios) / math.sqrt(SEEDS)
            found[f"{measure}_ratio_{name}"] = [round(each, 4) for each in (mean, mean - half, mean + half)]
    return found


def worth() -> dict[str, float]:
    """By sieges of poisoners alone, with each of these bounds and with none."""
    return {name: value for name, value in json.loads(SIEGES.read_text())["figures"].items() if "_poison_" in name}


if __name__ == "__main__":
    raise SystemExit(main())
