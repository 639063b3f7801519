"""A line chart as inline SVG: a band from the lowest to the highest seed, a name at the end of every line, no script."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from waggle.lab.report.markup import element

TOP, LEFT, BOTTOM = 22, 46, 40  # room around the plot, pixels
LETTER = 6.7  # width of one at 12 pixels
APART = 16  # least distance of two names
LONGEST_NAME = 40
CORNERS = 100  # at most, of one line: keeps the file small


class Line(NamedTuple):
    """One arm: the mean over its seeds, and the lowest and highest seed."""

    name: str
    look: str  # of `report_look.line_names`
    xs: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


class Chart(NamedTuple):
    """What is drawn. `number` tells charts of one page apart."""

    number: int
    title: str
    subtitle: str
    lines: tuple[Line, ...]
    across: str  # what the x axis counts
    shown: Callable[[float], str]
    width: int
    height: int
    mark: tuple[float, str] | None = None  # a place on the x axis, and its words


class _Scale(NamedTuple):
    right: float  # the last x of the data
    top: float  # the highest y of the axis
    width: float
    height: float

    def x(self, value: float) -> float:
        return round(LEFT + self.width * value / self.right, 1)

    def y(self, value: float) -> float:
        return round(TOP + self.height * (1 - value / self.top), 1)


def line_over_seeds(
    name: str, look: str, curves: Sequence[tuple[Sequence[float], Sequence[float]]], *, end: float = math.inf
) -> Line:
    """The curves of an arm's seeds made one: at the corners of the one that ends first, and cut at `end`."""
    shortest = min((xs for xs, _ in curves), key=lambda xs: xs[-1])
    chosen = np.unique(np.linspace(0, len(shortest) - 1, min(CORNERS, len(shortest))).round().astype(int))
    last = min(end, shortest[-1])
    corners = [*(x for x in (shortest[number] for number in chosen) if x < last), last]
    heights = np.array([np.interp(corners, xs, ys) for xs, ys in curves])
    mean, low, high = heights.mean(axis=0), heights.min(axis=0), heights.max(axis=0)
    return Line(name, look, tuple(corners), *(tuple(row.tolist()) for row in (mean, low, high)))


def draw(chart: Chart) -> Element:
    """A figure with its caption and the picture."""
    lines = sorted(chart.lines, key=lambda line: line.look == "default")  # the accent is drawn last, on top
    scale = _scale(chart)
    title, description = f"chart{chart.number}-title", f"chart{chart.number}-description"
    picture = element(
        "svg",
        element("title", chart.title, id=title),
        element("desc", _in_words(chart), id=description),
        element("g", *_grid(chart, scale), class_="axes"),
        *_mark(chart, scale),
        *(_band(line, scale) for line in lines),
        *(_curve(line, scale) for line in lines),
        *_names(lines, chart, scale),
        viewBox=f"0 0 {chart.width} {chart.height}",
        role="img",
        aria_labelledby=f"{title} {description}",
    )
    caption = element("figcaption", element("strong", chart.title), element("span", chart.subtitle))
    return element("figure", caption, picture)


def _in_words(chart: Chart) -> str:
    ends = sorted(((line.mean[-1], line.name) for line in chart.lines), reverse=True)
    said = ", ".join(f"{name} {chart.shown(end)}" for end, name in ends)
    return f"{chart.subtitle}. At the end of each line: {said}."


def _scale(chart: Chart) -> _Scale:
    longest = max(len(_label(line, chart)) for line in chart.lines)
    highest = max(max(line.high) for line in chart.lines) or 1.0
    step = _step(highest, 5)
    return _Scale(
        right=max(line.xs[-1] for line in chart.lines) or 1.0,
        top=step * math.ceil(highest / step - 1e-9),
        width=chart.width - LEFT - 28 - LETTER * longest,
        height=chart.height - TOP - BOTTOM,
    )


def _step(span: float, count: int) -> float:
    """The least round number that cuts the span into at most `count` parts."""
    rough = 0.999 * span / count
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)


