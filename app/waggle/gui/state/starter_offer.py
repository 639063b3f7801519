"""The starter in place of a model that needed too much memory: whether it is offered, and the choice of it."""

from waggle.core.settings import ModelSettings
from waggle.gui.i18n.formatting import later
from waggle.gui.state.settings_store import SettingsStore
from waggle.protocol.state import State

TRAIN_STARTER = later("Train Waggle's tiny starter")  # on every button that does so


def offers_starter(state: State, settings: SettingsStore, *, can_start: bool) -> bool:
    """Whether no engine runs, the last one ended for want of memory, and its model was larger than the starter.

    `can_start`: the window can start an engine.
    """
    chosen = (state.settings or settings.settings).model
    short = state.problem is not None and state.problem.short_of_memory
    return short and chosen != ModelSettings() and not (settings.far or settings.is_unreadable) and can_start


def choose_starter(settings: SettingsStore) -> bool:
    """Choose the starter; whether it is chosen now. No engine takes a choice then, so the settings do."""
    settings.set({"model.name": None, "model.folder": None})
    return settings.settings.model == ModelSettings()
