"""Sharing strategies, one a file: which groups a node trains on, and how strongly external completions pull.

SAPO (arXiv 2509.08721, algorithm 1, step 4) draws I local and J external groups uniformly: `plain`. Waggle's default is
`adaptive`. A file is registered by being here, and its name is a value of the setting `learning.sharing`. It needs a docstring,
whose first sentence describes the strategy, and `make()`, which returns a strategy for one node (see interface.py).
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from waggle.core.errors import SettingsError
from waggle.core.module_names import module_names
from waggle.sapo.sharing.interface import SharingStrategy


@dataclass(frozen=True)
class RegisteredStrategy:
    """`description` is one sentence; `make` returns a strategy for one node, which remembers nothing yet."""

    name: str
    description: str
    make: Callable[[], SharingStrategy]


def table() -> dict[str, RegisteredStrategy]:
    """Every strategy of this folder by its name, in alphabetical order."""
    return {name: _load(name) for name in module_names("sapo/sharing")}


def strategy(name: str) -> RegisteredStrategy:
    """The strategy of that name; raises SettingsError."""
    strategies = table()
    if name not in strategies:
        raise SettingsError(f"There is no sharing strategy {name}.", f"There are {', '.join(strategies)}.")
    return strategies[name]


def _load(name: str) -> RegisteredStrategy:
    module = importlib.import_module(f"{__name__}.{name}")
    sentence = (module.__doc__ or "").strip().split(".\n")[0].split(". ")[0].rstrip(".")
    return RegisteredStrategy(name=name, description=f"{' '.join(sentence.split())}.", make=module.make)
