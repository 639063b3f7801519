"""Ways over the cells of a grid, step by step up, down, left or right."""

from collections.abc import Iterable

Cell = tuple[int, int]  # row, column
STEPS: dict[str, Cell] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def distances(start: Cell, free: Iterable[Cell]) -> dict[Cell, int]:
    """The number of steps from a cell to each cell that free cells connect with it."""
    unseen = set(free) - {start}
    steps = {start: 0}
    edge = [start]
    while edge:
        near = {(row + down, column + right) for row, column in edge for down, right in STEPS.values()} & unseen
        steps.update(dict.fromkeys(near, steps[edge[0]] + 1))
        unseen -= near
        edge = list(near)
    return steps
