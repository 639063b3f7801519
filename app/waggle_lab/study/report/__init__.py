"""The report of a study: one page for people, four tables, and the figures that documents may quote."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from statistics import fmean

from waggle.practice.results import BIN, Run
from waggle_lab.study import statistics
from waggle_lab.study.comparison import ALONE, DEFAULT, Arm, Comparison, against, against_alone, comparisons, equal_cost
from waggle_lab.study.report import page
from waggle_lab.study.statistics import Estimate

KEY_FIELDS = ("setting", "configuration", "seed", "learning_rate", "rounds", "split")
QUOTED_MEASURES: dict[str, Callable[[Run], float]] = {
    "reward_cumulative": statistics.reward_cumulative,
    "heldout_final": statistics.heldout_final,
    "heldout_auc": statistics.heldout_auc,
    "last_over_peak": statistics.last_over_peak,
    "largest_fall": statistics.largest_fall,
}
MEASURES: dict[str, Callable[[Run], float | None]] = {
    **QUOTED_MEASURES,
    "reward_per_thousand": statistics.reward_per_thousand,
    **{f"rounds_to_{level:.2f}": partial(statistics.rounds_until, level=level) for level in statistics.REWARD_LEVELS},
}

FigureTree = float | list[float] | dict[str, "FigureTree"]


def write(runs: Sequence[Run], path: Path, *, command: str) -> None:
    """Write the report as one HTML file without scripts and references. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page.render(runs, command=command), encoding="utf-8")


def write_tables(runs: Sequence[Run], folder: Path) -> None:
    """Write runs.csv, rounds.csv, heldout.csv and specialties.csv, with all splits; an empty field is never or unknown."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_table(folder / "runs.csv", _run_rows(runs))
    _write_table(folder / "rounds.csv", _round_rows(runs))
    _write_table(folder / "heldout.csv", _held_out_rows(runs))
    _write_table(folder / "specialties.csv", _specialty_rows(runs))


def figures(runs: Sequence[Run]) -> dict[str, FigureTree]:
    """The figures that documents may quote, from test runs only: mean, low and high of each configuration in each setting.

    Ratios are to training alone, and of the default to each baseline, paired by seed; a ratio that does not exist is left out.
    `budget` is the completions that every run of the setting generated; `at_equal_cost`, those that every run of both arms did.
    """
    reported = comparisons(runs, split="test")
    quoted: dict[str, FigureTree] = {comparison.name: _comparison_figures(comparison) for comparison in reported}
    default = next((arm for comparison in reported if comparison.name == "sparse" if (arm := comparison.arm(DEFAULT))), None)
    if default is not None:
        quoted["default_last_over_peak"] = default.estimate(statistics.last_over_peak).mean
    return quoted


def _comparison_figures(comparison: Comparison) -> dict[str, FigureTree]:
    return {arm.name: _arm_figures(arm, comparison) for arm in comparison.arms}


def _arm_figures(arm: Arm, comparison: Comparison) -> dict[str, FigureTree]:
    measures: dict[str, Callable[[Run], float]] = {
        **QUOTED_MEASURES,
        "heldout_at_budget": partial(statistics.heldout_at, budget=comparison.budget),
        "heldout_auc_within_budget": partial(statistics.heldout_auc_within, budget=comparison.budget),
    }
    quoted: dict[str, FigureTree] = {name: _numbers(arm.estimate(measure)) for name, measure in measures.items()}
    ratios = {f"{name}_ratio": against_alone(arm, comparison, measure) for name, measure in measures.items()}
    for other in comparison.baselines if arm.name == DEFAULT else ():
        measured = _at_equal_cost(arm, other) if other.name == ALONE else {**QUOTED_MEASURES, **_at_equal_cost(arm, other)}
        ratios |= {f"{name}_ratio_to_{other.name}": against(arm, other, measure) for name, measure in measured.items()}
    quoted |= {name: _numbers(advantage.ratio) for name, advantage in ratios.items() if advantage and advantage.ratio}
    costs = {"learning_rate": arm.learning_rate, "seeds": float(len(arm.runs)), "budget": float(comparison.budget)}
    return quoted | costs


def _at_equal_cost(arm: Arm, other: Arm) -> dict[str, Callable[[Run], float]]:
    budget = equal_cost(arm, other)
    return {
        "heldout_at_equal_cost": partial(statistics.heldout_at, budget=budget),
        "heldout_auc_at_equal_cost": partial(statistics.heldout_auc_within, budget=budget),
    }


def _numbers(estimate: Estimate) -> list[float]:
    return [estimate.mean, estimate.low, estimate.high]


def _run_rows(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    for split in dict.fromkeys(run.key.split for run in runs):
        for comparison in comparisons(runs, split=split):
            yield from (_run_row(run, comparison.budget) for run in comparison.runs)


def _run_row(run: Run, budget: int) -> dict[str, object]:
    successes = statistics.first_successes([run])
    share = successes.share_after_others
    return {
        **_key(run),
        "commit": run.commit,
        "cpu_seconds": run.cpu_seconds,
        "nodes": len(run.models),
        "completions": statistics.completions(run),
        **{name: measure(run) for name, measure in MEASURES.items()},
        "budget": budget,
        "heldout_at_budget": statistics.heldout_at(run, budget),
        "heldout_auc_within_budget": statistics.heldout_auc_within(run, budget),
        "first_successes": successes.achieved,
        "share_after_others": None if share is None else share.mean,
    }


def _round_rows(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    """A row for each 10 rounds: their means, and the completions generated so far."""
    for run in runs:
        generated = list(accumulate(run.completions))
        missing = [None] * len(run.entropy)
        ages, lengths = run.external_age or missing, run.length or missing  # early runs did not record them
        thinned = zip(range(0, len(run.reward), BIN), run.entropy, lengths, run.external_share, ages, strict=True)
        for first, entropy, length, external, age in thinned:
            rewards = run.reward[first : first + BIN]
            last = first + len(rewards)
            yield {
                **_key(run),
                "round": last,
                "reward": fmean(rewards),
                "completions": generated[last - 1],
                "entropy": entropy,
                "length": length,
                "external_share": external,
                "external_age": age,
            }


def _held_out_rows(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    for run in runs:
        for node, (model, heights) in enumerate(zip(run.models, run.held_out, strict=True)):
            for rounds, height in zip(run.measured_at, heights, strict=True):
                yield {**_key(run), "round": rounds, "node": node, "model": model, "held_out": height}


def _specialty_rows(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    for run in runs:
        final = statistics.final_by_specialty(run)
        for specialty, rewards, heights in zip(run.specialties, run.specialty_reward, run.specialty_held_out, strict=True):
            auc = statistics.mean_height(run.measured_at, heights, statistics.AREA_ROUNDS)
            yield {
                **_key(run),
                "specialty": specialty,
                "reward": fmean(rewards),
                "heldout_auc": auc,
                "heldout_final": final[specialty],
            }


def _key(run: Run) -> dict[str, object]:
    return {name: getattr(run.key, name) for name in KEY_FIELDS}


def _write_table(path: Path, rows: Iterable[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table: csv.DictWriter[str] | None = None
        for row in rows:
            if table is None:
                table = csv.DictWriter(file, list(row))
                table.writeheader()
            table.writerow(row)
