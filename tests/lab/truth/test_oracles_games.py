"""Test the oracles of the games with answers worked out by hand."""

import pytest

from waggle_lab.truth.interface import UnreadableQuestion
from waggle_lab.truth.oracles import games, games_grids

ORACLES = games.ORACLES | games_grids.ORACLES

SECRET = (
    "The following emoji is encoded with a sentence.\n\nDecode the following sentence from the emoji: {}\n\nHere is a hint:\n"
    "```python\nprint()\n```\n\n\nReturn the secret sentence as your final answer.\n"
)
HI = "".join(chr(0xE0100 + byte - 16) for byte in b"Hi.")
CARDS = (
    "There are several letter cards, and the game rules are as follows:\n1. Initially, there are 13 cards.\n\nNow, "
    "given the initial "
    "cards {}, what is the result at the end of performing the following rounds of operations:\n{}\n"
)
MAZE = (
    "Navigate from '!' (start) to '?' (goal):\n\n```\n{}\n```\nLegend: '#' = Wall, '.' = Passage\n\nWhat is the "
    "minimum number of "
    "steps to reach the goal?\nGive only the number of steps as your final answer, no other text or formatting."
)
TOWER = (
    "Solve the Tower of Hanoi problem with 2 disks and 3 pegs.\nMove all disks from Peg 1 to Peg 3 following the "
    "rules:\n- Only one "
    "disk can be moved at a time.\n- A larger disk cannot be placed on top of a smaller disk.\n"
)
MOVES = "Move disk 1 from Peg 1 to Peg 2\nMove disk 2 from Peg 1 to Peg 3\nMove disk 1 from Peg 2 to Peg 3"
DETOUR = "Move disk 1 from Peg 1 to Peg 3\nMove disk 1 from Peg 3 to Peg 2\n" + MOVES.split("\n", 1)[1]
GO = (
    "{}\n\n```\n   A B C D\n 4 X O . .\n 3 . . X X\n 2 . X O O\n 1 . . X .\n```\n\nX - Black\nO - White\n\n"
    "Specify your move in coordinates (e.g. 'C4' for column C, row 4)"
)
KAKURASU = (
    "This is a 3 x 3 Kukurasu puzzle grid. The row sums are [3, 2, 4] and the column sums are [4, 3, 3].\n1. Rules:\n  "
    "1. Each cell "
    "must contain either a 1 or an 0.\n2. Input:\n0 0 0\n0 0 0\n0 0 0"
)
MINI_SUDOKU = (
    "In 4x4 Mini Sudoku:\n- Each row must contain each number from 1-4 exactly once\nSolve this 4x4 Mini Sudoku puzzle:\n"
    "1 _ 3 4\n3 4 _ 2\n2 1 4 _\n_ 3 2 1\nFormat your response as the puzzle above, with spaces separating each number "
    "within a row, "
    "and newlines separating rows.\n"
)
SUDOKU = (
    "Solve this Sudoku puzzle:\n{}\nRespond with only your answer, formatted as the puzzle, a 9x9 grid with numbers "
    "separated by "
    "spaces, and rows separated by newlines."
)
SOLVED = "\n".join(" ".join(str((3 * row + row // 3 + column) % 9 + 1) for column in range(9)) for row in range(9))
SURVO = (
    "Given a 3*3 matrix where the last element of each row and column equals the sum of the other elements in that row "
    "or column. The "
    "matrix is:\n0 0 3\n0 0 3\n3 3 6\nwhere some elements are replaced with 0. You have a set of numbers [1, 2, 2, 1] "
    "that can be "
    "filled into the 0 positions to satisfy the rules. Please fill in the matrix. Each number can only be used once."
)


@pytest.mark.parametrize(
    ("dataset", "question", "true", "false"),
    [
        ("emoji_mystery", SECRET.format("😀" + HI), "Hi.", "Ho."),
        ("emoji_mystery", SECRET.format("❤\ufe0f" + HI), "Hi.", "\x0fHi."),
        ("mahjong_puzzle", CARDS.format("AACEGIKMOQSUW", "Round 1: Add an A card and remove an A card."), "Peng", "Pass"),
        ("mahjong_puzzle", CARDS.format("AACEGIKMOQSUW", "Round 1: Add a D card and remove a C card."), "Chi", "Pass"),
        ("mahjong_puzzle", CARDS.format("AACEGIKMOQSUW", "Round 1: Add a Y card and remove a C card."), "Pass", "Chi"),
        ("maze", MAZE.format("#####\n#!#?#\n#...#\n#####"), "4", "2"),
        ("tower_of_hanoi", TOWER, MOVES, MOVES.rsplit("\n", 1)[0]),
        ("tower_of_hanoi", TOWER, DETOUR, MOVES.replace("Peg 2", "Peg 3", 1)),
        ("tsumego", GO.format(games.MOST_STONES), "D1", "B3"),
        ("tsumego", GO.format(games.SOME_STONES[0]), "D1", "C4"),
        ("kakurasu", KAKURASU, "1 1 0\n0 1 0\n1 0 1", "1 1 0\n1 1 0\n1 0 1"),
        ("mini_sudoku", MINI_SUDOKU, "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1", "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 2"),
        ("mini_sudoku", MINI_SUDOKU, "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1", "2 1 4 3\n4 3 2 1\n1 2 3 4\n3 4 1 2"),
        ("sudoku", SUDOKU.format("_" + SOLVED[1:]), SOLVED, "9" + SOLVED[1:]),
        ("survo", SURVO, "1 2 3\n2 1 3\n3 3 6", "1 1 2\n2 2 4\n3 3 6"),
        ("survo", SURVO, "2 1 3\n1 2 3\n3 3 6", "0 3 3\n3 0 3\n3 3 6"),
    ],
)
def test_a_true_key_is_true_and_a_false_one_is_not(dataset: str, question: str, true: str, false: str) -> None:
    assert ORACLES[dataset](question, true)
    assert not ORACLES[dataset](question, false)


def test_peng_comes_before_chi() -> None:
    question = CARDS.format("AABCEGIKMOQSU", "Round 1: Add an A card and remove an A card.")
    assert ORACLES["mahjong_puzzle"](question, "Peng")


@pytest.mark.parametrize("dataset", ORACLES)
def test_an_unknown_text_is_unreadable(dataset: str) -> None:
    with pytest.raises(UnreadableQuestion):
        ORACLES[dataset]("How are you?", "1")
