"""Lists the modules of a folder of the product without importing one: what is registered by being there can be chosen by name."""

import pkgutil
from pathlib import Path

import waggle

INTERFACE = "interface"  # the module of such a folder that says what the others are


def module_names(folder: str) -> tuple[str, ...]:
    """The modules in a folder below `waggle` (`rl/update_rules`), without its interface and folders, in alphabetical order."""
    paths = [str(Path(root) / folder) for root in waggle.__path__]
    # pkgutil, not a look at the disk: an installed app keeps its modules in an archive, whose importer answers it
    modules = pkgutil.iter_modules(paths)
    return tuple(sorted(module.name for module in modules if module.name != INTERFACE and not module.ispkg))
