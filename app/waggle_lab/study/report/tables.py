"""The tables of the report: a row for each configuration, in the same order in all tables."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from waggle.practice.results import Run
from waggle_lab.study import statistics
from waggle_lab.study.comparison import (
    ALONE,
    DEFAULT,
    FILTERED,
    Arm,
    Comparison,
    Lead,
    against,
    against_alone,
    best_rate,
    equal_cost,
    rate_label,
)
from waggle_lab.study.report import number_format
from waggle_lab.study.report.number_format import Format, percent, percentage_points
from waggle_lab.study.statistics import Estimate

MISSING = "–"


class Metric(NamedTuple):
    """A number of a run, with the formats of the number and of its differences."""

    title: str
    measure: Callable[[Run], float]
    format: Format = percent
    difference_format: Format = percentage_points


class Cell(NamedTuple):
    """A number in a table, with the lines below it from top to bottom."""

    value: str = MISSING
    interval: str = ""
    detail: str = ""  # the value of each seed, or a remark
    verdict: str = ""  # see `Lead.verdict`
    flag: str = ""  # a warning
    shade: float = 0.0  # of the background, from 0 to 1
    is_best: bool = False


class ColumnHead(NamedTuple):
    """The head of a column, or of several columns with heads of their own."""

    title: str
    columns: tuple[str, ...] = ()


class Table(NamedTuple):
    title: str
    heads: list[ColumnHead]
    rows: dict[str, list[Cell]]  # by the name in the first column
    corner: str = "Configuration"
    note: str = ""


def headline_metrics(comparison: Comparison) -> tuple[Metric, ...]:
    """The metrics that configurations are compared by."""
    rewards = number_format.three_digits(map(statistics.reward_cumulative, comparison.runs))
    return (
        Metric("Cumulative training reward", statistics.reward_cumulative, rewards, number_format.signed),
        Metric("Final held-out score", statistics.heldout_final),
        Metric(f"Mean held-out score to round {_area_end(comparison)}", statistics.heldout_auc),
    )


def headline_advantages(comparison: Comparison) -> dict[str, dict[str, Cell]]:
    """The default compared with each baseline that shares a seed with it, by metric and baseline."""
    default, others = comparison.arm(DEFAULT), comparison.baselines
    advantages: dict[str, dict[str, Cell]] = {}
    for metric in headline_metrics(comparison) if default else ():
        for other in others:
            if default and (advantage := against(default, other, metric.measure)):
                advantages.setdefault(metric.title, {})[other.name] = _lead_cell(advantage, metric)
    return advantages


def result_table(comparison: Comparison) -> Table:
    """Reward and held-out score of every configuration, with the difference from training alone."""
    metrics, alone = headline_metrics(comparison), comparison.alone
    heads = [ColumnHead(metric.title, ("mean", f"against {alone.name if alone else ALONE}")) for metric in metrics]
    rows = {arm.name: [Cell(rate_label(arm.learning_rate)), _seeds_cell(arm)] for arm in comparison.arms}
    for arm in comparison.arms:
        for metric in metrics:
            advantage = against_alone(arm, comparison, metric.measure)
            rows[arm.name] += [_metric_cell(arm, metric), _lead_cell(advantage, metric)]
    note = "mean, [95% interval over seeds], and every seed"
    return Table("What was learned", [ColumnHead("Learning rate"), ColumnHead("Seeds"), *heads], rows, note=note)


def pace_table(comparison: Comparison) -> Table:
    """How soon a reward is reached, at what cost in completions, and how steady the reward is."""
    budget, per_thousand = comparison.budget, statistics.reward_per_thousand
    metrics = (
        Metric("Reward per 1,000 completions", per_thousand, number_format.three_digits(map(per_thousand, comparison.runs))),
        Metric(f"Held-out score at {budget:,} completions", partial(statistics.heldout_at, budget=budget)),
        Metric("Its mean until then", partial(statistics.heldout_auc_within, budget=budget)),
        Metric("Last rounds over peak", statistics.last_over_peak, number_format.two_decimals),
        Metric("Largest fall", statistics.largest_fall),
    )
    heads = [ColumnHead(f"Rounds to reward {level:.2f}") for level in statistics.REWARD_LEVELS] + [
        ColumnHead(metric.title) for metric in metrics
    ]
    rows = {}
    for arm in comparison.arms:
        pace = ([statistics.rounds_until(run, level) for run in arm.runs] for level in statistics.REWARD_LEVELS)
        rows[arm.name] = [*map(_median_cell, pace), *(_metric_cell(arm, metric) for metric in metrics)]
    return Table("How soon, at what cost, how steadily", heads, rows)


def cost_table(comparison: Comparison) -> Table | None:
    """The default and each baseline, compared at the same number of completions; None without the default."""
    default = comparison.arm(DEFAULT)
    if default is None or not comparison.baselines:
        return None
    columns = ("default", "the other", "default against it")
    rows = {}
    for other in comparison.baselines:
        budget = equal_cost(default, other)
        rows[other.name] = [Cell(f"{budget:,}")]
        for read in (statistics.heldout_at, statistics.heldout_auc_within):
            metric = Metric("", partial(read, budget=budget))
            advantage = against(default, other, metric.measure)
            rows[other.name] += [_metric_cell(default, metric), _metric_cell(other, metric), _lead_cell(advantage, metric)]
    heads = [
        ColumnHead("Completions of each"),
        ColumnHead("Held-out score there", columns),
        ColumnHead("Its mean until then", columns),
    ]
    return Table("At equal cost in completions", heads, rows, corner="Default and")


def specialty_table(comparison: Comparison) -> Table:
    """The final held-out score in every specialty, shaded by its height."""
    names = list(dict.fromkeys(name for run in comparison.runs for name in run.specialties))
    scores = {arm.name: [_final_in(arm, name) for name in names] for arm in comparison.arms}
    highest = max((score.mean for row in scores.values() for score in row if score), default=0.0) or 1.0
    rows = {
        arm: [
            _estimate_cell(score, percent)._replace(detail="", shade=score.mean / highest) if score else Cell() for score in row
        ]
        for arm, row in scores.items()
    }
    return Table("Final held-out score by specialty", [ColumnHead(name.replace("_", " ")) for name in names], rows)


def _final_in(arm: Arm, specialty: str) -> Estimate | None:
    scores = [statistics.final_by_specialty(run)[specialty] for run in arm.runs if specialty in run.specialties]
    return statistics.estimate(scores) if scores else None


def model_table(comparison: Comparison) -> Table | None:
    """The final held-out score by model; None if all nodes have the same model."""
    models = list(dict.fromkeys(model for run in comparison.runs for model in run.models))
    if len(models) < 2:
        return None
    controls = [arm for name in (ALONE, FILTERED) if (arm := comparison.arm(name))]
    columns = ("final held-out", *(f"against {control.name}" for control in controls))
    rows: dict[str, list[Cell]] = {arm.name: [] for arm in comparison.arms}
    for arm in comparison.arms:
        for model in models:
            rows[arm.name] += _model_cells(arm, comparison, model, controls)
    return Table("Who gains: final held-out score by model", [ColumnHead(model, columns) for model in models], rows)


def _model_cells(arm: Arm, comparison: Comparison, model: str, controls: Sequence[Arm]) -> list[Cell]:
    if any(model not in run.models for run in comparison.runs):
        return [Cell()] * (1 + len(controls))
    metric = Metric(model, lambda run: statistics.final_by_model(run)[model])
    advantages = (None if arm.name == control.name else against(arm, control, metric.measure) for control in controls)
    return [_metric_cell(arm, metric), *(_lead_cell(advantage, metric) for advantage in advantages)]


def success_table(comparison: Comparison) -> Table | None:
    """First successes, alone and after training on a peer's success; None if no run recorded any."""
    if not any(run.ahas for run in comparison.runs):
        return None
    heads = ("First right answers", "After training on another's", "Median round, after another's", "Median round, by itself")
    rows = {}
    for arm in comparison.arms:
        successes = statistics.first_successes(arm.runs)
        share = successes.share_after_others
        medians = (successes.median_round_after_others, successes.median_round_alone)
        rows[arm.name] = [
            Cell(f"{successes.achieved:,}", detail=f"of {successes.possible:,} possible"),
            _estimate_cell(share, percent) if share else Cell(),
            *(Cell() if median is None else Cell(number_format.count(median)) for median in medians),
        ]
    return Table("First right answers of a node in a specialty", list(map(ColumnHead, heads)), rows)


