"""The charts of one setting, drawn by matplotlib as SVG pictures that are embedded in the page."""

import base64
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from waggle.practice.results import BIN, Run
from waggle_lab.study import statistics
from waggle_lab.study.comparison import ALONE, DEFAULT, EVEN, FILTERED, Arm, Comparison
from waggle_lab.study.report.number_format import Format, count, interval, two_decimals, whole_percent
from waggle_lab.study.report.tables import headline_metrics

Dash = str | tuple[int, tuple[int, ...]]  # of matplotlib
Styles = Mapping[str, tuple[Dash, str]]  # dash and colour of each arm
Curve = tuple[Sequence[float], Sequence[float]]  # x and y of one seed

WIDTH_IN = 11.0
MAX_POINTS = 60  # in a line, to keep the file small
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":")
COLOURS = ("#21694A", "#8E4585", "#A03A28", "#3C8DAD", "#6B8E23", "#8B5A2B", "#5B5EA6")
# Honey is the default, greys train alone, blues mix local and external groups: the deeper, the more external groups.
# Colour alone never distinguishes two arms: neighbours differ in their dash, and the legend has the order in which lines end.
FIXED_STYLES: Styles = {
    ALONE: (":", "#857D6F"),
    FILTERED: ("-.", "#575146"),
    "6/2": ("-", "#6A9BB8"),
    EVEN: ("--", "#28658A"),
    "2/6": ((0, (3, 1)), "#17405A"),
    DEFAULT: ("-", "#C07A00"),
}
STYLE_SHEET = str(Path(__file__).with_suffix(".mplstyle"))


class Picture(NamedTuple):
    """A chart on a page: `note` explains it, `description` is its text for screen readers, `source` is a data URL."""

    title: str
    note: str
    description: str
    source: str


class Line(NamedTuple):
    """The line of an arm, (P,) each: the mean over seeds, the lowest and the highest seed."""

    x: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Panel(NamedTuple):
    title: str
    x_label: str
    number: Format
    lines: Mapping[str, Line]  # by the name of the arm
    mark: tuple[float, str] | None = None  # a position on the x axis and its label


def line_styles(names: Iterable[str]) -> Styles:
    """Choose a style for each arm, for all charts of a page."""
    others = (name for name in names if name not in FIXED_STYLES)
    return {**FIXED_STYLES, **dict(zip(others, zip(cycle(DASHES), cycle(COLOURS), strict=True), strict=False))}


@matplotlib.rc_context(fname=STYLE_SHEET)
def interval_chart(comparison: Comparison, styles: Styles) -> Picture:
    """The headline metrics of every arm: the mean, its 95% interval over seeds, and every seed."""
    metrics, arms = headline_metrics(comparison), comparison.arms
    figure = Figure((WIDTH_IN, 1.1 + 0.24 * len(arms)), layout="constrained")
    descriptions = []
    for axes, metric in zip(figure.subplots(1, len(metrics), sharey=True), metrics, strict=True):
        estimates = {arm.name: arm.estimate(metric.measure) for arm in arms}
        for row, (name, (mean, low, high, points)) in enumerate(estimates.items()):
            _, colour = styles[name]
            axes.scatter(points, [row] * len(points), s=9, color=colour, alpha=0.45, linewidths=0)
            bar = [[mean - low], [high - mean]] if len(points) > 1 else None
            axes.errorbar(mean, row, xerr=bar, fmt="o", color=colour, markersize=5, capsize=3)
        axes.set(title=metric.title, yticks=range(len(arms)), yticklabels=estimates)
        axes.set_ylim(len(arms) - 0.5, -0.5)  # the first on top
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(_formatter(metric.format))
        axes.grid(axis="y", visible=False)
        means = (
            f"{name} {metric.format(estimate.mean)} {interval(estimate, metric.format)}" for name, estimate in estimates.items()
        )
        descriptions.append(f"{metric.title}: {', '.join(means)}.")
    note = "Large dots: means; bars: their 95% intervals over seeds; small dots: the seeds"
    return Picture("Results at a glance", note, " ".join(descriptions), _source(figure))


def learning_charts(comparison: Comparison, styles: Styles) -> list[Picture]:
    """Reward and held-out score by round, and held-out score by completions generated."""
    arms, alone = comparison.arms, comparison.alone
    end = max(map(statistics.completions, (alone or comparison).runs))
    reward = Panel("Training reward by round", "rounds", two_decimals, _lines(arms, _reward_curve))
    by_round = Panel("Held-out score by round", "rounds", whole_percent, _lines(arms, _held_out_curve))
    by_cost = Panel(
        "Held-out score by completions generated",
        "completions generated by all nodes",
        whole_percent,
        _lines(arms, _cost_curve, end=end),
        mark=(comparison.budget, "every run got here"),
    )
    cut = f"; by completions up to the {end:,} of training alone" if alone else ""
    smoothing = f"Mean of the {statistics.SMOOTHING_WINDOW} rounds before, over all completions generated"
    return [
        _line_chart([reward], styles, smoothing + _bands_note(arms)),
        _line_chart([by_round, by_cost], styles, f"Right answers to reserved questions{cut}{_bands_note(arms)}"),
    ]


