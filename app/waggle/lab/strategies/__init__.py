"""Sharing strategies to be measured against each other: one file each, found by its name.

A file has a docstring whose first sentence describes the strategy, and `make()`, which gives one for one node. Nothing
else has to be told of a new file. What the engine itself uses lies in sapo/sharing.py.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from waggle.core.errors import LabError
from waggle.sapo.sharing import Sharing


@dataclass(frozen=True)
class Strategy:
    """`description` is one sentence; `make` gives a strategy that remembers nothing yet, for one node."""

    name: str
    description: str
    make: Callable[[], Sharing]


def table() -> dict[str, Strategy]:
    """Every strategy in this folder by its name, in alphabetical order."""
    return {name: _read(name) for name in sorted(module.name for module in pkgutil.iter_modules(__path__))}


def strategy(name: str) -> Strategy:
    """The strategy of that name; raises LabError."""
    known = table()
    if name not in known:
        raise LabError(f"There is no sharing strategy {name}.", f"There are {', '.join(known)}.")
    return known[name]


def _read(name: str) -> Strategy:
    module = importlib.import_module(f"{__name__}.{name}")
    sentence = (module.__doc__ or "").strip().split(".\n")[0].split(". ")[0].rstrip(".")
    return Strategy(name=name, description=f"{' '.join(sentence.split())}.", make=module.make)
