"""Oracles of algorithms on grids: distances, neighbours and turns."""

import json
import re
from collections.abc import Callable

from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import Wording

Grid = list[list[int]]

ROWS = r"\d(?: \d)*(?:\n\d(?: \d)*)*"
DISTANCES = Wording(
    """Given a square matrix, your job is to find the taxicab (Manhattan) distance of the nearest 0 for each cell.

The output should be a matrix of the same size as the input matrix, where each cell contains the distance to the nearest 0.

Find the distance to the nearest 0 for each cell in the matrix below:
«grid»
""",
    grid=ROWS,
)
LIFE = Wording(
    "What will this Game of Life board look like after «steps» steps of simulation? Assume a Moore neighborhood and wrapping "
    "topology. Reply as array of arrays representing rows in the grid from top to bottom in JSON format. (An empty 3x3 grid "
    "would look like this: [[0,0,0],[0,0,0],[0,0,0]])\n\n«grid».",
    steps=r"\d+",
    grid=r"\[\[[01](?:,[01])*\](?:,\n \[[01](?:,[01])*\])*\]",
)
MANIPULATION = Wording(
    """For the following matrix:
«grid»

Perform the following series of operations in order:
- Identity transformation, i.e. no change
«steps»
""",
    grid=ROWS,
    steps="- .+(?:\n- .+)*",
)
ROTATION = Wording(
    """Given a square matrix, your job is to rotate it clockwise.

Your output should be a matrix in the same format as the input.

Rotate the matrix below by «degrees» degrees clockwise:
«grid»
""",
    degrees=r"\d+",
    grid=ROWS,
)
ORANGES = Wording(
    """You are given an n x n grid where each cell can have one of three values:
- 0 representing an empty cell
- 1 representing a fresh orange
- 2 representing a rotten orange

Every minute, any fresh orange that is 4-directionally adjacent to a rotten orange becomes rotten.

Your task is determine the minimum number of minutes that must elapse until no cell has a fresh orange.
If this is impossible, return -1.

Now, determine the minimum number of minutes that must elapse until no cell in the grid below has a fresh orange:
«grid»
""",
    grid=r"[012](?: [012])*(?:\n[012](?: [012])*)*",
)


def _grid(text: str) -> Grid:
    rows = [[int(cell) for cell in line.split()] for line in text.split("\n")]
    if len({len(row) for row in rows}) != 1:
        raise UnreadableQuestion("rows of different lengths")
    return rows


def _text(grid: Grid) -> str:
    return "\n".join(" ".join(map(str, row)) for row in grid)


def binary_matrix(question: str, key: str) -> bool:
    """Whether each cell of the key is the least of its distances to all zeros."""
    grid = _grid(DISTANCES.read(question)["grid"])
    cells = [(row, column) for row in range(len(grid)) for column in range(len(grid[0]))]
    zeros = [(row, column) for row, column in cells if grid[row][column] == 0]
    if not zeros:
        return False  # no distance exists
    distance = {(row, column): min(abs(row - other[0]) + abs(column - other[1]) for other in zeros) for row, column in cells}
    return key == _text([[distance[row, column] for column in range(len(grid[0]))] for row in range(len(grid))])


def game_of_life(question: str, key: str) -> bool:
    """Whether the key is the board after the steps, with the living cells as a set on a torus."""
    parts = LIFE.read(question)
    board = json.loads(parts["grid"])
    height, width = len(board), len(board[0])
    alive = {(row, column) for row in range(height) for column in range(width) if board[row][column]}
    around = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0)]
    for _ in range(int(parts["steps"])):
        neighbours: dict[tuple[int, int], int] = {}
        for row, column in alive:
            for down, right in around:
                cell = (row + down) % height, (column + right) % width
                neighbours[cell] = neighbours.get(cell, 0) + 1
        alive = {cell for cell, count in neighbours.items() if count == 3 or (count == 2 and cell in alive)}
    return key == json.dumps([[int((row, column) in alive) for column in range(width)] for row in range(height)]).replace(" ", "")