def sweep_table(comparison: Comparison, reported: Sequence[Arm]) -> Table:
    """The sweeps on the dev split: a row for each configuration, a column for each learning rate."""
    by_configuration: dict[str, dict[float, Arm]] = {}
    for arm in comparison.arms:
        by_configuration.setdefault(arm.configuration, {})[arm.learning_rate] = arm
    rates = sorted({arm.learning_rate for arm in comparison.arms})
    area = Metric(f"Mean held-out score to round {_area_end(comparison)} on dev questions, by rate", statistics.heldout_auc)
    rows = {}
    for configuration, by_rate in by_configuration.items():
        best = best_rate(list(by_rate.values()))
        is_at_edge = len(by_rate) > 1 and best in (min(by_rate), max(by_rate))
        reported_rates = sorted({arm.learning_rate for arm in reported if arm.configuration == configuration})
        rows[configuration] = [
            *(_metric_cell(by_rate[rate], area)._replace(is_best=rate == best) if rate in by_rate else Cell() for rate in rates),
            Cell(rate_label(best), flag="at the edge of those tried" if is_at_edge else ""),
            Cell(", ".join(map(rate_label, reported_rates)) or MISSING),
        ]
    return Table(area.title, list(map(ColumnHead, (*map(rate_label, rates), "Best", "Reported at"))), rows)


def _lead_cell(advantage: Lead | None, metric: Metric) -> Cell:
    """The ratio to the other arm, or the difference if there is no ratio because the other scored nothing."""
    if advantage is None:
        return Cell()
    ratio, difference = advantage.ratio, advantage.difference
    cell = _estimate_cell(ratio, number_format.percent_change) if ratio else _estimate_cell(difference, metric.difference_format)
    return cell._replace(detail="", verdict=advantage.verdict)


def _metric_cell(arm: Arm, metric: Metric) -> Cell:
    return _estimate_cell(arm.estimate(metric.measure), metric.format)


def _estimate_cell(estimate: Estimate, number: Format) -> Cell:
    return Cell(
        number(estimate.mean), number_format.interval(estimate, number), number_format.seed_values(estimate.points, number)
    )


def _median_cell(rounds: Sequence[int | None]) -> Cell:
    """The median over seeds, with the rounds of all seeds."""
    return Cell(_count_or_never(statistics.median_round(rounds)), detail=" ".join(map(_count_or_never, rounds)))


def _count_or_never(rounds: float | None) -> str:
    return "never" if rounds is None else number_format.count(rounds)


def _seeds_cell(arm: Arm) -> Cell:
    seeds = [run.key.seed for run in arm.runs]
    return Cell(str(len(seeds)), detail=number_format.span(seeds), flag="one seed: no interval" if len(seeds) == 1 else "")


def _area_end(comparison: Comparison) -> int:
    return min(statistics.AREA_ROUNDS, comparison.rounds)
