#!/usr/bin/env python3
"""Read the runs with a real model in real_model/, and write real_model.json beside this file; needs Waggle's packages.

    python3 tests/measured/real_model.py --played-at COMMIT --machine "one NVIDIA H100"

The runs were played by `waggle-lab swarm` on a computer with a graphics card; real_model/README.md has the commands. COMMIT is
that of the code that played them: they were played without its history.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import figures_file

from waggle.practice.results import Book, Run
from waggle_lab.study import statistics
from waggle_lab.study.comparison import arms, configuration_label
from waggle_lab.study.statistics import Estimate

FOLDER = Path(__file__).with_suffix("")
WINNER = "8/0:form=0.25:prompt=chat_example_opened:rate=1e-5"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--played-at", required=True, help="the commit of the code that played the runs")
    parser.add_argument("--machine", required=True, help="where they were played")
    options = parser.parse_args()
    figures_file.require_clean_tree()
    runs = Book(FOLDER / "ablation.jsonl", Run).runs
    winner = [run for run in runs if run.key.configuration == WINNER]
    figures = {
        "solo_heldout_start": with_interval(run.held_out[0][0] for run in winner),
        "solo_heldout_end": with_interval(run.held_out[0][-1] for run in winner),
        "solo_heldout_end_on_twice_the_questions": with_interval(run.final[0] for run in winner),
        "ablation": ablation(runs),
        "levels_with_an_advantage": levels(),
    }
    figures_file.write(Path(__file__).resolve(), figures, commit=options.played_at, machine=options.machine)
    return 0


def ablation(runs: Iterable[Run]) -> list[dict[str, object]]:
    """One node alone, in several configurations: what changed, and the held-out score on the way (means over seeds)."""
    rows = []
    for arm in sorted(arms(list(runs)), key=lambda arm: arm.configuration):
        points = arm.runs[0].measured_at
        rows.append(
            {
                "configuration": arm.configuration,
                "label": configuration_label(arm.configuration),
                "seeds": [run.key.seed for run in arm.runs],
                "held_out": {
                    str(at): with_interval(run.held_out[0][place] for run in arm.runs) for place, at in enumerate(points)
                },
                "final_by_specialty": {
                    name: round(sum(run.specialty_final[place] for run in arm.runs) / len(arm.runs), 3)
                    for place, name in enumerate(arm.runs[0].specialties)
                },
                "tokens_per_answer": [arm.runs[0].length[0], arm.runs[0].length[-1]],
                "entropy": [arm.runs[0].entropy[0], arm.runs[0].entropy[-1]],
                "reward": with_interval(map(statistics.reward_cumulative, arm.runs)),
            }
        )
    return rows


def with_interval(points: Iterable[float]) -> dict[str, object]:
    """A mean over seeds with its 95% interval."""
    estimate: Estimate = statistics.estimate([float(point) for point in points])
    return {
        "mean": round(estimate.mean, 4),
        "interval": [round(estimate.low, 4), round(estimate.high, 4)],
        "seeds": len(estimate.points),
    }


def levels() -> dict[str, dict[str, float]]:
    """Levels in which at least a tenth of the first groups had an advantage: share of right answers, and of such groups."""
    rows = [json.loads(line) for line in (FOLDER / "levels.jsonl").read_text().splitlines()]
    return {
        f"{row['dataset']}/{row['level']}": {"right": row["right"], "groups": row["live"]}
        for row in rows
        if row["form"] == "chat_example_opened" and row.get("live", 0) >= 0.1
    }


if __name__ == "__main__":
    raise SystemExit(main())