def _grid(chart: Chart, scale: _Scale) -> list[Element]:
    drawn = []
    rise = _step(scale.top, 5)
    for number in range(round(scale.top / rise) + 1):
        y = scale.y(number * rise)
        drawn.append(element("path", d=f"M{LEFT} {y}H{LEFT + scale.width:.1f}", class_="grid" if number else "ground"))
        drawn.append(element("text", chart.shown(number * rise), x=LEFT - 8, y=y + 4, class_="tick-y"))
    stride = _step(scale.right, max(3, round(scale.width / 90)))
    for number in range(int(scale.right / stride + 1e-9) + 1):
        x, y = scale.x(number * stride), TOP + scale.height
        drawn.append(element("path", d=f"M{x} {y}v4", class_="ground"))
        drawn.append(element("text", f"{number * stride:,.0f}", x=x, y=y + 17, class_="tick-x"))
    drawn.append(element("text", chart.across, x=LEFT + scale.width / 2, y=chart.height - 4, class_="tick-x"))
    return drawn


def _mark(chart: Chart, scale: _Scale) -> list[Element]:
    if chart.mark is None:
        return []
    at, words = chart.mark
    x = scale.x(min(at, scale.right))
    is_right = x > LEFT + scale.width / 2
    return [
        element("path", d=f"M{x} {TOP - 16}V{TOP + scale.height}", class_="mark"),
        element("text", words, x=x - 6 if is_right else x + 6, y=TOP - 8, class_="mark-end" if is_right else "mark-start"),
    ]


def _band(line: Line, scale: _Scale) -> Element:
    there = [f"{scale.x(x)} {scale.y(y)}" for x, y in zip(line.xs, line.high, strict=True)]
    back = [f"{scale.x(x)} {scale.y(y)}" for x, y in zip(line.xs, line.low, strict=True)]
    return element("path", d="M" + "L".join(there + back[::-1]) + "Z", class_=f"band line-{line.look}")


def _curve(line: Line, scale: _Scale) -> Element:
    corners = [f"{scale.x(x)} {scale.y(y)}" for x, y in zip(line.xs, line.mean, strict=True)]
    return element("path", d="M" + "L".join(corners), class_=f"curve line-{line.look}")


def _label(line: Line, chart: Chart) -> str:
    name = line.name if len(line.name) <= LONGEST_NAME else line.name[: LONGEST_NAME - 1] + "…"
    return f"{name} {chart.shown(line.mean[-1])}"


def _names(lines: Sequence[Line], chart: Chart, scale: _Scale) -> list[Element]:
    """Each line's name where it ends; names that would touch are moved apart and tied to their lines."""
    ends = [(scale.x(line.xs[-1]), scale.y(line.mean[-1])) for line in lines]
    wide = [22 + LETTER * len(_label(line, chart)) for line in lines]
    drawn = []
    for line, (x, y), height in zip(lines, ends, _apart(ends, wide, lowest=TOP + scale.height), strict=True):
        look = f"line-{line.look}"
        drawn.append(element("path", d=f"M{x} {y}L{x + 16} {height:.1f}", class_=f"tie {look}"))
        drawn.append(element("circle", cx=x, cy=y, r=3, class_=f"end {look}"))
        drawn.append(element("text", _label(line, chart), x=x + 20, y=f"{height + 4:.1f}", class_=f"name {look}"))
    return drawn


def _apart(ends: Sequence[tuple[float, float]], wide: Sequence[float], *, lowest: float) -> list[float]:
    """Heights for the names, as near to their lines as they can be without touching."""
    heights = [y for _, y in ends]
    order = sorted(range(len(ends)), key=lambda number: heights[number])
    pairs = [
        (a, b) for place, a in enumerate(order) for b in order[place + 1 :] if _meet(ends[a][0], wide[a], ends[b][0], wide[b])
    ]
    for _ in range(300):
        for upper, lower in pairs:
            missing = APART - (heights[lower] - heights[upper])
            if missing > 0:
                heights[upper] -= missing / 2
                heights[lower] += missing / 2
        heights = [min(max(height, TOP), lowest) for height in heights]
    return heights


def _meet(x: float, wide: float, other_x: float, other_wide: float) -> bool:
    return x < other_x + other_wide and other_x < x + wide
