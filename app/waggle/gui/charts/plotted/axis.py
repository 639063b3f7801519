"""Ticks below a chart: rounds, working time or clock time, as many as fit. No Qt."""

import time
from collections.abc import Sequence

from waggle.gui.i18n.formatting import clock, date_of, day, duration, figure, local, plural, tr
from waggle.gui.state import chart_series
from waggle.gui.state.chart_series import Axis
from waggle.protocol.zone import utc_offset_of

Tick = tuple[float, str]


def axis_ticks(axis: Axis, x: tuple[float, float]) -> list[Tick]:
    """Positions and words of the ticks between both ends `x` of the data."""
    low, high = x
    match axis:
        case "round":
            places = [place for place in chart_series.integer_ticks(low, high) if low + (high - low) * 0.04 < place <= high]
            return [
                (place, figure(int(place)) if i else plural(int(place), "%n round", "%n rounds"))
                for i, place in enumerate(places)
            ]
        case "elapsed":
            return [(place, duration(place)) for place in chart_series.time_ticks(low, high)]
        case "clock":
            shift = utc_offset_of(local, low)  # so that days begin at local midnight
            moments = [place - shift for place in chart_series.time_ticks(low + shift, high + shift)]
            return [(moment, _time_label(moment, high - low)) for moment in moments]


def label_stride(places: Sequence[float], wide: Sequence[float]) -> int:
    """The smallest n so that every nth label, centred at its place and `wide` across, overlaps no other."""

    def clear(every: int) -> bool:
        middles, widths = places[::every], wide[::every]
        return all(
            right - middle >= (width + other) / 2
            for middle, right, width, other in zip(middles, middles[1:], widths, widths[1:], strict=False)
        )

    return next(every for every in range(1, len(places) + 2) if clear(every))


def round_words(number: int) -> str:
    return tr("round %1").replace("%1", figure(number))


def _time_label(at: float, span: float) -> str:
    """The time of day; with seconds in a span under 10 minutes, with the date over a day, only the date over a week."""
    if span < 86400:
        return clock(at) if span >= 600 else time.strftime("%H:%M:%S", local(at))
    date = day(date_of(at))
    return f"{date} {clock(at)}" if span < 604800 else date
