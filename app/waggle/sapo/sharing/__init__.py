"""Sharing strategies, one a file: which groups a node trains on, and how strongly external completions pull.

SAPO (arXiv 2509.08721, algorithm 1, step 4) draws I local and J external groups uniformly: `plain`. Waggle's default is
`adaptive`. A file is registered by being here, and its name is a value of the setting `learning.sharing`. It needs a docstring,
whose first sentence describes the strategy, and `make()`, which returns a strategy for one node (see interface.py). A file in
`sender_logp/` needs the log-prob of a completion at its sender, too, which only the laboratory's simulated swarm has.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from waggle.core.errors import SettingsError
from waggle.core.module_names import module_names
from waggle.sapo.sharing.interface import SharingStrategy

SENDER_LOGP = f"{__name__}.sender_logp"


@dataclass(frozen=True)
class RegisteredStrategy:
    """`description` is one sentence; `make` returns a strategy for one node, which remembers nothing yet.

    `needs_sender_logp`: it needs the log-prob of a completion at its sender, which no live swarm carries.
    """

    name: str
    description: str
    needs_sender_logp: bool
    make: Callable[[], SharingStrategy]


def table() -> dict[str, RegisteredStrategy]:
    """Every strategy by its name, in alphabetical order."""
    live = [_load(name, __name__) for name in module_names("sapo/sharing")]
    simulated = [_load(name, SENDER_LOGP) for name in module_names("sapo/sharing/sender_logp")]
    return {each.name: each for each in sorted([*live, *simulated], key=lambda each: each.name)}


def strategy(name: str) -> RegisteredStrategy:
    """The strategy of that name; raises SettingsError."""
    strategies = table()
    if name not in strategies:
        raise SettingsError(f"There is no sharing strategy {name}.", f"There are {', '.join(strategies)}.")
    return strategies[name]


def _load(name: str, package: str) -> RegisteredStrategy:
    module = importlib.import_module(f"{package}.{name}")
    sentence = (module.__doc__ or "").strip().split(".\n")[0].split(". ")[0].rstrip(".")
    return RegisteredStrategy(
        name=name,
        description=f"{' '.join(sentence.split())}.",
        needs_sender_logp=package == SENDER_LOGP,
        make=module.make,
    )
