"""Patches of reasoning-gym, so that its scorers can read strangers' text and its generators work without opening files.

They replace names in the running process only. On honest text scores stay those of upstream
(tests/tasks/sandbox/test_reasoning_gym_patches.py), with one exception: from premises that contradict each other, upstream lets
any words follow. What Waggle changes on purpose, because keys are false or wrong answers are paid, is in mended_datasets.py.
"""

import functools
import importlib.resources
import importlib.util
import json
import re
import sys
import types
from typing import Any, NoReturn

from waggle.core.message import Message

MOST_VARIABLES = 10  # of a truth table: 1024 rows; reasoning-gym's own curriculum ends there
MOST_SYMBOLS = 100  # connectives and opening brackets of a formula: parsing takes time in the square of their number
MOST_CHARACTERS = 500  # of a formula, for the same reason
ANSWER_SYMBOLS = 32  # of a formula in an answer; a true answer has three
ANSWER_CHARACTERS = 100  # of a formula in an answer; a true answer has eight
SYMBOLS = re.compile(r"[∧∨¬→↔(]")
NO_FORMULA = re.compile(r"[^A-Z()∧∨¬→↔\s]|[A-Z]\s*[A-Z]")  # names are single letters
DRAWING: dict[str, tuple[str, ...]] = {
    "matplotlib": ("pyplot", "animation", "collections"), "matplotlib.pyplot": (), "matplotlib.animation": (),
    "matplotlib.collections": (), "mpl_toolkits": (), "mpl_toolkits.mplot3d": ("Axes3D",),
}  # fmt: skip
WRONG = 0.05  # reward of a formula that does not follow


def stub_matplotlib() -> None:
    """Put empty modules in the place of matplotlib. Call it before reasoning-gym is imported.

    reasoning-gym plays the game of life with cellpylib, which imports matplotlib for drawings that nobody asks for. That would
    take more than half of the start-up time and read this computer's list of fonts.
    """
    for name, has in DRAWING.items():
        module = types.ModuleType(name)
        vars(module).update(dict.fromkeys(has))
        sys.modules.setdefault(name, module)


def stub_pycosat() -> None:
    """Where pycosat is not installed, put a module in its place. Call it before reasoning-gym is imported.

    pycosat is in C and has no wheels, so that an installation on Windows would need a compiler. reasoning-gym always imports it,
    but only zebra_puzzles solves with it, which no charter may name (see audit.jsonl).
    """
    if sys.modules.get("pycosat") is None and importlib.util.find_spec("pycosat") is None:
        module = types.ModuleType("pycosat")
        vars(module).update(solve=_no_solver, itersolve=_no_solver)
        sys.modules["pycosat"] = module


def _no_solver(*_: object, **__: object) -> NoReturn:
    raise NotImplementedError("pycosat is not installed")


def replace_scorers() -> None:
    """Replace unsafe code in the scorers of binary_matrix and propositional_logic, two of the nine specialties of the paper."""
    from reasoning_gym.algorithmic import binary_matrix
    from reasoning_gym.logic import propositional_logic

    vars(binary_matrix)["eval"] = parse_matrix
    _bound_formulas(propositional_logic.Expression, propositional_logic.PropositionalLogicDataset)


def _bound_formulas(expression: Any, dataset: Any) -> None:
    """Bound formulas in answers: one of a hundred variables has a truth table of 2^100 rows. A ValueError earns nothing.

    Upstream also takes any words between two connectives for a variable. Such an answer earns no more than a wrong one.
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
    """Parse a list of lists of integers. Raises ValueError for anything else. Upstream evaluates the text as Python."""
    rows = json.loads(text)
    if not (isinstance(rows, list) and all(isinstance(row, list) and all(type(cell) is int for cell in row) for row in rows)):
        raise ValueError("not a matrix of integers")
    return rows


def cache_data_files() -> None:
    """Read each data file once: several datasets read one whenever they are created, which fails without privileges.

    A setting may name that file. Only files that ship with reasoning-gym are read, by their bare names.
    """
    from reasoning_gym import data

    upstream, shipped = data.read_data_file, {file.name for file in importlib.resources.files(data).iterdir() if file.is_file()}

    @functools.cache
    def shipped_only(name: str) -> str:
        if name not in shipped:
            raise ValueError(Message("reasoning-gym has no file %1", repr(name[:40])))
        return str(upstream(name))

    for name, module in list(sys.modules.items()):
        if name.startswith("reasoning_gym") and vars(module).get("read_data_file") is upstream:
            vars(module)["read_data_file"] = shipped_only
