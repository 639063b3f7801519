"""Statistics of simulated swarms: pure functions of one run, and intervals over seeds.

An interval is always over seeds, never over nodes: nodes learn from each other, so they are not independent.

In shapes, P is the number of points of a held-out curve and N the number of nodes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import fmean, median, stdev
from typing import NamedTuple

import numpy as np

from waggle.practice.results import Run

SMOOTHING_WINDOW = 20  # rounds in the moving mean of the reward
AREA_ROUNDS = 200  # the area under the held-out curve counts these rounds, even of a longer run
REWARD_LEVELS = (0.05, 0.10, 0.15)  # of the smoothed reward
MIN_PEAK = 0.02  # falls from a lower smoothed reward are noise
STUDENT_QUANTILES = (  # two-sided 95% quantiles for 1, 2, ... degrees of freedom (n - 1)
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
)


class Estimate(NamedTuple):
    """A mean over seeds with its 95% interval. One seed has no interval: low and high are the mean."""

    mean: float
    low: float
    high: float
    points: tuple[float, ...]  # one per seed

    @property
    def is_one_seed(self) -> bool:
        return len(self.points) == 1

    def excludes(self, value: float) -> bool:
        """Whether the value is outside the interval; one seed excludes nothing."""
        return not self.is_one_seed and not self.low <= value <= self.high


class FirstSuccessSummary(NamedTuple):
    """The first successes of nodes in specialties, over all seeds. Shares and medians are None if there are none."""

    achieved: int
    possible: int  # nodes times the specialties that each asks about, over all seeds
    share_after_others: Estimate | None  # the share of nodes that had trained on a peer's success in the specialty before
    median_round_after_others: float | None
    median_round_alone: float | None


def reward_cumulative(run: Run) -> float:
    """The metric of the SAPO paper (arXiv 2509.08721): the sum of the mean rewards of all rounds that had completions."""
    return math.fsum(reward for reward, count in zip(run.reward, run.completions, strict=True) if count)


def moving_mean(values: Sequence[float], window: int = SMOOTHING_WINDOW) -> tuple[float, ...]:
    """The means of each `window` values in a row; if there are fewer values, the mean of all."""
    if not values:
        return ()
    width = min(window, len(values))
    return tuple(math.fsum(values[end - width : end]) / width for end in range(width, len(values) + 1))


def rounds_until(run: Run, level: float) -> int | None:
    """The rounds played when the smoothed reward first reached the level; None if it never did."""
    smooth = moving_mean(run.reward)
    first = len(run.reward) - len(smooth) + 1  # the rounds in the first mean
    return next((first + offset for offset, height in enumerate(smooth) if height >= level), None)


def last_over_peak(run: Run) -> float:
    """The mean reward of the last 20 rounds over the highest 20-round mean; 1 if all rewards are 0."""
    smooth = moving_mean(run.reward)
    return smooth[-1] / max(smooth) if max(smooth) > 0 else 1.0


def largest_fall(run: Run) -> float:
    """The largest fall of the smoothed reward from its previous maximum, as a share of that maximum."""
    smooth = moving_mean(run.reward)
    falls = (1 - height / peak for height, peak in zip(smooth, accumulate(smooth, max), strict=True) if peak >= MIN_PEAK)
    return max(falls, default=0.0)


def held_out(run: Run) -> tuple[float, ...]:
    """The held-out curve: the mean over nodes at each point, (P,)."""
    return tuple(fmean(heights) for heights in zip(*run.held_out, strict=True))


def heldout_final(run: Run) -> float:
    """The held-out score at the end, mean over nodes."""
    return fmean(_final(run))


def _final(run: Run) -> tuple[float, ...]:
    """The held-out score of each node at the end, (N,)."""
    return run.final or tuple(heights[-1] for heights in run.held_out)


def heldout_auc(run: Run, until: int = AREA_ROUNDS) -> float:
    """The mean height of the held-out curve up to round `until`, or over the whole run if it is shorter."""
    return mean_height(run.measured_at, held_out(run), until)


def completions(run: Run) -> int:
    """All completions that the nodes generated, whether trained on or not."""
    return sum(run.completions)


def completions_at(run: Run) -> tuple[int, ...]:
    """Completions generated before each point of the held-out curve, (P,)."""
    totals = (0, *accumulate(run.completions))
    return tuple(totals[rounds] for rounds in run.measured_at)


def reward_per_thousand(run: Run) -> float:
    """The cumulative reward per 1,000 completions generated."""
    return 1000 * reward_cumulative(run) / max(1, completions(run))


def heldout_auc_within(run: Run, budget: int) -> float:
    """The mean height of the held-out curve over completions, up to a budget that every compared run has spent."""
    return mean_height(completions_at(run), held_out(run), budget)


def heldout_at(run: Run, budget: int) -> float:
    """The held-out score after `budget` completions, by linear interpolation."""
    return float(np.interp(budget, completions_at(run), held_out(run)))


def mean_height(xs: Sequence[float], ys: Sequence[float], until: float) -> float:
    """The area under a curve up to `until` (or its end) by the trapezoid rule, divided by its width."""
    end = min(until, xs[-1])
    if end <= xs[0]:
        return ys[0]
    corners = [*(x for x in xs if x < end), end]
    heights = np.interp(corners, xs, ys).tolist()
    strips = ((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(zip(corners, heights, strict=True)))
    return float(math.fsum(strips) / (end - xs[0]))


def final_by_specialty(run: Run) -> dict[str, float]:
    """The held-out score in each specialty at the end, mean over nodes."""
    heights = run.specialty_final or tuple(row[-1] for row in run.specialty_held_out)
    return dict(zip(run.specialties, heights, strict=True))


def final_by_model(run: Run) -> dict[str, float]:
    """The held-out score of each model at the end, mean over its nodes."""
    final: dict[str, list[float]] = {}
    for model, height in zip(run.models, _final(run), strict=True):
        final.setdefault(model, []).append(height)
    return {model: fmean(heights) for model, heights in final.items()}


def first_successes(runs: Sequence[Run]) -> FirstSuccessSummary:
    """Count first successes, and those after training on a peer's success, with their median rounds."""
    ahas = [aha for run in runs for aha in run.ahas]
    after = [aha.round for aha in ahas if aha.learned_from >= 0]
    alone = [aha.round for aha in ahas if aha.learned_from < 0]
    shares = [fmean(aha.learned_from >= 0 for aha in run.ahas) for run in runs if run.ahas]
    return FirstSuccessSummary(
        achieved=len(ahas),
        possible=sum(sum(run.specialty_counts) or len(run.models) * len(run.specialties) for run in runs),
        share_after_others=estimate(shares) if shares else None,
        median_round_after_others=median(after) if after else None,
        median_round_alone=median(alone) if alone else None,
    )


