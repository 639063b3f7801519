"""Waits until a running engine has joined another swarm, or has come back from it."""

import sys
import time

from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.engine.control import server
from waggle.engine.runtime.undo_log import UndoStep
from waggle.engine.services.swarms import ASK_MESSAGE, BACK_MESSAGE
from waggle.protocol import commands
from waggle.protocol.state import Snapshot, State
from waggle.protocol.status_text import sentence

JOIN_SECONDS = 1800.0  # the engine leaves its swarm, downloads the questions and opens the model again
POLL_SECONDS = 1.0
UNDONE = (BACK_MESSAGE, UndoStep.message)  # what the advice of a warning says if the engine came back


def state_now(home: paths.Home) -> State | None:
    """The engine's State; None while it restarts. Raises EngineError if no engine answers."""
    answers = server.send_command(home, commands.Status(id=commands.new_id()))
    return next((event.state for event in answers if isinstance(event, Snapshot)), None)


def wait_for_swarm(home: paths.Home, charter: str, since: float) -> str:
    """Wait until the engine has joined a swarm, and return the swarm's name; print each part of its preparation on stderr.

    The swarm was chosen after `since` (unix seconds, of an event). Raises EngineError with the reason if the engine comes back,
    and if it takes too long.
    """
    deadline, printed = time.monotonic() + JOIN_SECONDS, ""
    while time.monotonic() < deadline:
        state = state_now(home)
        if state is not None:
            if state.undecided is not None and state.undecided.at > since:
                raise _undecided_error(state, since)
            if state.phase != "preparing" and state.ready is not None and state.ready.at > since:
                if state.ready.charter == charter:
                    return state.ready.swarm
                raise _return_error(state, since)
            part = state.preparing.part if state.preparing is not None else ""
            if part and part != printed:
                sys.stderr.write(f"{part}.\n")
                printed = part
        time.sleep(POLL_SECONDS)
    raise EngineError("The engine has not joined the swarm yet.", "`waggle ctl status` shows what it does.")


def _undecided_error(state: State, since: float) -> EngineError:
    """The reason why the engine asks for another swarm."""
    status = sentence(state)
    reason = next((warning for warning in state.warnings if warning.at > since and ASK_MESSAGE in warning.advice), None)
    if reason is None:
        return EngineError(status.says, status.detail)
    return EngineError(reason.title, reason.advice)


def _return_error(state: State, since: float) -> EngineError:
    """The reason why the engine is in its earlier swarm again."""
    warnings = [warning for warning in state.warnings if warning.at > since]
    undone = [warning for warning in warnings if any(message in warning.advice for message in UNDONE)]
    reason = next(iter([*undone, *warnings]), None)
    swarm = state.ready.swarm if state.ready is not None else "its earlier swarm"
    if reason is None:
        return EngineError(f"The engine came back to {swarm}.", "`waggle log` may have the reason.")
    return EngineError(f"The engine came back to {swarm}: {reason.title}", reason.advice)
