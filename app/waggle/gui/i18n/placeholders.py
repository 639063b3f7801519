"""What the window says while there is no engine to ask, and in place of what is not known before it is ready."""

from waggle.gui.i18n.formatting import later, tr
from waggle.protocol.state import State

NO_MODEL = later("This is a recorded run: there is no model to ask.")
RESTING = ("preparing", "problem", "stopped")


def why_unavailable(state: State) -> str:
    """Why nothing can be asked of the engine now; empty where it can."""
    match state.phase:
        case "problem" | "stopped":
            return tr("The engine is not running.")
        case "preparing":
            return tr("The engine is still starting.")
        case _:
            return ""


def waiting_for_engine(state: State) -> str:
    """What stands in place of what no engine has told yet: whoever returns has lost nothing. Empty once one has."""
    return "" if state.ready is not None else tr("Shown when the engine is ready.")