def median_round(rounds: Iterable[int | None]) -> float | None:
    """The median over seeds; never (None) counts as later than any round."""
    middle = median(math.inf if reached is None else reached for reached in rounds)
    return None if math.isinf(middle) else middle


def estimate(points: Sequence[float]) -> Estimate:
    """The mean of one number per seed, with Student's 95% interval; it is slightly too wide for more than 21 seeds."""
    mean = fmean(points)
    if len(points) == 1:
        return Estimate(mean, mean, mean, tuple(points))
    quantile = STUDENT_QUANTILES[min(len(points) - 1, len(STUDENT_QUANTILES)) - 1]
    half = quantile * stdev(points) / math.sqrt(len(points))
    return Estimate(mean, mean - half, mean + half, tuple(points))


def paired_difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Estimate | None:
    """Ours minus theirs over the common seeds, paired by seed; None without a common seed."""
    seeds = sorted(ours.keys() & theirs.keys())
    return estimate([ours[seed] - theirs[seed] for seed in seeds]) if seeds else None


def paired_ratio(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Estimate | None:
    """Ours over theirs, paired by seed: the geometric mean and its interval, so that 2 and 1/2 weigh the same.

    None without a common seed, or if any number is not positive.
    """
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds or any(min(ours[seed], theirs[seed]) <= 0 for seed in seeds):
        return None
    ratios = tuple(ours[seed] / theirs[seed] for seed in seeds)
    log = estimate([math.log(ratio) for ratio in ratios])
    return Estimate(_exp(log.mean), _exp(log.low), _exp(log.high), ratios)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))  # an interval over two seeds can exceed the range of a float
