"""Sharing strategies, one file each, found by its name: which groups a node trains on, and how strongly peers' texts pull.

SAPO (arXiv 2509.08721, algorithm 1, step 4) draws I local and J external groups uniformly: `plain`. `adaptive` is Waggle's
default. A file has a docstring whose first sentence describes the strategy, and `make()`, which returns one for one node
(`interface.py` says what that is). Nothing else needs to know of a new file.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from waggle.core.errors import LabError
from waggle.sapo.sharing.interface import Sharing

DEFAULT = "adaptive"


@dataclass(frozen=True)
class Strategy:
    """`description` is one sentence; `make` returns a strategy without memories, for one node."""

    name: str
    description: str
    make: Callable[[], Sharing]


def table() -> dict[str, Strategy]:
    """Every strategy in this folder by its name, in alphabetical order."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "interface")
    return {name: _load(name) for name in names}


def strategy(name: str) -> Strategy:
    """The strategy of that name; raises LabError."""
    known = table()
    if name not in known:
        raise LabError(f"There is no sharing strategy {name}.", f"There are {', '.join(known)}.")
    return known[name]


def _load(name: str) -> Strategy:
    module = importlib.import_module(f"{__name__}.{name}")
    sentence = (module.__doc__ or "").strip().split(".\n")[0].split(". ")[0].rstrip(".")
    return Strategy(name=name, description=f"{' '.join(sentence.split())}.", make=module.make)
