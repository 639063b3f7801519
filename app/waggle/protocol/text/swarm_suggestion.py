"""Which swarm is suggested to a person whose model hardly learns in the present one: a function of the State.

The window shows it on Home and Models, and `waggle status` in one sentence. Nobody is moved by it.
"""

from waggle.core.message import Message
from waggle.protocol.events import SwarmSuggestion
from waggle.protocol.state import State


def suggestion(state: State, *, enabled: bool) -> SwarmSuggestion | None:
    """The suggested swarm; None if the present one suits the model. `enabled`: the setting `window.suggest_swarm`."""
    return state.ready.better_swarm if enabled and state.ready is not None else None


def suggestion_text(swarm: SwarmSuggestion) -> str:
    """The suggestion in one sentence."""
    return Message("Small language models learn more in %1, a swarm with easier questions that comes with Waggle.", swarm.name)


def command_line(swarm: SwarmSuggestion) -> str:
    """The suggestion for a terminal, in one sentence, with the command that goes there."""
    return f'{suggestion_text(swarm).removesuffix(".")}: `waggle swarm join "{swarm.name}"`.'
