"""Numbers as a person reads them, and the cells that hold them: the mean, its interval, and every seed beneath."""

from collections.abc import Callable, Iterable, Sequence
from xml.etree.ElementTree import Element

from waggle.lab.comparison import Advantage, Arm
from waggle.lab.report.markup import element
from waggle.lab.statistics import Estimate

NOTHING = "–"
SIGNS = {"higher": "▲", "lower": "▼", "undecided": "○", "one seed": "○"}

Shown = Callable[[float], str]


def share(value: float) -> str:
    """0.172 as 17.2%."""
    return _minus(f"{100 * value:.1f}%")


def plain(value: float) -> str:
    """Two digits behind the point."""
    return _minus(f"{value:.2f}")


def signed(value: float) -> str:
    """A difference: 1.5 as +1.50."""
    return _minus(f"{value:+.2f}")


def whole(value: float) -> str:
    """A count; a median of an even number of counts keeps its half."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def amount(values: Iterable[float]) -> Shown:
    """One way to write all numbers of a column: three digits for the greatest of them."""
    greatest = max(map(abs, values), default=0.0)
    digits = next((3 - place for place, limit in enumerate((1, 10, 100)) if greatest < limit), 0)
    return lambda value: _minus(f"{value:,.{digits}f}")


def relative(ratio: float) -> str:
    """How much more than the other: 1.45 as +45%."""
    return "> +9,999%" if ratio > 100.99 else _minus(f"{100 * (ratio - 1):+,.0f}%")


def points(difference: float) -> str:
    """A difference of two shares: 0.02 as +2.0 points."""
    return _minus(f"{100 * difference:+.1f} points")


def estimate_cell(estimate: Estimate, shown: Shown) -> Element:
    """The mean, the interval (none for one seed), and all seeds."""
    return element("td", *mean_and_interval(estimate, shown), _seeds(map(shown, estimate.points)))


def mean_and_interval(estimate: Estimate, shown: Shown) -> tuple[Element, Element | None]:
    interval = None if estimate.is_one_seed else element("span", interval_text(estimate, shown), class_="interval")
    return element("b", shown(estimate.mean)), interval


def advantage_cell(advantage: Advantage | None, difference_shown: Shown) -> Element:
    """How much more than training alone, and in a word whether the interval leaves out "no difference"."""
    if advantage is None:
        return element("td", NOTHING, class_="none")
    estimate, shown = advantage_shown(advantage, difference_shown)
    return element("td", *mean_and_interval(estimate, shown), verdict(advantage))


def advantage_shown(advantage: Advantage, difference_shown: Shown) -> tuple[Estimate, Shown]:
    """The ratio; the difference where training alone scored nothing, so that there is no ratio."""
    return (advantage.difference, difference_shown) if advantage.ratio is None else (advantage.ratio, relative)


def verdict(advantage: Advantage) -> Element:
    """Sign and word, never colour alone."""
    word = advantage.verdict
    return element("span", f"{SIGNS[word]} {word}", class_=f"verdict {word.replace(' ', '-')}")


def median_cell(middle: float | None, reached: Sequence[float | None]) -> Element:
    """A median over seeds, and all seeds; never where it is None."""
    return element("td", element("b", _or_never(middle)), _seeds(_or_never(value) for value in reached))


def arm_head(arm: Arm) -> Element:
    return element("th", arm.name, scope="row", class_="is-default" if arm.name == "default" else "arm")


def seeds_cell(arm: Arm) -> Element:
    """Which seeds; one seed is flagged, for it has no interval."""
    flag = element("span", "one seed: no interval", class_="flag") if len(arm.runs) == 1 else None
    numbers = span_text([run.key.seed for run in arm.runs])
    return element("td", element("b", str(len(arm.runs))), element("span", numbers, class_="small"), flag)


def span_text(numbers: Sequence[int]) -> str:
    """Ascending whole numbers: 0, 1, 2 as 0–2."""
    first, last = numbers[0], numbers[-1]
    is_unbroken = len(numbers) > 2 and last - first == len(numbers) - 1
    return f"{first}–{last}" if is_unbroken else ", ".join(map(str, numbers))


def interval_text(estimate: Estimate, shown: Shown) -> str:
    return f"[{_bare(shown(estimate.low))}, {_bare(shown(estimate.high))}]"


def _seeds(values: Iterable[str]) -> Element:
    return element("span", " ".join(map(_bare, values)), class_="seeds")


def _bare(text: str) -> str:
    """Without the unit, which stands with the mean."""
    return text.removesuffix("%").removesuffix(" points")


def _or_never(value: float | None) -> str:
    return "never" if value is None else whole(value)


def _minus(text: str) -> str:
    return text.replace("-", "−")
