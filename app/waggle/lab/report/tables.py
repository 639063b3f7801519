"""The tables of the report: one row per configuration, in the same order everywhere."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple
from xml.etree.ElementTree import Element

from waggle.lab import statistics
from waggle.lab.comparison import (
    ALONE,
    DEFAULT,
    FILTERED,
    Arm,
    Comparison,
    against,
    against_alone,
    best_rate,
    equal_cost,
    rate_text,
)
from waggle.lab.report.cells import (
    NOTHING,
    Shown,
    advantage_cell,
    amount,
    arm_head,
    estimate_cell,
    mean_and_interval,
    median_cell,
    plain,
    points,
    seeds_cell,
    share,
    signed,
    whole,
)
from waggle.lab.report.look import HEATS
from waggle.lab.report.markup import element
from waggle.lab.results import Run


class Metric(NamedTuple):
    """A number of a run as it stands in a table."""

    head: str
    measure: Callable[[Run], float]
    shown: Shown
    difference_shown: Shown = points


def headline_metrics(comparison: Comparison) -> tuple[Metric, ...]:
    """What a configuration is judged by."""
    rewards = amount(map(statistics.reward_cumulative, comparison.runs))
    return (
        Metric("Cumulative training reward", statistics.reward_cumulative, rewards, signed),
        Metric("Final held-out score", statistics.heldout_final, share),
        Metric(f"Mean held-out score to round {_until(comparison)}", statistics.heldout_auc, share),
    )


def _until(comparison: Comparison) -> int:
    return min(statistics.UNTIL, comparison.rounds)


def result_table(comparison: Comparison) -> Element:
    """Reward and held-out score of every configuration, each beside its difference from training alone."""
    metrics = headline_metrics(comparison)
    top = element(
        "tr",
        *(element("th", head, scope="col", rowspan=2) for head in ("Configuration", "Learning rate", "Seeds")),
        *(element("th", metric.head, scope="colgroup", colspan=2) for metric in metrics),
    )
    below = element("tr", *(element("th", head, scope="col") for _ in metrics for head in ("mean", "against 8/0")))
    rows = []
    for arm in comparison.arms:
        cells = [_metric_cells(arm, comparison, metric) for metric in metrics]
        rate = element("td", rate_text(arm.learning_rate))
        rows.append(element("tr", arm_head(arm), rate, seeds_cell(arm), *(cell for pair in cells for cell in pair)))
    note = element("span", "mean, [95% interval over seeds], and every seed", class_="note")
    return table("What was learned", [top, below], rows, class_="wide", note=note)


def _metric_cells(arm: Arm, comparison: Comparison, metric: Metric) -> tuple[Element, Element]:
    advantage = against_alone(arm, comparison, metric.measure)
    return estimate_cell(arm.estimate(metric.measure), metric.shown), advantage_cell(advantage, metric.difference_shown)


def pace_table(comparison: Comparison) -> Element:
    """How soon, at what cost in completions, and how steadily."""
    metrics = _pace_metrics(comparison)
    heads = [
        "Configuration",
        *(f"Rounds to reward {level:.2f}" for level in statistics.LEVELS),
        *(metric.head for metric in metrics),
    ]
    rows = []
    for arm in comparison.arms:
        reached = [[statistics.rounds_until(run, level) for run in arm.runs] for level in statistics.LEVELS]
        speed = (median_cell(statistics.median_round(rounds), rounds) for rounds in reached)
        rest = (estimate_cell(arm.estimate(metric.measure), metric.shown) for metric in metrics)
        rows.append(element("tr", arm_head(arm), *speed, *rest))
    return table("How soon, at what cost, how steadily", [_head(heads)], rows, class_="wide")


def _pace_metrics(comparison: Comparison) -> tuple[Metric, ...]:
    per_thousand = amount(map(statistics.reward_per_thousand, comparison.runs))
    at = partial(statistics.heldout_at, budget=comparison.budget)
    within = partial(statistics.heldout_auc_within, budget=comparison.budget)
    return (
        Metric("Reward per 1,000 completions", statistics.reward_per_thousand, per_thousand),
        Metric(f"Held-out score at {comparison.budget:,} completions", at, share),
        Metric("Its mean until then", within, share),
        Metric("Last rounds over peak", statistics.last_over_peak, plain),
        Metric("Largest fall", statistics.largest_fall, share),
    )


def cost_table(comparison: Comparison) -> Element | None:
    """The default beside each yardstick, both read where as many completions had been generated; None without the default."""
    default = comparison.arm(DEFAULT)
    if default is None or not comparison.yardsticks:
        return None
    top = element(
        "tr",
        *(element("th", head, scope="col", rowspan=2) for head in ("Default and", "Completions of each")),
        *(element("th", head, scope="colgroup", colspan=3) for head in ("Held-out score there", "Its mean until then")),
    )
    below = element(
        "tr", *(element("th", head, scope="col") for _ in range(2) for head in ("default", "the other", "default against it"))
    )
    rows = [_cost_row(default, other) for other in comparison.yardsticks]
    return table("At equal cost in completions", [top, below], rows, class_="wide")


def _cost_row(default: Arm, other: Arm) -> Element:
    budget = equal_cost(default, other)
    cells = []
    for read in (statistics.heldout_at, statistics.heldout_auc_within):
        measure = partial(read, budget=budget)
        cells += [estimate_cell(arm.estimate(measure), share) for arm in (default, other)]
        cells.append(advantage_cell(against(default, other, measure), points))
    return element("tr", arm_head(other), element("td", f"{budget:,}"), *cells)


def specialty_table(comparison: Comparison) -> Element:
    """The final held-out score in every specialty, tinted by its height."""
    names = list(dict.fromkeys(name for run in comparison.runs for name in run.specialties))
    scores = [(arm, [_final_in(arm, name) for name in names]) for arm in comparison.arms]
    highest = max((found.mean for _, row in scores for found in row if found), default=0.0) or 1.0
    rows = []
    for arm, row in scores:
        cells = []
        for found in row:
            cell = element("td", *mean_and_interval(found, share)) if found else _empty()
            cell.set("class", f"heat-{round(HEATS * found.mean / highest)}" if found else "none")
            cells.append(cell)
        rows.append(element("tr", arm_head(arm), *cells))
    heads = [name.replace("_", " ") for name in names]
    return table("Final held-out score by specialty", [_head(["Configuration", *heads])], rows, class_="wide heat")


def _final_in(arm: Arm, name: str) -> statistics.Estimate | None:
    found = [statistics.final_by_specialty(run)[name] for run in arm.runs if name in run.specialties]
    return statistics.estimate(found) if found else None


def model_table(comparison: Comparison) -> Element | None:
    """Which kind of model gains; None where all nodes run the same."""
    models = list(dict.fromkeys(model for run in comparison.runs for model in run.models))
    if len(models) < 2:
        return None
    controls = [arm for name in (ALONE, FILTERED) if (arm := comparison.arm(name))]
    top = element(
        "tr",
        element("th", "Configuration", scope="col", rowspan=2),
        *(element("th", model, scope="colgroup", colspan=1 + len(controls)) for model in models),
    )
    heads = ("final held-out", *(f"against {control.name}" for control in controls))
    below = element("tr", *(element("th", head, scope="col") for _ in models for head in heads))
    rows = []
    for arm in comparison.arms:
        cells = [cell for model in models for cell in _model_cells(arm, comparison, model, controls)]
        rows.append(element("tr", arm_head(arm), *cells))
    return table("Who gains: final held-out score by model", [top, below], rows)


def _model_cells(arm: Arm, comparison: Comparison, model: str, controls: Sequence[Arm]) -> list[Element]:
    if any(model not in run.models for run in comparison.runs):
        return [_empty() for _ in range(1 + len(controls))]
    metric = Metric(model, lambda run: statistics.final_by_model(run)[model], share)
    beside = [None if arm.name == control.name else against(arm, control, metric.measure) for control in controls]
    return [
        estimate_cell(arm.estimate(metric.measure), metric.shown),
        *(advantage_cell(advantage, metric.difference_shown) for advantage in beside),
    ]


def success_table(comparison: Comparison) -> Element | None:
    """First right answers, with and without another's before; None where none were written down."""
    if not any(run.ahas for run in comparison.runs):
        return None
    heads = [
        "Configuration",
        "First right answers",
        "After training on another's",
        "Median round, after another's",
        "Median round, by itself",
    ]
    rows = [_success_row(arm) for arm in comparison.arms]
    return table("First right answers of a node in a specialty", [_head(heads)], rows)


