"""Finds what an export is made of: the weights of now where an engine trains, else the newest saved state of a home."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from waggle.core import paths, settings
from waggle.core.message import NOTHING, Message
from waggle.engine.runtime import model_source
from waggle.engine.services.models.current_weights import CurrentWeights, CurrentWeightsError
from waggle.models.storage import checkpoint, export, ownership


def newest_trained(home: paths.Home, chosen: settings.ModelSettings) -> export.ExportSource:
    """The newest trained state of the chosen model that is saved. Raises WaggleError."""
    checkpoints = model_source.home_of(home, chosen).model.checkpoints
    base = model_source.folder_of(chosen, checkpoints)
    folder, saved = checkpoint.newest(checkpoints, ownership.base_of(checkpoints, base))
    name = chosen.name.partition("@")[0] or (base.name if chosen.folder else "the starter that ships with Waggle")
    return export.ExportSource(folder, saved, base, name)


@contextmanager
def trained_now(
    home: paths.Home, chosen: settings.ModelSettings, current: CurrentWeights | None
) -> Iterator[tuple[export.ExportSource, Message]]:
    """The newest trained state, and why it is only the newest saved one; that text is empty if it is the present one.

    `current` is None while the engine starts. Raises WaggleError.
    """
    saved = newest_trained(home, chosen)
    with ExitStack() as stack:
        state, not_now = saved, NOTHING if current else Message("Waggle is still starting.")
        newest = current.newest() if current else None
        if current is not None and newest is not None and newest.round != saved.saved.round:
            try:
                folder, trained = stack.enter_context(current.in_folder(saved.checkpoint.parent))
                state = replace(saved, checkpoint=folder, saved=trained)
            except CurrentWeightsError as error:
                not_now = error.title
        yield state, not_now
