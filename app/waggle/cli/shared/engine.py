"""Asks a running engine."""

from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.system.os_faults import fault_of
from waggle.engine.control import server
from waggle.protocol import commands, events
from waggle.protocol.state import AnyEvent, Snapshot, State

STATUS_SECONDS = 15.0  # a status is answered at once, unless the engine is stuck


def ask(home: paths.Home, command: commands.AnyCommand, seconds: float = server.ANSWER_SECONDS) -> list[AnyEvent]:
    """The engine's answers to a command. Raises EngineError if it is refused, or does not answer in time."""
    answers = server.send_command(home, command, seconds)
    if isinstance(answers[-1], events.CommandRefused):
        raise EngineError(answers[-1].title, answers[-1].advice)
    return answers


def status(home: paths.Home) -> State:
    """The engine's current State. Raises EngineError."""
    answers = ask(home, commands.Status(id=commands.new_id()), STATUS_SECONDS)
    return next(event.state for event in answers if isinstance(event, Snapshot))


def engine_runs(home: paths.Home) -> bool:
    """Whether an engine runs for this home. Raises EngineError if that cannot be found out."""
    try:
        return server.is_running(home)
    except OSError as error:
        raise EngineError(f"The engine of {home.root} cannot be asked: {fault_of(error).reason}.") from error
