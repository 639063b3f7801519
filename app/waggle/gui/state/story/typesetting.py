"""How the text of a question or an answer is set: grids as squares, fractions as fractions, the task larger than the rest. No Qt.

Texts of strangers stay plain text: a part is only ever words, a fraction of two whole numbers, or a grid of digits.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from waggle.gui.i18n.formatting import one_line, visible
from waggle.protocol.json_lines import LONGEST_SHOWN

NumberGrid = tuple[tuple[int, ...], ...]  # rows of digits
GRID_LINE = re.compile(r"\d(?: \d)+")
LEAST, MOST_ROWS, MOST_COLUMNS = 4, 12, 30  # digits of a grid at least, and rows and columns at most
LABELLED = re.compile(r"\s*([A-Za-z][\w ]{0,24}:)\s*((?:\d(?: \d)+)?)\s*")  # "Input:  0 0 1 0", or a label alone
ASKED_FOR = re.compile(r"(?:Respond|Provide|Return|Give|Reply|Specify)\b[^:]*\Z")  # a last paragraph that only says how to answer
HOW_TO_ANSWER = re.compile(
    r"(?<=[.?!])\s+(?=(?:Respond|Provide|Return|Give|Reply|Specify|State|Answer|Only)\b[^.?!]*[.?!]?\s*\Z)"
)
CLAUSE = re.compile(r"[.?!:,](?=\s|\Z)")  # the end of one
CODE = re.compile(r"\s{2,}\S|\S\s{3,}\S")  # spaces that mean something
# A fraction of whole numbers that can be read in one way only: no date, path, decimal, power or call around it.
FRACTION = re.compile(r"(?<![\w.,/^)\]}!%$#@:\\|])(0|[1-9]\d{0,5})/([1-9]\d{0,5})(?![\w/^(\[{!%°:\\|]|[.,]\d)", re.ASCII)
RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")  # scripts in which numbers change places


class Fraction(msgspec.Struct, frozen=True):
    """Where "3/4" stands in a text, and its two numbers."""

    start: int
    end: int
    above: str
    below: str


class Words(msgspec.Struct, frozen=True):
    """A line of a question. `task`: it says what is asked for. `code`: its spaces stay. `apart`: a paragraph begins with it."""

    text: str
    task: bool = False
    code: bool = False
    apart: bool = False


class LabelledGrid(msgspec.Struct, frozen=True):
    """A grid, and the word before it, such as "Input:"."""

    grid: NumberGrid
    label: str = ""
    task: bool = False
    apart: bool = False


Block = Words | LabelledGrid


def grid_in(words: str) -> NumberGrid | None:
    """The grid that a text is, and nothing else; None if it is something else."""
    lines = [line.strip() for line in words.strip().splitlines()]
    if not lines or len(lines) > MOST_ROWS or not all(GRID_LINE.fullmatch(line) for line in lines):
        return None
    rows = tuple(tuple(map(int, line.split())) for line in lines)
    widths = {len(row) for row in rows}
    if len(widths) > 1 or max(widths) > MOST_COLUMNS or sum(map(len, rows)) < LEAST:
        return None
    return rows


def fractions_in(text: str) -> tuple[Fraction, ...]:
    """The fractions that are safe to stack, from left to right; none in a text that also runs from right to left."""
    if RIGHT_TO_LEFT.search(text):
        return ()
    return tuple(Fraction(part.start(), part.end(), part[1], part[2]) for part in FRACTION.finditer(text))


def task_lines(lines: Sequence[str]) -> range:
    """The lines that say what is asked: the last paragraph, because questions of a specialty begin alike.

    A last paragraph about the form of the answer is skipped, and so is an introduction on its first line.
    """
    paragraphs = _paragraphs(lines)
    while len(paragraphs) > 1 and ASKED_FOR.match("\n".join(lines[i] for i in paragraphs[-1]).strip()):
        paragraphs.pop()
    last = paragraphs[-1] if paragraphs else range(0)
    if len(last) == 2 and lines[last[0]].rstrip().endswith(".") and not lines[last[1]].rstrip().endswith("."):
        return last[1:]
    return last


def _paragraphs(lines: Sequence[str]) -> list[range]:
    paragraphs, start = [], 0
    for end in range(len(lines) + 1):
        if end == len(lines) or not lines[end].strip():
            if end > start:
                paragraphs.append(range(start, end))
            start = end + 1
    return paragraphs


def set_question(question: str) -> tuple[Block, ...]:
    """The blocks of a question, from top to bottom; its text beyond LONGEST_SHOWN is not shown anywhere."""
    lines = question[:LONGEST_SHOWN].splitlines()
    task = task_lines(lines)
    blocks: list[Block] = []
    for paragraph in _paragraphs(lines):
        begun = len(blocks)
        blocks += _blocks([(lines[i], i in task) for i in paragraph])
        blocks[begun] = msgspec.structs.replace(blocks[begun], apart=begun > 0)
    return tuple(blocks)


def task_words(question: str) -> str:
    """What a question asks for, on one line, without how to answer; grids as their digits.

    Where it asks with a grid alone, the first sentence of the question stands before it.
    """
    every = set_question(question)
    blocks = [block for block in every if block.task]
    if blocks and all(isinstance(block, LabelledGrid) for block in blocks):
        blocks[:0] = [Words(_first_clause(block.text)) for block in every[:1] if isinstance(block, Words)]
    return " ".join(block.text if isinstance(block, Words) else _digits(block.grid) for block in blocks)


def _first_clause(words: str) -> str:
    """The beginning of an instruction that says what is asked, with a colon."""
    return f"{CLAUSE.split(words, maxsplit=1)[0]}:"


def _digits(grid: NumberGrid) -> str:
    return " / ".join(" ".join(map(str, line)) for line in grid)


def _blocks(lines: Sequence[tuple[str, bool]]) -> list[Block]:
    """The blocks of a paragraph."""
    blocks: list[Block] = []
    i = 0
    while i < len(lines):
        line, task = lines[i]
        labelled = LABELLED.fullmatch(line)
        label = labelled[1] if labelled else ""
        first = i + bool(labelled and not labelled[2])
        rows = [labelled[2]] if labelled and labelled[2] else list(_grid_rows(text for text, _ in lines[first:]))
        grid = grid_in("\n".join(rows))
        if grid is None:
            blocks += _words(line, task=task)
            i += 1
        else:
            blocks.append(LabelledGrid(grid, one_line(label), task=task or lines[min(first, len(lines) - 1)][1]))
            i = first + len(rows)
    return blocks


def _grid_rows(lines: Iterable[str]) -> Iterable[str]:
    """The lines from the first on that are rows of digits, equally long."""
    width = 0
    for line in lines:
        row = line.strip()
        if not GRID_LINE.fullmatch(row) or (width and len(row) != width):
            return
        width = len(row)
        yield row


def _words(line: str, *, task: bool) -> list[Block]:
    """A line; where its last sentence only says how to answer, that one stands apart from the task."""
    if CODE.search(line.rstrip()):
        return [Words(visible(line.rstrip()), task=task, code=True)]
    sentences = HOW_TO_ANSWER.split(line.strip()) if task else [line.strip()]
    return [Words(visible(sentence), task=task and place == 0) for place, sentence in enumerate(sentences)]
