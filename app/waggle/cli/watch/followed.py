"""The State of the engine of a home, followed by its events, or where a window has it, by asking each second."""

import asyncio
import contextlib

from msgspec.structs import replace

from waggle.cli.shared.engine import ask, status
from waggle.core import paths
from waggle.core.errors import WaggleError
from waggle.engine.attached_windows import Connection, connect
from waggle.protocol import commands, json_lines
from waggle.protocol.events import Ready, TrainingHistory
from waggle.protocol.state import Snapshot, State, apply

POLL_SECONDS = 1.0
STOPPED = "The engine has stopped. Everything is kept."
CRASHED = "The engine ended without saying why. `waggle log` may tell."


class FollowedEngine:
    """`state` is the newest State known, with the long history. `trouble` says why it may be out of date; empty otherwise."""

    def __init__(self, home: paths.Home) -> None:
        """Raises EngineError if no engine runs for this home."""
        self._home = home
        self.state = status(home)
        self.trouble = ""

    async def follow(self) -> None:
        """Follow this engine, and each that starts after it, until this is cancelled."""
        while True:
            try:
                if (connection := await connect(self._home)) is not None:
                    await self._read(connection)
                else:
                    await asyncio.to_thread(self._ask)
            except WaggleError as error:
                self.trouble = self.trouble or f"{error.title} {error.advice}".strip()
            await asyncio.sleep(POLL_SECONDS)

    async def _read(self, connection: Connection) -> None:
        """Fold events until the connection ends. Raises EngineError for an engine of another version."""
        line, self.trouble = connection.first, ""
        with contextlib.closing(connection.stream) as stream, contextlib.suppress(ConnectionError, ValueError):  # a line too long
            while line.endswith(b"\n"):
                event = json_lines.event(line)
                self.state = self._with_history(event.state) if isinstance(event, Snapshot) else apply(self.state, event)
                if isinstance(event, Snapshot | Ready):  # perhaps another model: the answer comes among the events
                    stream.write(json_lines.line(commands.QueryHistory(id=commands.new_id())))
                line = await connection.reader.readline()
        self.trouble = _last_words(self.state)

    def _ask(self) -> None:
        """Ask for the State. Raises EngineError if no engine answers."""
        state = status(self._home)
        if _model(state) != _model(self.state) or not self.state.history:
            for answer in ask(self._home, commands.QueryHistory(id=commands.new_id())):
                state = apply(state, answer) if isinstance(answer, TrainingHistory) else state
        self.state, self.trouble = self._with_history(state), ""

    def _with_history(self, state: State) -> State:
        """A State of the engine, which has no long history, with the one from before if it is of the same model."""
        if state.history or _model(state) != _model(self.state):
            return state
        return replace(state, history=self.state.history, history_scores=self.state.history_scores)


def _model(state: State) -> str | None:
    """What identifies the model in training; None before it is open."""
    return state.ready.base if state.ready is not None else None


def _last_words(state: State) -> str:
    """How an engine whose connection has ended came to its end."""
    if state.problem is not None:
        return f"The engine has ended. {state.problem.title} {state.problem.advice}".strip()
    return STOPPED if state.phase == "stopped" else CRASHED