def _success_row(arm: Arm) -> Element:
    found = statistics.first_successes(arm.runs)
    after, alone = found.median_round_after_others, found.median_round_alone
    return element(
        "tr",
        arm_head(arm),
        element("td", element("b", f"{found.found:,}"), element("span", f"of {found.possible:,} possible", class_="small")),
        estimate_cell(found.share_after_others, share) if found.share_after_others else _empty(),
        *(_empty() if middle is None else element("td", element("b", whole(middle))) for middle in (after, alone)),
    )


def sweep_table(comparison: Comparison, reported: Sequence[Arm]) -> Element:
    """Which learning rate was best, measured on the dev split: rows are configurations, columns rates."""
    by_configuration: dict[str, list[Arm]] = {}
    for arm in comparison.arms:
        by_configuration.setdefault(arm.configuration, []).append(arm)
    rates = sorted({arm.learning_rate for arm in comparison.arms})
    heads = ["Configuration", *map(rate_text, rates), "Best", "Reported at"]
    rows = [_sweep_row(name, arms, rates, reported) for name, arms in by_configuration.items()]
    return table(f"Mean held-out score to round {_until(comparison)} on dev questions, by rate", [_head(heads)], rows)


def _sweep_row(configuration: str, arms: Sequence[Arm], rates: Sequence[float], reported: Sequence[Arm]) -> Element:
    best = best_rate(arms)
    by_rate = {arm.learning_rate: arm for arm in arms}
    tried = sorted(by_rate)
    is_at_edge = len(tried) > 1 and best in (tried[0], tried[-1])
    cells = []
    for rate in rates:
        cell = estimate_cell(by_rate[rate].estimate(statistics.heldout_auc), share) if rate in by_rate else _empty()
        cell.set("class", "best" if rate == best else "tried")
        cells.append(cell)
    used = sorted({arm.learning_rate for arm in reported if arm.configuration == configuration})
    return element(
        "tr",
        element("th", configuration, scope="row"),
        *cells,
        element(
            "td",
            element("b", rate_text(best)),
            element("span", "at the edge of those tried", class_="flag") if is_at_edge else None,
        ),
        element("td", ", ".join(map(rate_text, used)) or NOTHING),
    )


def table(
    caption: str, head: Sequence[Element], rows: Sequence[Element], class_: str = "plain", note: Element | None = None
) -> Element:
    """A table that scrolls sideways by itself where the page is narrow."""
    made = element("table", element("caption", caption, note), element("thead", *head), element("tbody", *rows), class_=class_)
    return element("div", made, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _head(heads: Sequence[str]) -> Element:
    return element("tr", *(element("th", head, scope="col") for head in heads))


def _empty() -> Element:
    return element("td", NOTHING, class_="none")
