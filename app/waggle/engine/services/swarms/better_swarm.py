"""Which swarm that comes with Waggle suits a model better than the present one. It is suggested only."""

from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.core.settings import ModelSettings, Settings
from waggle.engine.runtime import model_source
from waggle.engine.services.swarms.swarms import with_chosen_swarm
from waggle.models import memory_fit
from waggle.models.shared import generic_config
from waggle.models.shared.suggested_models import suggested_models
from waggle.protocol.events import SwarmSuggestion
from waggle.tasks import shipped_swarms
from waggle.tasks.charter import Charter


def better_swarm(here: Charter, weights: int) -> SwarmSuggestion | None:
    """The suggestion to a model of so many weights that is trained in the swarm `here`; None if that one suits it."""
    other = shipped_swarms.better_swarm(here, weights)
    return _as_suggestion(other) if other is not None else None


def swarm_to_begin_in(weights: int) -> SwarmSuggestion | None:
    """The swarm to begin in with a model of so many weights; None for the default one."""
    return better_swarm(shipped_swarms.first_swarm(), weights)


def better_swarm_for_choice(home: paths.Home, chosen: Settings, model: ModelSettings) -> SwarmSuggestion | None:
    """The same for a model that was chosen and is perhaps not opened, or not here yet. Raises SwarmError."""
    named = with_chosen_swarm(home, chosen).swarm.charter
    here = shipped_swarms.shipped_swarm(named) if named else shipped_swarms.first_swarm()
    return better_swarm(here, _weights_of(model)) if here is not None else None


def _weights_of(model: ModelSettings) -> int:
    """The weights of a model by its configuration, or by Waggle's own list if it is not here; 0: not known."""
    try:
        if not model.name or model_source.is_here(model.name):
            return memory_fit.weights_of(generic_config.read_any(model_source.folder_of(model)))
    except ModelError:
        return 0
    return next((listed.weights for listed in suggested_models() if listed.name == model.name), 0)


def _as_suggestion(charter: Charter) -> SwarmSuggestion:
    return SwarmSuggestion(charter=charter.digest.hex(), name=charter.name)
