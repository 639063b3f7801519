"""Files that are registered by being in a folder: their names, found without importing them, and what each of them holds."""

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import waggle
from waggle.core.errors import ExtensionError
from waggle.core.message import Message

INTERFACE = "interface"  # the module of such a folder that the others implement


def module_names(folder: str) -> tuple[str, ...]:
    """The modules directly in a folder below `waggle`, such as `rl/update_rules`, in alphabetical order, without `interface`."""
    paths = [str(Path(root) / folder) for root in waggle.__path__]
    # pkgutil instead of the file system: an installed app has its modules in an archive, which only its importer can list
    modules = pkgutil.iter_modules(paths)
    return tuple(sorted(module.name for module in modules if module.name != INTERFACE and not module.ispkg))


def load(package: str, name: str, attribute: str) -> Any:
    """What a registered file holds under a name. Raises ExtensionError, whatever is wrong with the file."""
    try:
        return getattr(importlib.import_module(f"{package}.{name}"), attribute)
    except Exception as error:  # somebody added the file; importing it may raise anything
        file = f"{package.removeprefix('waggle.').replace('.', '/')}/{name}.py"
        raise ExtensionError(
            Message("%1 cannot be used: %2: %3.", file, type(error).__name__, error),
            "Choose another one in Settings, or mend the file.",
        ) from error
