"""The runs of one setting arranged to be compared: one arm per configuration, in the paper's order, beside training alone.

Runs of different lengths or of different splits never stand in one comparison.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from waggle.practice.results import Run
from waggle.rl.advantage import CRUMB_SPAN
from waggle_lab.starter_model.starters import SETTINGS
from waggle_lab.study import statistics
from waggle_lab.study.statistics import Estimate

ALONE = "8/0"  # the configuration that the others are measured against
FILTERED = "8/0-filtered"  # alone, with every privilege but sharing
EVEN = "4/4"  # what the paper found best
DEFAULT = "default"  # what Waggle ships
CONFIGURATIONS = (ALONE, FILTERED, "6/2", EVEN, "2/6", DEFAULT)
FLOORED = f"8/0:plain:grpo:crumbs={CRUMB_SPAN}"  # alone, but with the default's floor: what is left is sharing
YARDSTICKS = (ALONE, FILTERED, FLOORED, EVEN)  # what the default is held against


class Arm(NamedTuple):
    """The runs that differ in nothing but the seed."""

    name: str  # the configuration; with its learning rate where another arm of that configuration has more seeds
    configuration: str
    learning_rate: float
    runs: tuple[Run, ...]  # by seed

    def values(self, measure: Callable[[Run], float]) -> dict[int, float]:
        return {run.key.seed: measure(run) for run in self.runs}

    def estimate(self, measure: Callable[[Run], float]) -> Estimate:
        return statistics.estimate(list(self.values(measure).values()))


class Comparison(NamedTuple):
    """All arms of a setting that ran for the same number of rounds."""

    name: str  # the setting; with the rounds where the setting has more runs of another length
    setting: str
    rounds: int
    arms: tuple[Arm, ...]

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for arm in self.arms for run in arm.runs)

    @property
    def budget(self) -> int:
        """Completions that every run here generated: the most that a fair comparison by cost can grant to each."""
        return min(map(statistics.completions, self.runs))

    @property
    def alone(self) -> Arm | None:
        return self.arm(ALONE)

    @property
    def yardsticks(self) -> tuple[Arm, ...]:
        return tuple(arm for name in YARDSTICKS if (arm := self.arm(spoken(name))))

    def arm(self, name: str) -> Arm | None:
        return next((arm for arm in self.arms if arm.name == name), None)


class Advantage(NamedTuple):
    """An arm against another, over the seeds that both have. The ratio is None where the other scored nothing."""

    difference: Estimate
    ratio: Estimate | None

    @property
    def verdict(self) -> str:
        """higher or lower where the interval leaves out "no difference", else undecided; one seed where there is no interval."""
        shown, nothing = (self.difference, 0.0) if self.ratio is None else (self.ratio, 1.0)
        if shown.is_one_seed:
            return "one seed"
        if not shown.excludes(nothing):
            return "undecided"
        return "higher" if shown.mean > nothing else "lower"


def comparisons(runs: Iterable[Run], *, split: str) -> tuple[Comparison, ...]:
    """Every setting of that split, in the paper's order; none of the other split's runs."""
    found: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        if run.key.split == split:
            found.setdefault((run.key.setting, run.key.rounds), []).append(run)
    fullest_first = sorted(found.items(), key=lambda item: (_place(item[0][0], SETTINGS), -len(item[1]), -item[0][1]))
    named: dict[str, Comparison] = {}
    for (setting, rounds), here in fullest_first:
        name = setting if setting not in named else f"{setting}, {rounds:,} rounds"
        named[name] = Comparison(name, setting, rounds, arms(here))
    return tuple(named.values())


def against_alone(arm: Arm, comparison: Comparison, measure: Callable[[Run], float]) -> Advantage | None:
    """None for training alone itself, and where it was not run with any of the same seeds."""
    alone = comparison.alone
    return None if alone is None or arm.name == ALONE else against(arm, alone, measure)


def against(arm: Arm, other: Arm, measure: Callable[[Run], float]) -> Advantage | None:
    """None where they have no seed in common."""
    ours, theirs = arm.values(measure), other.values(measure)
    difference = statistics.paired_difference(ours, theirs)
    return None if difference is None else Advantage(difference, statistics.paired_ratio(ours, theirs))


def equal_cost(arm: Arm, other: Arm) -> int:
    """Completions that every run of both generated."""
    return min(map(statistics.completions, (*arm.runs, *other.runs)))


def best_rate(arms: Sequence[Arm]) -> float:
    """The learning rate with the highest mean held-out area: of one configuration's arms, measured on the dev split."""
    return max(arms, key=lambda arm: (arm.estimate(statistics.heldout_auc).mean, -arm.learning_rate)).learning_rate


def arms(runs: Sequence[Run]) -> tuple[Arm, ...]:
    """The runs of one comparison: an arm for each configuration and learning rate."""
    found: dict[tuple[str, float], list[Run]] = {}
    for run in runs:
        found.setdefault((run.key.configuration, run.key.learning_rate), []).append(run)
    fullest_first = sorted(found.items(), key=lambda item: (_place(item[0][0], CONFIGURATIONS), -len(item[1]), item[0][1]))
    named: dict[str, Arm] = {}
    for (configuration, rate), here in fullest_first:
        said = spoken(configuration)
        name = said if said not in named else f"{said} at {rate_text(rate)}"
        named[name] = Arm(name, configuration, rate, tuple(sorted(here, key=lambda run: run.key.seed)))
    return tuple(named.values())


def spoken(configuration: str) -> str:
    """4/4:adaptive:grpo:crumbs=0.2:questions=8 as "4/4 adaptive, crumbs 0.2, 8 drawn"; what is usual goes without saying."""
    ratio, *parts = configuration.split(":")
    words = [part for part in parts if "=" not in part and part not in ("plain", "grpo")]
    extras = [part.replace("=", " ") for part in parts if part.startswith("crumbs=")]
    extras += [f"{part.removeprefix('questions=')} drawn" for part in parts if part.startswith("questions=")]
    return ", ".join([" ".join([ratio, *words]), *extras])


def rate_text(rate: float) -> str:
    """0.0003 as 3e-4."""
    mantissa, exponent = f"{rate:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def _place(name: str, order: Sequence[str]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)