def _quarter_turns(grid: Grid, turns: int) -> Grid:
    """A grid after quarter turns clockwise."""
    for _ in range(turns % 4):
        height, width = len(grid), len(grid[0])
        grid = [[grid[height - 1 - column][row] for column in range(height)] for row in range(width)]
    return grid


def _transposed(grid: Grid) -> Grid:
    return [[row[column] for row in grid] for column in range(len(grid[0]))]


Numbers = tuple[int, ...]
STEPS: list[tuple[re.Pattern[str], Callable[[Grid, Numbers], Grid]]] = [
    (re.compile(wording), apply)
    for wording, apply in (
        # A turn without a direction is clockwise, as a picture is turned.
        (r"- Rotate the matrix (90|180|270|360) degrees", lambda grid, n: _quarter_turns(grid, n[0] // 90)),
        # A horizontal mirror swaps left and right, as "flip horizontally" does in image editors, NumPy's fliplr and OpenCV.
        (r"- Horizontally mirror the matrix", lambda grid, n: [row[::-1] for row in grid]),
        (r"- Vertically mirror the matrix", lambda grid, n: grid[::-1]),
        (r"- Mirror the matrix along the diagonal", lambda grid, n: _transposed(grid)),
        (r"- Mirror the matrix along the counterdiagonal", lambda grid, n: _quarter_turns(_transposed(grid), 2)),
        (
            r"- Map each occurrence of (\d) to (\d)",
            lambda grid, n: [[n[1] if cell == n[0] else cell for cell in row] for row in grid],
        ),
        (
            r"- Set all elements divisible by ([1-9]) to zero",
            lambda grid, n: [[cell if cell % n[0] else 0 for cell in row] for row in grid],
        ),
        (
            r"- Crop the matrix to rows (\d+)-(\d+) and columns (\d+)-(\d+) \(1-indexed\)",
            lambda grid, n: [row[n[2] - 1 : n[3]] for row in grid[n[0] - 1 : n[1]]],
        ),
        (
            r"- Remove every (\d+)-(?:nd|th) row \(1-indexed\)",
            lambda grid, n: [row for number, row in enumerate(grid, 1) if number % n[0]],
        ),
        (
            r"- Remove every (\d+)-(?:nd|th) column \(1-indexed\)",
            lambda grid, n: [[cell for number, cell in enumerate(row, 1) if number % n[0]] for row in grid],
        ),
    )
]


def manipulate_matrix(question: str, key: str) -> bool:
    """Whether the key is the matrix after all steps, each in its usual sense."""
    parts = MANIPULATION.read(question)
    grid = _grid(parts["grid"])
    for line in parts["steps"].split("\n"):
        for pattern, apply in STEPS:
            if match := pattern.fullmatch(line):
                grid = apply(grid, tuple(map(int, match.groups())))
                break
        else:
            raise UnreadableQuestion(line)
    return key == _text(grid)


def rotate_matrix(question: str, key: str) -> bool:
    """Whether the key is the matrix after the turn."""
    parts = ROTATION.read(question)
    if int(parts["degrees"]) % 90:
        raise UnreadableQuestion(parts["degrees"])
    return key == _text(_quarter_turns(_grid(parts["grid"]), int(parts["degrees"]) // 90))


def rotten_oranges(question: str, key: str) -> bool:
    """Whether the key is the number of minutes, of which each is played on the whole grid."""
    grid = _grid(ORANGES.read(question)["grid"])
    cells = [(row, column) for row in range(len(grid)) for column in range(len(grid[0]))]
    fresh = {cell for cell in cells if grid[cell[0]][cell[1]] == 1}
    rotten = {cell for cell in cells if grid[cell[0]][cell[1]] == 2}
    minutes = 0
    while reached := {
        (row, column)
        for row, column in fresh
        if not rotten.isdisjoint({(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)})
    }:
        fresh, rotten, minutes = fresh - reached, reached, minutes + 1
    return key == str(-1 if fresh else minutes)


ORACLES: dict[str, Oracle] = {
    "binary_matrix": binary_matrix,
    "game_of_life": game_of_life,
    "manipulate_matrix": manipulate_matrix,
    "rotate_matrix": rotate_matrix,
    "rotten_oranges": rotten_oranges,
}
