#!/usr/bin/env python3
"""Read the runs with a real model in real_model/, and write real_model.json beside this file; needs Waggle's packages.

    python3 tests/measured/real_model.py

The runs were played by `waggle-lab swarm`, those of the files that end in _cpu on a CPU and all others on a graphics card;
real_model/README.md has the commands and says at which commits.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

import figures_file
import msgspec

from waggle.practice.results import Run
from waggle.tasks.audit_results import LevelTruth, shipped_audit
from waggle_lab.study import statistics
from waggle_lab.study.comparison import Arm, arms, configuration_label
from waggle_lab.study.statistics import Estimate

FOLDER = Path(__file__).with_suffix("")
MACHINE = (
    "one NVIDIA H100, 16 cores, Python 3.12, torch 2.11.0; "
    "`first_steps_cpu`, `rules_cpu`: one core, Python 3.11, torch 2.13.0, float32"
)
FORM_OPTIONS = ":form=0.25:prompt=chat_example_opened"
ALONE, FILTERED, EVEN, MOSTLY_OTHERS, DEFAULT = (
    f"{name}{FORM_OPTIONS}:rate=2e-5" for name in ("8/0", "8/0-filtered", "4/4", "2/6", "default")
)


def main() -> int:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    figures_file.require_clean_tree()
    played = {arm.configuration: arm for arm in arms(runs_of("first_steps"))}
    alone, filtered, default = played[ALONE], played[FILTERED], played[DEFAULT]
    reward, area, end = statistics.reward_cumulative, statistics.heldout_auc, statistics.heldout_final
    figures = {
        "solo_heldout_start": with_interval(alone.estimate(lambda run: statistics.held_out(run)[0])),
        "solo_heldout_end": with_interval(alone.estimate(statistics.heldout_final)),
        "solo_by_specialty": beside_constants(alone),
        "default_over_isolated": ratio(default, alone, reward),
        "default_over_filtered": ratio(default, filtered, area),
        "plain_44_over_isolated": ratio(played[EVEN], alone, reward),
        "mostly_others_26_over_isolated": ratio(played[MOSTLY_OTHERS], alone, reward),
        "default_over_isolated_held_out": {"area": ratio(default, alone, area), "end": ratio(default, alone, end)},
        "default_over_filtered_end": ratio(default, filtered, end),
        "plain_44_over_isolated_end": ratio(played[EVEN], alone, end),
        "last_over_peak": with_interval(default.estimate(statistics.last_over_peak)),
        "best_rule": beside_gated(arms(runs_of("rules_cpu"))),
        "first_steps": [row(arm) for arm in played.values()],
        "first_steps_cpu": [row(arm) for arm in arms(runs_of("first_steps_cpu"))],
        "rules_cpu": [row(arm) for arm in arms(runs_of("rules_cpu"))],
        "first_steps_lora": [row(arm) for arm in arms(runs_of("first_steps_lora"))],
        "settings": [row(arm) for arm in arms(runs_of("settings"))],
        "settings_lora": [row(arm) for arm in arms(runs_of("settings_lora"))],
        "other_specialties": by_specialty(runs_of("other_specialties")),
        "first_light": [row(arm) for arm in arms(runs_of("first_light"))],
        "levels_with_an_advantage": levels(),
    }
    figures_file.write(Path(__file__).resolve(), figures, machine=MACHINE)
    return 0


def beside_gated(played: Iterable[Arm]) -> dict[str, object]:
    """The default's rule over the gated one, paired by seed: ratios with their 95% intervals.

    `differs` is whether an interval leaves out 1.
    """
    by_rule = {arm.configuration.split(":")[1]: arm for arm in played}
    ours, theirs = by_rule["adaptive"], by_rule["gated"]
    measures = {
        "reward": statistics.reward_cumulative,
        "area": statistics.heldout_auc,
        "end": statistics.heldout_final,
    }
    ratios = {name: statistics.paired_ratio(ours.values(measure), theirs.values(measure)) for name, measure in measures.items()}
    estimates = {name: estimate for name, estimate in ratios.items() if estimate is not None}
    return {
        "rule": "adaptive",
        "over": "gated",
        **{name: with_interval(estimate) for name, estimate in estimates.items()},
        "differs": any(estimate.low > 1 or estimate.high < 1 for estimate in estimates.values()),
    }


def runs_of(name: str) -> list[Run]:
    """The runs in a file of the folder."""
    return [msgspec.json.decode(line, type=Run) for line in (FOLDER / f"{name}.jsonl").read_bytes().splitlines()]


def row(arm: Arm) -> dict[str, object]:
    """One configuration: the held-out score on the way, and what it cost (means over seeds)."""
    points = arm.runs[0].measured_at
    curves = [statistics.held_out(run) for run in arm.runs]
    return {
        "configuration": arm.configuration,
        "label": configuration_label(arm.configuration),
        "seeds": [run.key.seed for run in arm.runs],
        "nodes": len(arm.runs[0].models),
        "held_out": {str(at): round(fmean(curve[place] for curve in curves), 4) for place, at in enumerate(points)},
        "end": with_interval(arm.estimate(statistics.heldout_final)),
        "end_by_specialty": {
            name: round(fmean(statistics.final_by_specialty(run)[name] for run in arm.runs), 3)
            for name in arm.runs[0].specialties
        },
        "area": with_interval(arm.estimate(statistics.heldout_auc)),
        "reward": with_interval(arm.estimate(statistics.reward_cumulative)),
        "answers_of_a_node": round(fmean(statistics.completions(run) / len(run.models) for run in arm.runs)),
        "tokens_per_answer": ends(arm, lambda run: run.length),
        "entropy": ends(arm, lambda run: run.entropy),
        "external_share": ends(arm, lambda run: run.external_share),
    }


def ends(arm: Arm, curve: Callable[[Run], Sequence[float]]) -> list[float]:
    """A curve's first and last point, as means over seeds."""
    return [round(fmean(curve(run)[place] for run in arm.runs), 3) for place in (0, -1)]


