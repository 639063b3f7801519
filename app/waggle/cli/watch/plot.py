"""A chart of numbers as text, with eight steps of height a line."""

from collections.abc import Sequence

BLOCKS = " ▁▂▃▄▅▆▇█"
Point = tuple[int, float]  # a round and a value


def plot(columns: Sequence[float | None], height: int, highest: float) -> list[str]:
    """`height` lines, with a character for each value from 0 to `highest`. 0 is a thin line; None leaves its column empty."""
    whole = (len(BLOCKS) - 1) * height
    steps = [0 if value is None else max(1, round(whole * min(1.0, value / highest))) for value in columns]
    rows = []
    for row in range(height - 1, -1, -1):
        below = row * (len(BLOCKS) - 1)
        rows.append("".join(BLOCKS[max(0, min(len(BLOCKS) - 1, step - below))] for step in steps))
    return rows


def spread(points: Sequence[Point], first: int, last: int, width: int) -> list[float | None]:
    """`width` columns for the rounds `first` to `last`, from points in the order of their rounds.

    A column is the mean of its points; without any, the value of the column before it, or None.
    """
    columns: list[float | None] = []
    place, value = 0, None
    for column in range(width):
        end = first + (column + 1) * (last - first + 1) / width
        here = []
        while place < len(points) and points[place][0] < end:
            here.append(points[place][1])
            place += 1
        value = sum(here) / len(here) if here else value
        columns.append(value)
    return columns
