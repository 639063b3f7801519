"""What is rebound inside reasoning-gym so that its scorers can read strangers' text, and make questions behind closed doors.

Names are rebound in the running process only; on honest text every score stays upstream's
(tests/tasks/sandbox/test_reasoning_gym_patches.py), but where upstream pays words for following from premises that
contradict each other.
"""

import functools
import importlib.resources
import json
import re
import sys
import types
from typing import Any

MOST_VARIABLES = 10  # of a truth table: 1024 rows; reasoning-gym's own curriculum ends there
MOST_SYMBOLS = 100  # connectives and opening brackets of a formula: reading takes the square of their number
MOST_CHARACTERS = 500  # of a formula, for the same reason
ANSWER_SYMBOLS = 32  # of a stranger's formula: that of a true answer has three
ANSWER_CHARACTERS = 100  # of it: that of a true answer has eight
SYMBOLS = re.compile(r"[∧∨¬→↔(]")
NO_FORMULA = re.compile(r"[^A-Z()∧∨¬→↔\s]|[A-Z]\s*[A-Z]")  # names are single letters
DRAWING: dict[str, tuple[str, ...]] = {
    "matplotlib": ("pyplot", "animation", "collections"), "matplotlib.pyplot": (), "matplotlib.animation": (),
    "matplotlib.collections": (), "mpl_toolkits": (), "mpl_toolkits.mplot3d": ("Axes3D",),
}  # fmt: skip
WRONG = 0.05  # what a formula earns that does not follow


def stub_matplotlib() -> None:
    """To be called before reasoning-gym is imported: cellpylib, which plays the game of life for it, could also draw that.

    What it would draw with, matplotlib, is more than half of what a start takes, lists this computer's fonts, and is never used.
    """
    for name, has in DRAWING.items():
        module = types.ModuleType(name)
        vars(module).update(dict.fromkeys(has))
        sys.modules.setdefault(name, module)


def replace_scorers() -> None:
    """What stands in for upstream's own, in the two of the paper's nine that need it."""
    from reasoning_gym.algorithmic import binary_matrix
    from reasoning_gym.logic import propositional_logic

    vars(binary_matrix)["eval"] = parse_matrix
    _bound_formulas(propositional_logic.Expression, propositional_logic.PropositionalLogicDataset)


def _bound_formulas(expression: Any, dataset: Any) -> None:
    """A text can hold a formula whose truth table has 2^100 rows. The scorer pays what raises ValueError nothing.

    And upstream takes whatever stands between two signs for a variable: what follows from anything may then hold any words.
    """
    upstream_parse, upstream_table = expression.from_string, dataset._generate_assignments
    upstream_score = dataset.score_answer

    def parse(text: str) -> Any:
        if len(text) > MOST_CHARACTERS or len(SYMBOLS.findall(text)) > MOST_SYMBOLS:
            raise ValueError("too long a formula")
        return upstream_parse(text)

    def table(self: Any, variables: set[str]) -> Any:
        if len(variables) > MOST_VARIABLES:
            raise ValueError("too many variables")
        return upstream_table(self, variables)

    def score(self: Any, answer: str, entry: dict[str, Any]) -> float:
        if len(answer) > ANSWER_CHARACTERS or len(SYMBOLS.findall(answer)) > ANSWER_SYMBOLS:
            return 0.0
        reward = float(upstream_score(self, answer, entry))
        return min(reward, WRONG) if NO_FORMULA.search(answer) else reward

    expression.from_string = staticmethod(parse)
    dataset._generate_assignments, dataset.score_answer = table, score


def parse_matrix(text: str) -> list[list[int]]:
    """Nested lists of integers and nothing else; raises ValueError."""
    rows = json.loads(text)
    if not (isinstance(rows, list) and all(isinstance(row, list) and all(type(cell) is int for cell in row) for row in rows)):
        raise ValueError("not a matrix of integers")
    return rows


def cache_data_files() -> None:
    """Several datasets read a file of words each time they are made; armed, no file can be opened.

    And a setting may name that file: only one that ships with reasoning-gym is read, by its bare name.
    """
    from reasoning_gym import data

    upstream, shipped = data.read_data_file, {file.name for file in importlib.resources.files(data).iterdir() if file.is_file()}

    @functools.cache
    def shipped_only(name: str) -> str:
        if name not in shipped:
            raise ValueError(f"reasoning-gym has no file {name[:40]!r}")
        return str(upstream(name))

    for name, module in list(sys.modules.items()):
        if name.startswith("reasoning_gym") and vars(module).get("read_data_file") is upstream:
            vars(module)["read_data_file"] = shipped_only
