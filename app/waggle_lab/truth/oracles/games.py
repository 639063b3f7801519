"""Oracles of the games without a grid of numbers."""

import itertools
import re
from collections import Counter

from waggle_lab.truth.grids import distances
from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import read

SECRET = re.compile(
    r"The following emoji is encoded with a sentence\.\n\nDecode the following sentence from the emoji: (.+?)\n\nHere "
    r"is a hint:\n"
    r"```python\n.*```\n\n\nReturn the secret sentence as your final answer\.\s*",
    re.DOTALL,
)
EMOJI_STYLE = "\ufe0f"  # the selector that shows a character as an emoji: part of a red heart, not of what it hides
FIRST_SELECTORS, MORE_SELECTORS = 0xFE00, 0xE0100  # the characters for the bytes from 0 and those for the bytes from 16


def emoji_mystery(question: str, key: str) -> bool:
    """Read the bytes behind an emoji."""
    text = read(SECRET, question)
    code_points = [ord(character) for character in text[1][1:].removeprefix(EMOJI_STYLE)]
    values = [code - MORE_SELECTORS + 16 if code >= MORE_SELECTORS else code - FIRST_SELECTORS for code in code_points]
    try:
        return bytes(values).decode() == key
    except ValueError as error:
        raise UnreadableQuestion(question) from error


CARDS = re.compile(
    r"There are several letter cards, and the game rules are as follows:\n.*Now, given the initial cards ([A-Z]{13}), "
    r"what is the "
    r"result at the end of performing the following rounds of operations:\n((?:Round \d+: Add an? [A-Z] card and remove "
    r"an? [A-Z] "
    r"card\.\n?)+)\s*",
    re.DOTALL,
)


def mahjong_puzzle(question: str, key: str) -> bool:
    """Play all rounds and judge the last card that is added, before a card is removed."""
    text = read(CARDS, question)
    hand = Counter(text[1])
    result = ""
    for added, removed in re.findall(r"Add an? ([A-Z]) card and remove an? ([A-Z]) card", text[2]):
        letter = ord(added)
        runs = ((letter - 2, letter - 1), (letter - 1, letter + 1), (letter + 1, letter + 2))
        if hand[added] >= 2:
            result = "Peng"
        else:
            result = "Chi" if any(all(hand[chr(card)] for card in run) for run in runs) else "Pass"
        hand[added] += 1
        if not hand[removed]:
            raise UnreadableQuestion("a card is removed that is not there")
        hand[removed] -= 1
    return key == result


MAZE = re.compile(
    r"Navigate from '(.)' \(start\) to '(.)' \(goal\):\n\n```\n(.+)\n```\nLegend: '(.)' = Wall, '(.)' = Passage\n\n"
    r"What is the minimum number of steps to reach the goal\?\n"
    r"Give only the number of steps as your final answer, no other text or formatting\.",
    re.DOTALL,
)


def maze(question: str, key: str) -> bool:
    """Count the steps up, down, left or right on a shortest way."""
    text = read(MAZE, question)
    start, goal, drawing, wall, passage = text.groups()
    cells = {(row, column): cell for row, line in enumerate(drawing.split("\n")) for column, cell in enumerate(line)}
    if set(cells.values()) - {start, goal, wall, passage} or list(cells.values()).count(start) != 1:
        raise UnreadableQuestion(question)
    begin = next(cell for cell, sign in cells.items() if sign == start)
    end = next((cell for cell, sign in cells.items() if sign == goal), None)
    steps = distances(begin, [cell for cell, sign in cells.items() if sign != wall])
    if end not in steps:
        raise UnreadableQuestion("no way leads to the goal")
    return key == str(steps[end])


TOWER = re.compile(
    r"Solve the Tower of Hanoi problem with (\d+) disks and (\d+) pegs\.\nMove all disks from Peg (\d+) to Peg (\d+) "
    r"following the "
    r"rules:\n- Only one disk can be moved at a time\.\n- A larger disk cannot be placed on top of a smaller disk\.\n.*",
    re.DOTALL,
)


def tower_of_hanoi(question: str, key: str) -> bool:
    """Make the moves. The question asks for any sequence, not for the shortest."""
    text = read(TOWER, question)
    disks, pegs, start, goal = map(int, text.groups())
    towers: dict[int, list[int]] = {peg: [] for peg in range(1, pegs + 1)}
    if not {start, goal} <= towers.keys():
        raise UnreadableQuestion(question)
    towers[start] = list(range(disks, 0, -1))
    for line in key.split("\n"):
        move = re.fullmatch(r"Move disk (\d+) from Peg (\d+) to Peg (\d+)", line)
        if not move:
            return False
        disk, source, target = map(int, move.groups())
        if towers.get(source, [])[-1:] != [disk] or target not in towers or (towers[target] and towers[target][-1] < disk):
            return False
        towers[target].append(towers[source].pop())
    return len(towers[goal]) == disks


GO = re.compile(
    r"([^\n]+(?:\n[^\n]+)?)\n\n```\n   ([A-Z](?: [A-Z])*)\n(.+)\n```\n\nX - Black\nO - White\n\n"
    r"Specify your move in coordinates \(e\.g\. 'C4' for column C, row 4\)",
    re.DOTALL,
)
MOST_STONES = "Here's a Go challenge. Playing as Black, how can you capture as many white stones as possible?"
SOME_STONES = (
    "Tsumego time. Black to play and capture some stones.\nFind the key move.",
    "I have a Go problem for you. Black moves next - can you capture some of the white stones?",
)


def tsumego(question: str, key: str) -> bool:
    """Check that a black stone captures white stones at once; as many as any other, where the question asks for most."""
    text = GO.fullmatch(question)
    if not text or text[1] not in (MOST_STONES, *SOME_STONES):
        raise UnreadableQuestion(question)
    letters = text[2].split(" ")
    board: dict[str, str] = {}
    for line in text[3].split("\n"):
        number, *points = line.split()
        if not number.isdecimal() or len(points) != len(letters):
            raise UnreadableQuestion(line)
        board |= dict(zip((letter + number for letter in letters), points, strict=True))
    if set(board.values()) - {".", "X", "O"}:
        raise UnreadableQuestion(question)
    captured = {point: _captured(board, point) for point, stone in board.items() if stone == "."}
    enough = max(captured.values()) if text[1] == MOST_STONES else 1
    return captured.get(key, 0) >= max(enough, 1)


def _captured(board: dict[str, str], point: str) -> int:
    """The number of white stones without a liberty after Black plays a point."""
    after = board | {point: "X"}
    stones: set[str] = set()
    for white in _points_around(after, point):
        if after[white] == "O" and white not in stones:
            group, edge = {white}, [white]
            while edge:
                near = {other for stone in edge for other in _points_around(after, stone) if after[other] == "O"} - group
                group |= near
                edge = list(near)
            if not any(after[other] == "." for stone in group for other in _points_around(after, stone)):
                stones |= group
    return len(stones)


def _points_around(board: dict[str, str], point: str) -> list[str]:
    letter, number = ord(point[0]), int(point[1:])
    around = itertools.chain(
        (f"{chr(letter + step)}{number}" for step in (-1, 1)), (f"{point[0]}{number + step}" for step in (-1, 1))
    )
    return [other for other in around if other in board]


ORACLES: dict[str, Oracle] = {
    "emoji_mystery": emoji_mystery,
    "mahjong_puzzle": mahjong_puzzle,
    "maze": maze,
    "tower_of_hanoi": tower_of_hanoi,
    "tsumego": tsumego,
}
