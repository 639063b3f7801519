"""Lists the modules of a folder without importing them, so that a file in the right folder can be chosen by its name."""

import pkgutil
from pathlib import Path

import waggle

INTERFACE = "interface"  # the module of such a folder that the others implement


def module_names(folder: str) -> tuple[str, ...]:
    """The modules directly in a folder below `waggle`, such as `rl/update_rules`, in alphabetical order, without `interface`."""
    paths = [str(Path(root) / folder) for root in waggle.__path__]
    # pkgutil instead of the file system: an installed app has its modules in an archive, which only its importer can list
    modules = pkgutil.iter_modules(paths)
    return tuple(sorted(module.name for module in modules if module.name != INTERFACE and not module.ispkg))
