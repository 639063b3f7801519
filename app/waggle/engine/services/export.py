"""Finds the newest saved state of a home, for the export of its model."""

from waggle.core import paths, settings
from waggle.engine.runtime import model_source
from waggle.models.storage import checkpoint, export, ownership


def newest_trained(home: paths.Home, chosen: settings.ModelSettings) -> export.ExportSource:
    """The newest trained state of the chosen model. Raises WaggleError."""
    checkpoints = model_source.home_of(home, chosen).model.checkpoints
    base = model_source.folder_of(chosen, checkpoints)
    folder, saved = checkpoint.newest(checkpoints, ownership.base_of(checkpoints, base))
    name = chosen.name.partition("@")[0] or (base.name if chosen.folder else "the starter that ships with Waggle")
    return export.ExportSource(folder, saved, base, name)
