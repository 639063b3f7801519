"""Oracles of the datasets in which a pattern or a hidden cause has to be found."""

import functools
import itertools
import re
from collections.abc import Callable

from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import read

EXPERIMENTS = re.compile(
    r"You are a researcher studying causal relationships using Blicket experiments\..*\n\nPrevious experimental results:\n(.+)"
    r"\n\nNew test case:\n([^\n]+)\n\nWhat is the detector light status\?",
    re.DOTALL,
)


def acre(question: str, key: str) -> bool:
    """Try all sets of objects that may switch the light on and agree with the experiments."""
    text = read(EXPERIMENTS, question)
    experiments = []
    for line in text[1].split("\n"):
        experiment = re.fullmatch(r"(.+) → (on|off)", line)
        if not experiment:
            raise UnreadableQuestion(line)
        experiments.append((set(experiment[1].split(", ")), experiment[2] == "on"))
    tested = set(text[2].split(", "))
    objects = sorted(tested.union(*(placed for placed, _ in experiments)))
    lights = set()
    for size in range(len(objects) + 1):
        for causes in map(set, itertools.combinations(objects, size)):
            if all(bool(causes & placed) == is_on for placed, is_on in experiments):
                lights.add("on" if causes & tested else "off")
    if not lights:
        raise UnreadableQuestion("the experiments contradict each other")
    return key == (lights.pop() if len(lights) == 1 else "undetermined")


CUBE = re.compile(
    r"A cube has:\n((?:- an? \w+ \w+ side\n){6})((?:\n[^\n]+\n)+)"
    r"\nWhat is now the color of the (top|bottom|front|back|left|right) side of the cube\?\n"
    r"Provide only the color as your final answer\."
)
ROTATION = re.compile(
    r"(?:The cube is rotated so that the side which was before at the|Then the cube is rotated to bring the"
    r"|After that the cube is turned to make the|Now the cube is rotated to place its|Next, the) (front|back|left|right|bottom) "
    r"(?:is now at the top|side to the top|face the top|side at the top|side is rotated to become the top face)\."
)
QUARTER_TURNS = {  # each side goes to the place of the next one
    "front": ("front", "top", "back", "bottom"),
    "back": ("back", "top", "front", "bottom"),
    "left": ("left", "top", "right", "bottom"),
    "right": ("right", "top", "left", "bottom"),
}
Cube = tuple[tuple[str, str], ...]  # each side's place and colour, by the place


def color_cube_rotation(question: str, key: str) -> bool:
    """Turn a cube by the shortest way. The bottom comes to the top by two: a key is true if it is so after either."""
    text = read(CUBE, question)
    colors = {place: color for color, place in re.findall(r"- an? (\w+) (\w+) side\n", text[1])}
    if set(colors) != {"top", "bottom", *QUARTER_TURNS}:
        raise UnreadableQuestion(question)
    cubes: set[Cube] = {tuple(sorted(colors.items()))}
    for line in filter(None, text[2].split("\n")):
        rotation = ROTATION.fullmatch(line)
        if not rotation:
            raise UnreadableQuestion(line)
        side = rotation[1]
        ways = [("front", "front"), ("left", "left")] if side == "bottom" else [(side,)]
        cubes = {functools.reduce(_turn, way, cube) for cube in cubes for way in ways}
    return {dict(cube)[text[3]] for cube in cubes} == {key}


def _turn(cube: Cube, side: str) -> Cube:
    circle = QUARTER_TURNS[side]
    goes_to = dict(zip(circle, circle[1:] + circle[:1], strict=True))
    return tuple(sorted((goes_to.get(place, place), color) for place, color in cube))


GRID = re.compile(
    r"Identify the mathematical pattern which defines this grid, then use that pattern to fill in the question marks\. "
    r"Return the entire completed grid as your answer\.\n\n([✅❌❔\n]+)"
)
LARGEST_DIVISOR = 20
FORMULAS: tuple[Callable[[int, int], int], ...] = (
    lambda column, row: column + row,
    lambda column, row: abs(column - row),
    lambda column, row: column * row,
    lambda column, row: column**row,
)


def modulo_grid(question: str, key: str) -> bool:
    """Fill the holes by all rules that agree with the rest of the grid: a key is true if they all lead to it.

    A rule marks the cells whose sum, difference, product or power of column and row (from 0) leaves one remainder.
    """
    text = read(GRID, question)
    lines = text[1].split("\n")
    cells = "".join(lines)
    visible = int("".join("0" if cell == "❔" else "1" for cell in cells), 2)
    marked = int("".join("1" if cell == "✅" else "0" for cell in cells), 2)
    answers = {grid for grid in _grids(len(lines[0]), len(lines)) if grid & visible == marked}
    if not answers:
        raise UnreadableQuestion("no rule agrees with the grid")
    grid = format(answers.pop(), f"0{len(cells)}b").replace("1", "✅").replace("0", "❌")
    return not answers and key == "\n".join(grid[start : start + len(lines[0])] for start in range(0, len(grid), len(lines[0])))


@functools.cache
def _grids(columns: int, rows: int) -> frozenset[int]:
    """The grids of all rules, a bit for each cell."""
    cells = list(itertools.product(range(rows), range(columns)))
    grids = set()
    for formula in FORMULAS:
        values = [formula(column, row) for row, column in cells]
        for divisor in range(1, LARGEST_DIVISOR + 1):
            remainders = [value % divisor for value in values]
            for remainder in range(divisor):
                grids.add(int("".join("01"[value == remainder] for value in remainders), 2))
    return frozenset(grids)


ORACLES: dict[str, Oracle] = {"acre": acre, "color_cube_rotation": color_cube_rotation, "modulo_grid": modulo_grid}
