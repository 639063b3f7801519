"""The page of a study: the question, what was run, one part per setting, the choice of learning rates, and how to read it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

import msgspec

from waggle.lab.comparison import DEFAULT, Advantage, Arm, Comparison, against, comparisons, spoken
from waggle.lab.report.cells import advantage_shown, interval_text, verdict
from waggle.lab.report.curves import CHARTS, inner_charts, learning_charts
from waggle.lab.report.look import line_names, style_sheet
from waggle.lab.report.markup import element
from waggle.lab.report.tables import (
    Metric,
    cost_table,
    headline_metrics,
    model_table,
    pace_table,
    result_table,
    specialty_table,
    success_table,
    sweep_table,
)
from waggle.lab.report.words import CLOSING, DEV, QUESTION, SUCCESSES, configuration_words, lede, setting_words
from waggle.lab.results import Run


class Study(NamedTuple):
    """What the page is about: `shown` was scored on test questions, unless the study has none; `sweeps` chose learning rates."""

    runs: Sequence[Run]
    command: str
    shown: tuple[Comparison, ...]
    sweeps: tuple[Comparison, ...]
    looks: Mapping[str, str]  # of each arm's line


def compose(runs: Sequence[Run], *, command: str) -> Element:
    """The whole document."""
    shown, sweeps = comparisons(runs, split="test"), comparisons(runs, split="dev")
    if not shown:
        choosing, others = _parted([run for run in runs if run.key.split == "dev"])
        shown, sweeps = comparisons(others, split="dev"), comparisons(choosing, split="dev")
    looks = line_names(dict.fromkeys(arm.name for comparison in shown for arm in comparison.arms))
    study = Study(runs, command, shown, sweeps, looks)
    parts = [_setting(comparison, study, number) for number, comparison in enumerate(shown)]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"Waggle: {QUESTION}"),
        element("style", style_sheet()),
    )
    body = element("body", element("main", _opening(study), *parts, _sweep(study), _closing()))
    return element("html", head, body, lang="en")


def _parted(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Runs that choose a learning rate, and all others: a sweep plays the same seed at several rates."""
    rates = Counter(msgspec.structs.replace(run.key, learning_rate=0.0) for run in runs)
    swept = {(key.setting, key.rounds, key.seed) for key, count in rates.items() if count > 1}
    parts: tuple[list[Run], list[Run]] = ([], [])
    for run in runs:
        parts[(run.key.setting, run.key.rounds, run.key.seed) not in swept].append(run)
    return parts


def _opening(study: Study) -> Element:
    said = "" if study.shown else "No finished run is scored on test questions yet."
    if any(run.key.split == "dev" for comparison in study.shown for run in comparison.runs):
        said = "All runs are scored on dev questions: they serve to choose by, and nothing here is a result to report."
    untested = element("p", said, class_="lede") if said else None
    return element(
        "header",
        element("p", "Waggle laboratory", class_="eyebrow"),
        element("h1", QUESTION),
        element("p", lede(study.runs), class_="lede"),
        untested,
        _facts(study),
        _configurations(study),
    )


def _facts(study: Study) -> Element:
    seeds = sorted({run.key.seed for comparison in study.shown for run in comparison.runs})
    tested = [run for run in study.runs if run.key.split == "test"]
    hours = sum(run.cpu_seconds for run in study.runs) / 3600
    commits = list(dict.fromkeys(run.commit for run in study.runs))
    facts = (
        ("Command", element("code", study.command)),
        ("Commit" if len(commits) == 1 else "Commits", element("code", ", ".join(map(_short, commits)))),
        ("Runs", f"{len(tested):,} scored on test questions, {len(study.runs) - len(tested):,} on dev questions"),
        ("Seeds", ", ".join(map(str, seeds)) or "none"),
        ("Computing", f"{hours:,.1f} CPU hours"),
    )
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in facts), class_="facts")


def _short(commit: str) -> str:
    """Its first digits, and whether there were changes that it does not name."""
    name, *mark = commit.split(" ")
    return " ".join([name[:12], *mark])


def _configurations(study: Study) -> Element | None:
    found = dict.fromkeys(arm.configuration for comparison in study.shown for arm in comparison.arms)
    explained = [(spoken(name), words) for name in found if (words := configuration_words(name))]
    if not explained:
        return None
    items = (element("div", element("dt", name), element("dd", words)) for name, words in explained)
    return element("dl", *items, class_="glossary")


def _setting(comparison: Comparison, study: Study, number: int) -> Element:
    title = comparison.name[:1].upper() + comparison.name[1:]
    words = " ".join(filter(None, (setting_words(comparison.setting), f"{comparison.rounds:,} rounds.")))
    successes = success_table(comparison)
    return element(
        "section",
        element("h2", title),
        element("p", words, class_="lede"),
        _tiles(comparison),
        result_table(comparison),
        *learning_charts(comparison, study.looks, CHARTS * number),
        pace_table(comparison),
        cost_table(comparison),
        *inner_charts(comparison, study.looks, CHARTS * number + 3),
        specialty_table(comparison),
        model_table(comparison),
        successes,
        None if successes is None else element("p", SUCCESSES, class_="aside"),
    )


def _tiles(comparison: Comparison) -> Element | None:
    """The three figures a reader comes for: the default against training alone, in three ways, and the paper's best."""
    default = comparison.arm(DEFAULT)
    others = comparison.yardsticks
    tiles = [tile for metric in headline_metrics(comparison) if default and (tile := _tile(metric, default, others))]
    return element("div", *tiles, class_="tiles") if tiles else None


def _tile(metric: Metric, default: Arm, others: Sequence[Arm]) -> Element | None:
    """None where the default shares no seed with any of the others."""
    found = [(other.name, advantage) for other in others if (advantage := against(default, other, metric.measure))]
    lines = (_tile_line(metric, name, advantage) for name, advantage in found)
    return element("div", element("p", f"{metric.head}, default", class_="tile-name"), *lines) if found else None


def _tile_line(metric: Metric, other: str, advantage: Advantage) -> Element:
    estimate, shown = advantage_shown(advantage, metric.difference_shown)
    interval = None if estimate.is_one_seed else element("span", interval_text(estimate, shown), class_="interval")
    figure = element("b", shown(estimate.mean), class_="tile-figure")
    return element("p", figure, f" against {other} ", verdict(advantage), " ", interval, class_="tile-line")


def _sweep(study: Study) -> Element | None:
    if not study.sweeps:
        return None
    parts: list[Element] = []
    for comparison in study.sweeps:
        tested = [arm for test in study.shown if test.setting == comparison.setting for arm in test.arms]
        title = f"{comparison.name[:1].upper()}{comparison.name[1:]}, {comparison.rounds:,} rounds"
        parts += [element("h3", title), sweep_table(comparison, tested)]
    return element("section", element("h2", "How the learning rates were chosen"), element("p", DEV, class_="lede"), *parts)


def _closing() -> Element:
    items = (element("li", element("strong", f"{head} "), words) for head, words in CLOSING)
    return element(
        "section", element("h2", "How to read this, and what it does not show"), element("ul", *items, class_="closing")
    )
