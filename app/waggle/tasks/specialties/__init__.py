"""Waggle's own datasets, one a file: what charters can name beside the datasets of reasoning-gym.

A file is registered by being here. It holds `DATASET`, and its own name is the dataset's name in charters. What a dataset is:
interface.py. Charters may name it, and new swarms offer it, once the audit lists it (see docs/adding/specialty.md).
"""

import functools

from waggle.core.module_names import load, module_names
from waggle.tasks.specialties.interface import Dataset


@functools.cache
def waggle_datasets() -> dict[str, Dataset]:
    """Every dataset of this folder by its name, in alphabetical order. Raises ExtensionError if a file cannot be used."""
    return {name: load(__name__, name, "DATASET") for name in module_names("tasks/specialties")}
