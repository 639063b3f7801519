"""Waits until a running engine has started again: in another swarm, or with other settings; or has come back from that."""

import sys
import time
from collections.abc import Iterator

from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.engine.control import server
from waggle.engine.runtime.undo_log import UndoStep
from waggle.engine.services.swarms.swarms import ASK_MESSAGE, BACK_MESSAGE
from waggle.protocol import commands
from waggle.protocol.events import Warned
from waggle.protocol.state import Snapshot, State
from waggle.protocol.text.status_text import sentence

START_SECONDS = 1800.0  # the engine leaves its swarm, downloads the questions and opens the model again
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
    for state in _states(home):
        if state.undecided is not None and state.undecided.at > since:
            raise _undecided_error(state, since)
        if state.phase != "preparing" and state.ready is not None and state.ready.at > since:
            if state.ready.charter == charter:
                return state.ready.swarm
            raise _return_error(state, since)
    raise EngineError("The engine has not joined the swarm yet.", "`waggle status` shows what it does.")


def wait_for_start(home: paths.Home, since: float) -> None:
    """Wait until the engine has started again after `since` (unix seconds, of an event); print each part of its preparation.

    Raises EngineError with the reason if it went back to what was before, if it waits for a choice, and if it takes too long.
    """
    for state in _states(home):
        if state.waits_for_choice:
            status = sentence(state)
            raise EngineError(status.says, status.detail)
        if state.phase != "preparing" and state.ready is not None and state.ready.at > since:
            if (undone := _undone(state, since)) is not None:
                raise EngineError(undone.title, undone.advice)
            return
    raise EngineError("The engine has not started again yet.", "`waggle status` shows what it does.")


def _states(home: paths.Home) -> Iterator[State]:
    """The State of the engine, again and again, for START_SECONDS at most; print each part of its preparation on stderr."""
    deadline, printed = time.monotonic() + START_SECONDS, ""
    while time.monotonic() < deadline:
        state = state_now(home)
        if state is not None:
            yield state
            part = state.preparing.part if state.preparing is not None else ""
            if part and part != printed:
                sys.stderr.write(f"{part}.\n")
                printed = part
        time.sleep(POLL_SECONDS)


def _undone(state: State, since: float) -> Warned | None:
    """The warning of an engine that went back to what was before."""
    recent = (warning for warning in state.warnings if warning.at > since)
    return next((warning for warning in recent if any(message in warning.advice for message in UNDONE)), None)


def _undecided_error(state: State, since: float) -> EngineError:
    """The reason why the engine asks for another swarm."""
    status = sentence(state)
    reason = next((warning for warning in state.warnings if warning.at > since and ASK_MESSAGE in warning.advice), None)
    if reason is None:
        return EngineError(status.says, status.detail)
    return EngineError(reason.title, reason.advice)


def _return_error(state: State, since: float) -> EngineError:
    """The reason why the engine is in its earlier swarm again."""
    reason = _undone(state, since) or next((warning for warning in state.warnings if warning.at > since), None)
    swarm = state.ready.swarm if state.ready is not None else "its earlier swarm"
    if reason is None:
        return EngineError(f"The engine came back to {swarm}.", "`waggle log` may have the reason.")
    return EngineError(f"The engine came back to {swarm}: {reason.title}", reason.advice)
