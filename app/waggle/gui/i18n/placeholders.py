"""Texts of the window while no engine can answer, and in place of values unknown until it is ready."""

from msgspec.structs import replace

from waggle.gui.i18n.formatting import later, tr
from waggle.protocol.state import State

NO_MODEL = later("This is a recorded run: there is no model to ask.")
WAITS = later("Waiting for your choice on Home.")
RESTING = ("preparing", "problem", "stopped")


def why_unavailable(state: State) -> str:
    """Why the engine cannot be asked now; empty if it can."""
    match state.phase:
        case "problem" | "stopped":
            return tr("Training is not running.")
        case "preparing":
            return tr(WAITS) if state.waits_for_choice else tr("Waggle is still starting.")
        case _:
            return ""


def engine_placeholder(state: State) -> str:
    """Placeholder for values that no engine has sent yet, so that a returning person sees nothing lost; empty once one has."""
    if state.ready is not None:
        return ""
    return tr(WAITS) if state.waits_for_choice else tr("Shown once Waggle has started.")


def without_connections(state: State) -> State:
    """The state with every peer gone if no engine runs: nobody is connected then, whatever the last event said."""
    if not why_unavailable(state):
        return state
    return replace(state, peers={key: replace(peer, connection="gone") for key, peer in state.peers.items()})
