"""Sharing strategies, one a file: which groups a node trains on, and how strongly external completions pull.

SAPO (arXiv 2509.08721, algorithm 1, step 4) draws I local and J external groups uniformly: `plain`. Waggle's default is
`adaptive`. A file is registered by being here, and its name is a value of the setting `learning.sharing`. It holds `make()`,
which returns a strategy for one node (see interface.py). A file in `sender_logp/` needs the log-prob of a completion at its
sender, too, which only the laboratory's simulated swarm has.
"""

from collections.abc import Callable
from dataclasses import dataclass

from waggle.core.errors import SettingsError
from waggle.core.message import Message
from waggle.core.module_names import load, module_names
from waggle.sapo.sharing.interface import SharingStrategy

SENDER_LOGP = f"{__name__}.sender_logp"


@dataclass(frozen=True)
class RegisteredStrategy:
    """`make` returns a strategy for one node, which remembers nothing yet.

    `needs_sender_logp`: it needs the log-prob of a completion at its sender, which no live swarm carries.
    """

    name: str
    needs_sender_logp: bool
    make: Callable[[], SharingStrategy]


def table() -> dict[str, RegisteredStrategy]:
    """Every strategy by its name, in alphabetical order."""
    return {name: strategy(name) for name in sorted(_packages())}


def strategy(name: str) -> RegisteredStrategy:
    """The strategy of that name. Raises SettingsError if there is none, and ExtensionError if its file cannot be used."""
    packages = _packages()
    if name not in packages:
        raise SettingsError(
            Message("There is no sharing strategy %1.", name), Message("There are %1.", ", ".join(sorted(packages)))
        )
    package = packages[name]
    return RegisteredStrategy(name=name, needs_sender_logp=package == SENDER_LOGP, make=load(package, name, "make"))


def _packages() -> dict[str, str]:
    """The package of each strategy's file, without importing any: a file that cannot be used stops only who chose it."""
    live, simulated = module_names("sapo/sharing"), module_names("sapo/sharing/sender_logp")
    return dict.fromkeys(live, __name__) | dict.fromkeys(simulated, SENDER_LOGP)
