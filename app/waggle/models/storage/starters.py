"""The starters that Waggle ships: today's, and former ones, from which older homes go on training."""

from pathlib import Path

from waggle.core import paths
from waggle.models.storage import checkpoint


def starter_of(checkpoints: Path) -> Path:
    """The starter that the newest checkpoint began from; today's if there is no checkpoint, or another model's."""
    saved = checkpoint.read_unverified(checkpoints)
    if saved is None or checkpoint.is_of(saved, checkpoint.base_of(paths.starter())):
        return paths.starter()
    former = (folder for folder in paths.former_starters() if checkpoint.is_of(saved, checkpoint.base_of(folder)))
    return next(former, paths.starter())


def is_starter(folder: Path) -> bool:
    """Whether a model's folder is that of a starter, today's or a former one."""
    return folder == paths.starter() or folder in paths.former_starters()
