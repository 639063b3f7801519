"""The page of a study: a section for each setting, and the choice of learning rates. Its sentences are in page.html."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from waggle.practice.results import Run
from waggle_lab.study import statistics
from waggle_lab.study.comparison import DEFAULT, Comparison, comparisons, configuration_label
from waggle_lab.study.report import charts, tables
from waggle_lab.study.report.charts import Picture
from waggle_lab.study.report.tables import Cell, Table
from waggle_lab.study.report.words import SETTINGS, configuration_words

SIGNS = {"higher": "▲", "lower": "▼", "undecided": "○", "one seed": "○"}  # sign and word, never colour alone


class Section(NamedTuple):
    """The section of one setting, with pictures and tables in reading order."""

    title: str
    words: str
    advantages: dict[str, dict[str, Cell]]  # of the default, by metric and by the arm it is compared with
    contents: list[Table | Picture]


def render(runs: Sequence[Run], *, command: str) -> str:
    """Render the document. It shows the runs on test questions or, in a study without any, those on dev questions."""
    tested = [run for run in runs if run.key.split == "test"]
    reported, sweeps = comparisons(runs, split="test"), comparisons(runs, split="dev")
    if not reported:
        swept, others = _by_sweep([run for run in runs if run.key.split == "dev"])
        reported, sweeps = comparisons(others, split="dev"), comparisons(swept, split="dev")
    arms = [arm for comparison in reported for arm in comparison.arms]
    styles = charts.line_styles(dict.fromkeys(arm.name for arm in arms))
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("page.html").render(
        command=command,
        commits=list(dict.fromkeys(_short_commit(run.commit) for run in runs)),
        nodes=" or ".join(map(str, sorted({len(run.models) for run in runs}))) or "no",
        tested=len(tested),
        untested=len(runs) - len(tested),
        seeds=sorted({run.key.seed for arm in arms for run in arm.runs}),
        hours=sum(run.cpu_seconds for run in runs) / 3600,
        configurations={
            configuration_label(name): words
            for name in dict.fromkeys(arm.configuration for arm in arms)
            if (words := configuration_words(name))
        },
        parts=[_section(comparison, styles) for comparison in reported],
        sweeps=[(_title(sweep), _sweep_table(sweep, reported)) for sweep in sweeps],
        signs=SIGNS,
        default=DEFAULT,
        statistics=statistics,
    )


def _by_sweep(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Separate the runs of sweeps from the others; a sweep plays the same seed at several rates."""
    rates = Counter(msgspec.structs.replace(run.key, learning_rate=0.0) for run in runs)
    sweeps = {(key.setting, key.rounds, key.seed) for key, times in rates.items() if times > 1}
    parts: tuple[list[Run], list[Run]] = ([], [])
    for run in runs:
        parts[(run.key.setting, run.key.rounds, run.key.seed) not in sweeps].append(run)
    return parts


def _short_commit(commit: str) -> str:
    """The first digits of a commit, with its mark for uncommitted changes."""
    name, *mark = commit.split(" ")
    return " ".join([name[:12], *mark])


def _section(comparison: Comparison, styles: charts.Styles) -> Section:
    contents = (
        charts.interval_chart(comparison, styles),
        tables.result_table(comparison),
        *charts.learning_charts(comparison, styles),
        tables.pace_table(comparison),
        tables.cost_table(comparison),
        charts.entropy_and_share_chart(comparison, styles),
        tables.specialty_table(comparison),
        tables.model_table(comparison),
        tables.success_table(comparison),
    )
    words = f"{SETTINGS.get(comparison.setting, '')} {comparison.rounds:,} rounds.".strip()
    return Section(
        _capitalised(comparison.name), words, tables.headline_advantages(comparison), [content for content in contents if content]
    )


def _title(sweep: Comparison) -> str:
    return f"{_capitalised(sweep.name)}, {sweep.rounds:,} rounds"


def _sweep_table(sweep: Comparison, reported: Sequence[Comparison]) -> Table:
    return tables.sweep_table(sweep, [arm for other in reported if other.setting == sweep.setting for arm in other.arms])


def _capitalised(name: str) -> str:
    return name[:1].upper() + name[1:]
