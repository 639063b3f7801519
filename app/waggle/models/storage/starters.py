"""The starters that Waggle ships: the current one, and former ones, which older homes continue to train."""

from pathlib import Path

from waggle.core import paths
from waggle.models.storage import checkpoint


def starter_of(checkpoints: Path) -> Path:
    """The starter that the newest checkpoint began from; the current one without a checkpoint of a starter."""
    saved = checkpoint.read_unverified(checkpoints)
    if saved is None or checkpoint.is_of(saved, checkpoint.base_of(paths.starter())):
        return paths.starter()
    former = (folder for folder in paths.former_starters() if checkpoint.is_of(saved, checkpoint.base_of(folder)))
    return next(former, paths.starter())


def is_starter(folder: Path) -> bool:
    """Whether a folder contains a starter of Waggle, the current one or a former one."""
    return folder == paths.starter() or folder in paths.former_starters()
