"""Format numbers for people: percentages, differences, intervals and lists of seeds."""

from collections.abc import Callable, Iterable, Sequence

from waggle_lab.study.statistics import Estimate

Format = Callable[[float], str]

percent: Format = "{:.1%}".format
whole_percent: Format = "{:.0%}".format
two_decimals: Format = "{:.2f}".format
signed: Format = "{:+.2f}".format


def count(value: float) -> str:
    """A count; a median of counts may end in .5."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def three_digits(values: Iterable[float]) -> Format:
    """A format for a whole column, with three digits for its greatest value."""
    greatest = max(map(abs, values), default=0.0)
    decimals = next((3 - place for place, limit in enumerate((1, 10, 100)) if greatest < limit), 0)
    return f"{{:,.{decimals}f}}".format


def percent_change(ratio: float) -> str:
    """1.45 as "+45%"."""
    return "> +9,999%" if ratio > 100.99 else f"{ratio - 1:+,.0%}"


def percentage_points(difference: float) -> str:
    """0.02 as "+2.0 points"."""
    return f"{100 * difference:+.1f} points"


def interval(estimate: Estimate, number: Format) -> str:
    """`[low, high]` without the unit, which is written with the mean; empty for one seed, which has no interval."""
    return "" if estimate.is_one_seed else f"[{_unitless(number(estimate.low))}, {_unitless(number(estimate.high))}]"


def seed_values(points: Iterable[float], number: Format) -> str:
    """The value of each seed, without the unit."""
    return " ".join(_unitless(number(point)) for point in points)


def span(numbers: Sequence[int]) -> str:
    """Ascending whole numbers: 0, 1, 2 as "0–2"."""
    first, last = numbers[0], numbers[-1]
    is_unbroken = len(numbers) > 2 and last - first == len(numbers) - 1
    return f"{first}–{last}" if is_unbroken else ", ".join(map(str, numbers))


def _unitless(text: str) -> str:
    return text.removesuffix("%").removesuffix(" points")
