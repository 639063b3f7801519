"""Arrange the runs of a setting for comparison: an arm for each configuration, in the order of the SAPO paper (arXiv 2509.08721).

A comparison never mixes runs of different lengths or splits.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from waggle.practice.results import Run
from waggle.rl.advantage import CRUMB_SPAN
from waggle_lab.starter_model.setting_models import SETTINGS
from waggle_lab.study import statistics
from waggle_lab.study.statistics import Estimate

ALONE = "8/0"  # the configuration that the others are measured against
FILTERED = "8/0-filtered"  # alone, with every advantage of the default except sharing
EVEN = "4/4"  # the best mixture in the paper
DEFAULT = "default"  # the configuration of the app
CONFIGURATIONS = (ALONE, FILTERED, "6/2", EVEN, "2/6", DEFAULT)
FLOORED = f"8/0:plain:grpo:crumbs={CRUMB_SPAN}"  # alone, with the default's crumb span: the remaining difference is sharing
OPTION_LABELS = {  # in the order in which a label has them
    "crumbs": "crumbs {}",
    "questions": "{} drawn",
    "form": "{} for the form",
    "updates": "{} steps a round",
    "prompt": "asked by {}",
    "temperature": "temperature {}",
    "rate": "rate {}",
}
BASELINES = (ALONE, FILTERED, FLOORED, EVEN)  # what the default is compared with


class Arm(NamedTuple):
    """Runs that differ in the seed only."""

    name: str  # the configuration's label; with the learning rate if another arm of the configuration has more seeds
    configuration: str
    learning_rate: float
    runs: tuple[Run, ...]  # by seed

    def values(self, measure: Callable[[Run], float]) -> dict[int, float]:
        return {run.key.seed: measure(run) for run in self.runs}

    def estimate(self, measure: Callable[[Run], float]) -> Estimate:
        return statistics.estimate(list(self.values(measure).values()))


class Comparison(NamedTuple):
    """All arms of a setting with the same number of rounds."""

    name: str  # the setting; with the rounds if the setting has more runs of another length
    setting: str
    rounds: int
    arms: tuple[Arm, ...]

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for arm in self.arms for run in arm.runs)

    @property
    def budget(self) -> int:
        """The completions that every run generated: the largest budget at which all can be compared."""
        return min(map(statistics.completions, self.runs))

    @property
    def alone(self) -> Arm | None:
        """What the others are measured against: 8/0; without it, the first that trains alone on all that it draws."""
        return self.arm(ALONE) or next((arm for arm in self.arms if _is_alone(arm.configuration)), None)

    @property
    def baselines(self) -> tuple[Arm, ...]:
        return tuple(arm for name in BASELINES if (arm := self.arm(configuration_label(name))))

    def arm(self, name: str) -> Arm | None:
        return next((arm for arm in self.arms if arm.name == name), None)


class Lead(NamedTuple):
    """An arm compared with another over the seeds of both. The ratio is None if the other scored nothing."""

    difference: Estimate
    ratio: Estimate | None

    @property
    def verdict(self) -> str:
        """`higher` or `lower` if the interval excludes "no difference", else `undecided`; `one seed` if there is no interval."""
        estimate, no_difference = (self.difference, 0.0) if self.ratio is None else (self.ratio, 1.0)
        if estimate.is_one_seed:
            return "one seed"
        if not estimate.excludes(no_difference):
            return "undecided"
        return "higher" if estimate.mean > no_difference else "lower"


def comparisons(runs: Iterable[Run], *, split: str) -> tuple[Comparison, ...]:
    """The comparisons of all settings in one split, in the paper's order."""
    runs_by_setting: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        if run.key.split == split:
            runs_by_setting.setdefault((run.key.setting, run.key.rounds), []).append(run)
    fullest_first = sorted(runs_by_setting.items(), key=lambda item: (_rank(item[0][0], SETTINGS), -len(item[1]), -item[0][1]))
    by_name: dict[str, Comparison] = {}
    for (setting, rounds), members in fullest_first:
        name = setting if setting not in by_name else f"{setting}, {rounds:,} rounds"
        by_name[name] = Comparison(name, setting, rounds, arms(members))
    return tuple(by_name.values())


def against_alone(arm: Arm, comparison: Comparison, measure: Callable[[Run], float]) -> Lead | None:
    """Compare an arm with training alone; None for training alone itself, and without a common seed."""
    alone = comparison.alone
    return None if alone is None or arm.name == alone.name else against(arm, alone, measure)


def against(arm: Arm, other: Arm, measure: Callable[[Run], float]) -> Lead | None:
    """Compare two arms over their common seeds; None without one."""
    ours, theirs = arm.values(measure), other.values(measure)
    difference = statistics.paired_difference(ours, theirs)
    return None if difference is None else Lead(difference, statistics.paired_ratio(ours, theirs))


def equal_cost(arm: Arm, other: Arm) -> int:
    """The completions that every run of both arms generated."""
    return min(map(statistics.completions, (*arm.runs, *other.runs)))


def best_rate(arms: Sequence[Arm]) -> float:
    """The learning rate with the highest mean area under the held-out curve, among the arms of one configuration."""
    return max(arms, key=lambda arm: (arm.estimate(statistics.heldout_auc).mean, -arm.learning_rate)).learning_rate


def arms(runs: Sequence[Run]) -> tuple[Arm, ...]:
    """Divide the runs of a comparison into arms, one for each configuration and learning rate."""
    runs_by_arm: dict[tuple[str, float], list[Run]] = {}
    for run in runs:
        runs_by_arm.setdefault((run.key.configuration, run.key.learning_rate), []).append(run)
    fullest_first = sorted(runs_by_arm.items(), key=lambda item: (_rank(item[0][0], CONFIGURATIONS), -len(item[1]), item[0][1]))
    by_name: dict[str, Arm] = {}
    for (configuration, rate), members in fullest_first:
        label = configuration_label(configuration)
        name = label if label not in by_name else f"{label} at {rate_label(rate)}"
        by_name[name] = Arm(name, configuration, rate, tuple(sorted(members, key=lambda run: run.key.seed)))
    return tuple(by_name.values())


def _is_alone(configuration: str) -> bool:
    ratio, *parts = configuration.split(":")
    return ratio.endswith("/0") and "filtered" not in parts


def configuration_label(configuration: str) -> str:
    """4/4:adaptive:grpo:crumbs=0.2:questions=8 as "4/4 adaptive, crumbs 0.2, 8 drawn", without the usual parts."""
    ratio, *parts = configuration.split(":")
    words = [part for part in parts if "=" not in part and part not in ("plain", "grpo")]
    options = dict(part.split("=") for part in parts if "=" in part)
    extras = [text.format(options[name]) for name, text in OPTION_LABELS.items() if name in options]
    return ", ".join([" ".join([ratio, *words]), *extras])


def rate_label(rate: float) -> str:
    """0.0003 as "3e-4"."""
    mantissa, exponent = f"{rate:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def _rank(name: str, order: Sequence[str]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)