def entropy_and_share_chart(comparison: Comparison, styles: Styles) -> Picture:
    """The entropy of the policies, the length of their answers and, if any arm shares, the external share of what they learn."""
    arms = comparison.arms
    sharing = [arm for arm in arms if any(max(run.external_share) > 0 for run in arm.runs)]
    panels = [Panel("Entropy by round", "rounds", two_decimals, _lines(arms, lambda run: (_bin_ends(run), run.entropy)))]
    note = "Entropy: nats per token generated"
    measured = [arm for arm in arms if all(run.length for run in arm.runs)]  # early runs did not record it
    if measured:
        lengths = _lines(measured, lambda run: (_bin_ends(run), run.length))
        panels.append(Panel("Tokens per answer by round", "rounds", count, lengths))
    if sharing:
        shares = _lines(sharing, lambda run: (_bin_ends(run), run.external_share))
        panels.append(Panel("Others' share of what is learned", "rounds", whole_percent, shares))
        note += ". Share: others' part of the absolute advantage trained on"
    return _line_chart(panels, styles, note + _bands_note(arms))


def line_over_seeds(curves: Sequence[Curve], *, end: float = math.inf) -> Line:
    """Combine the curves of an arm's seeds, at the points of the shortest curve and up to `end`."""
    xs = np.asarray(min((xs for xs, _ in curves), key=lambda xs: xs[-1]), dtype=float)
    places = np.linspace(0, len(xs) - 1, min(MAX_POINTS, len(xs))).round().astype(int)
    x = np.unique(np.minimum(xs[places], end))
    heights = np.array([np.interp(x, *curve) for curve in curves])  # (seeds, P)
    return Line(x, heights.mean(axis=0), heights.min(axis=0), heights.max(axis=0))


def _lines(arms: Sequence[Arm], curve: Callable[[Run], Curve], *, end: float = math.inf) -> dict[str, Line]:
    return {arm.name: line_over_seeds([curve(run) for run in arm.runs], end=end) for arm in arms}


@matplotlib.rc_context(fname=STYLE_SHEET)
def _line_chart(panels: Sequence[Panel], styles: Styles, note: str) -> Picture:
    """Draw panels side by side; the legend has the order in which the lines of the first panel end."""
    first = panels[0]
    names = sorted(first.lines, key=lambda name: -first.lines[name].mean[-1])
    figure = Figure((WIDTH_IN, max(3.3, 0.6 + 0.185 * len(names))), layout="constrained")
    subplots = figure.subplots(1, len(panels), squeeze=False)[0]
    handles = [_draw(panel, axes, styles) for panel, axes in zip(panels, subplots, strict=True)]
    labels = [f"{name}: {_end(first, name)}" for name in names]
    figure.legend([handles[0][name] for name in names], labels, loc="outside right upper", fontsize=8 if len(names) > 12 else 9)
    ends = (", ".join(f"{name} {_end(panel, name)}" for name in names if name in panel.lines) for panel in panels)
    descriptions = (
        f"{panel.title}. At the end of each line: {end_values}." for panel, end_values in zip(panels, ends, strict=True)
    )
    return Picture(first.title, note, " ".join(descriptions), _source(figure))


def _draw(panel: Panel, axes: Axes, styles: Styles) -> dict[str, Line2D]:
    """Draw a panel; returns its lines by the name of the arm."""
    handles = {}
    for name, line in panel.lines.items():
        dash, colour = styles[name]
        is_default = name == DEFAULT
        order = 3 if is_default else 2
        width = 2.2 if is_default else 1.4
        (handles[name],) = axes.plot(line.x, line.mean, color=colour, linestyle=dash, linewidth=width, zorder=order)
        handles[name].set(marker="o", markersize=2.5, markevery=[-1])  # makes a line with only one point visible
        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.18 if is_default else 0.1, linewidth=0)
    axes.set(title=panel.title, xlabel=panel.x_label)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    if panel.number is whole_percent:
        axes.yaxis.set_major_formatter(_formatter(lambda share: f"{100 * share:.4g}%"))
    if panel.mark is not None:
        at, label = panel.mark
        axes.axvline(at, color="#6C6558", linestyle=(0, (3, 3)), linewidth=0.8)
        offset, side = (4, "left") if at < sum(axes.get_xlim()) / 2 else (-4, "right")
        coordinates = ("data", "axes fraction")
        axes.annotate(label, (at, 1), (offset, -2), coordinates, "offset points", ha=side, va="top", fontsize=8)
    return handles


def _end(panel: Panel, name: str) -> str:
    return panel.number(panel.lines[name].mean[-1])


def _formatter(number: Format) -> FuncFormatter:
    return FuncFormatter(lambda value, _: number(value))


def _source(figure: Figure) -> str:
    """A data URL with the SVG of a figure, without date, so that the same figure always gives the same text."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return f"data:image/svg+xml;base64,{base64.b64encode(text.getvalue().encode()).decode()}"


def _bands_note(arms: Sequence[Arm]) -> str:
    return "; bands span the seeds" if any(len(arm.runs) > 1 for arm in arms) else ""


def _reward_curve(run: Run) -> Curve:
    smooth = statistics.moving_mean(run.reward)
    return range(len(run.reward) - len(smooth) + 1, len(run.reward) + 1), smooth


def _held_out_curve(run: Run) -> Curve:
    return run.measured_at, statistics.held_out(run)


def _cost_curve(run: Run) -> Curve:
    return statistics.completions_at(run), statistics.held_out(run)


def _bin_ends(run: Run) -> list[int]:
    """The last round of each bin, where the point of its mean is drawn."""
    rounds = len(run.reward)
    return [min(first + BIN, rounds) for first in range(0, rounds, BIN)]