def beside_constants(arm: Arm) -> dict[str, dict[str, float]]:
    """The score in each specialty at the end, beside that of the constant answer that earns most."""
    end = {name: fmean(statistics.final_by_specialty(run)[name] for run in arm.runs) for name in arm.runs[0].specialties}
    truths = {name: shipped_audit().findings[name].truth["easy"] for name in end}
    return {
        name: {"end": round(end[name], 3), "constant": truth.constant}
        for name, truth in truths.items()
        if isinstance(truth, LevelTruth)
    }


def by_specialty(runs: Iterable[Run]) -> list[dict[str, object]]:
    """Start and end in each specialty of single runs."""
    return [
        {
            "configuration": run.key.configuration,
            "start_and_end": {
                name: [round(start[0], 3), round(end, 3)]
                for name, start, end in zip(run.specialties, run.specialty_held_out, run.specialty_final, strict=True)
            },
        }
        for run in runs
    ]


def ratio(ours: Arm, theirs: Arm, measure: Callable[[Run], float]) -> dict[str, object]:
    """The ratio of two means over seeds, with its 95% interval by the delta method on their logarithms.

    The runs are not paired: a node that trains alone is a swarm of its own. Welch's degrees of freedom, rounded down.
    """
    samples = [list(arm.values(measure).values()) for arm in (ours, theirs)]
    means = list(map(fmean, samples))
    parts = [statistics.estimate([point / centre for point in sample]) for sample, centre in zip(samples, means, strict=True)]
    variances = [(_half(part) / _quantile(len(part.points) - 1)) ** 2 for part in parts]
    total = sum(variances)
    degrees = total**2 / sum(v**2 / (len(sample) - 1) for v, sample in zip(variances, samples, strict=True))
    spread = _quantile(int(degrees)) * math.sqrt(total)
    centre = means[0] / means[1]
    return {
        "mean": round(centre, 3),
        "interval": [round(centre * math.exp(-spread), 3), round(centre * math.exp(spread), 3)],
        "seeds": [len(sample) for sample in samples],
    }


def _half(estimate: Estimate) -> float:
    return estimate.high - estimate.mean


def _quantile(degrees: int) -> float:
    return statistics.STUDENT_QUANTILES[min(max(degrees, 1), len(statistics.STUDENT_QUANTILES)) - 1]


def with_interval(estimate: Estimate) -> dict[str, object]:
    """A mean over seeds with its 95% interval."""
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
