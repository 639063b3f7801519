"""A chart of numbers as text, with eight steps of height a line."""

from collections.abc import Sequence
from itertools import pairwise

BLOCKS = " ▁▂▃▄▅▆▇█"


def plot(values: Sequence[float], width: int, height: int, highest: float | None = None) -> list[str]:
    """`height` lines of at most `width` characters; each column is the mean of its values, which are from 0 on."""
    columns = _columns(values, width)
    top = max([*columns, 0.0]) if highest is None else highest
    steps = [round((len(BLOCKS) - 1) * height * min(1.0, value / top)) if top > 0 else 0 for value in columns]
    rows = []
    for row in range(height - 1, -1, -1):
        below = row * (len(BLOCKS) - 1)
        rows.append("".join(BLOCKS[max(0, min(len(BLOCKS) - 1, step - below))] for step in steps))
    return rows


def _columns(values: Sequence[float], width: int) -> list[float]:
    """At most `width` means of equal parts, in order."""
    count = len(values)
    if count <= width:
        return [*values]
    edges = [position * count // width for position in range(width + 1)]
    return [sum(values[low:high]) / (high - low) for low, high in pairwise(edges)]
