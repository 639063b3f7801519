"""Which swarm is suggested to a person whose model hardly learns in the present one: a function of the State.

The window shows it on Home and Models, and `waggle ctl status` in one sentence. Nobody is moved by it.
"""

from waggle.protocol.events import SwarmSuggestion
from waggle.protocol.state import State


def suggestion(state: State) -> SwarmSuggestion | None:
    """The suggested swarm; None if the present one suits the model, or the person dismissed such a suggestion."""
    if state.ready is None or (state.settings is not None and not state.settings.window.suggest_swarm):
        return None
    return state.ready.better_swarm


def suggestion_text(swarm: SwarmSuggestion) -> str:
    """The suggestion in one sentence."""
    return f"Small language models learn more in {swarm.name}, a swarm with easier questions that comes with Waggle."


def command_line(swarm: SwarmSuggestion) -> str:
    """The suggestion for a terminal, in one sentence, with the command that goes there."""
    return f'{suggestion_text(swarm).removesuffix(".")}: `waggle swarm join "{swarm.name}"`.'
