"""Oracles of the games in which numbers fill a grid. A key is checked against the rules: a puzzle may have several solutions."""

import ast
import re
from collections import Counter

from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import read

Grid = list[list[int]]

KAKURASU = re.compile(
    r"[^\n]*?(\d+) x (\d+) [^\n]*?row sums(?: are|:)? (\[[\d, ]+\])[^\n]*?column sums(?: are|:)? (\[[\d, "
    r"]+\])[^\n]*\n1\. Rules:\n.*"
    r"2\. Input:\n[0 \n]+",
    re.DOTALL | re.IGNORECASE,
)


def kakurasu(question: str, key: str) -> bool:
    """Check the weighted sums of rows and columns."""
    text = read(KAKURASU, question)
    rows, columns = int(text[1]), int(text[2])
    grid = _read_grid(key, rows, columns)
    if grid is None or any(cell not in (0, 1) for row in grid for cell in row):
        return False
    lines = (grid, ast.literal_eval(text[3])), (list(zip(*grid, strict=True)), ast.literal_eval(text[4]))
    return all([sum(place * cell for place, cell in enumerate(line, 1)) for line in group] == sums for group, sums in lines)


def _read_grid(text: str, rows: int, columns: int) -> Grid | None:
    """Numbers between single spaces; None for anything else."""
    lines = text.split("\n")
    if not all(re.fullmatch(r"\d+(?: \d+)*", line) for line in lines):
        return None
    grid = [[int(number) for number in line.split(" ")] for line in lines]
    return grid if len(grid) == rows and all(len(row) == columns for row in grid) else None


MINI_SUDOKU = re.compile(
    r"In 4x4 Mini Sudoku:\n.*\nSolve this 4x4 Mini Sudoku puzzle:\n([1-4_ \n]+)\n"
    r"Format your response as the puzzle above, with spaces separating each number within a row, "
    r"and newlines separating rows\.\s*",
    re.DOTALL,
)
SUDOKU = re.compile(
    r"Solve this Sudoku puzzle:\n([1-9_ \n]+)\nRespond with only your answer, formatted as the puzzle, a 9x9 grid with numbers "
    r"separated by spaces, and rows separated by newlines\.\s*"
)


def mini_sudoku(question: str, key: str) -> bool:
    """Check that each row, column and block has all numbers, and that the given ones have not moved."""
    return _solves_sudoku(MINI_SUDOKU, 2, question, key)


def sudoku(question: str, key: str) -> bool:
    """Check that each row, column and block has all numbers, and that the given ones have not moved."""
    return _solves_sudoku(SUDOKU, 3, question, key)


def _solves_sudoku(pattern: re.Pattern[str], block: int, question: str, key: str) -> bool:
    size = block * block
    text = pattern.fullmatch(question)
    puzzle = [line.split(" ") for line in text[1].split("\n")] if text else []
    if len(puzzle) != size or any(len(row) != size for row in puzzle):
        raise UnreadableQuestion(question)
    grid = _read_grid(key, size, size)
    if grid is None or any(
        sign not in ("_", str(cell))
        for row, signs in zip(grid, puzzle, strict=True)
        for cell, sign in zip(row, signs, strict=True)
    ):
        return False
    blocks = [
        [grid[row + place // block][column + place % block] for place in range(size)]
        for row in range(0, size, block)
        for column in range(0, size, block)
    ]
    return all(set(line) == set(range(1, size + 1)) for line in [*grid, *zip(*grid, strict=True), *blocks])


SURVO = re.compile(
    r"[^\n]*?(\d+)\*\1 [^\n]*(?:\n[^\n\d][^\n]*)?:\n([\d \n]+)\n[^\n]*?(\[[\d, ]+\])[^\n]* Each number can only be used "
    r"once\.[^\n]*"
)
SURVO_RULE = re.compile(r"last (?:element|number) (?:of|in) each row and column (?:equals|represents|is) the sum of")


def survo(question: str, key: str) -> bool:
    """Check the sums of rows and columns, and that the numbers in the empty cells are those to use."""
    text = SURVO.fullmatch(question)
    if not text or not SURVO_RULE.search(question):
        raise UnreadableQuestion(question)
    size = int(text[1])
    puzzle = _read_grid(text[2], size, size)
    if puzzle is None:
        raise UnreadableQuestion(question)
    grid = _read_grid(key, size, size)
    if grid is None:
        return False
    cells = [(cell, clue) for row, line in zip(grid, puzzle, strict=True) for cell, clue in zip(row, line, strict=True)]
    return (
        all(clue in (0, cell) for cell, clue in cells)
        and Counter(cell for cell, clue in cells if not clue) == Counter(ast.literal_eval(text[3]))
        and all(sum(line[:-1]) == line[-1] for line in [*grid, *zip(*grid, strict=True)])
    )


ORACLES: dict[str, Oracle] = {"kakurasu": kakurasu, "mini_sudoku": mini_sudoku, "sudoku": sudoku, "survo": survo}
