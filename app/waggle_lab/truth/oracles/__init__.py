"""Oracles by dataset, in one file for each topic; a file is registered by being here and holds `ORACLES`."""

import functools
import importlib
import pkgutil

from waggle_lab.truth.interface import Oracle


@functools.cache
def oracles() -> dict[str, Oracle]:
    """The oracle of every dataset that has one."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return {dataset: oracle for module in modules for dataset, oracle in module.ORACLES.items()}
