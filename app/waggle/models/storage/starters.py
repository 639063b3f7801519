"""The starters that Waggle ships: the current one, and former ones, which older homes continue to train."""

from pathlib import Path

from waggle.core import paths
from waggle.models.storage import ownership


def starter_of(checkpoints: Path) -> Path:
    """The starter that was trained here; the current one without a training of a starter."""
    starters = (paths.starter(), *paths.former_starters())
    return next((folder for folder in starters if ownership.is_training_of(checkpoints, folder)), paths.starter())


def is_starter(folder: Path) -> bool:
    """Whether a folder contains a starter of Waggle, the current one or a former one."""
    return folder == paths.starter() or folder in paths.former_starters()
