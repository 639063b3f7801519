"""The State of a running engine, followed in a thread: by its events, or where a window has it, by asking each second."""

import threading

from msgspec.structs import replace

from waggle.cli.shared.engine import ask, status
from waggle.core import paths
from waggle.core.errors import EngineError, WaggleError
from waggle.engine.control import server
from waggle.protocol import commands, json_lines
from waggle.protocol.events import CommandRefused, EngineFailed, TrainingHistory
from waggle.protocol.state import Snapshot, State, apply

POLL_SECONDS = 1.0


class FollowedEngine:
    """`state` is the newest State, with the long history. `ended` says why it is the last one; empty until then."""

    def __init__(self, home: paths.Home) -> None:
        """Raises EngineError if no engine runs for this home."""
        self._home = home
        self.state = status(home)
        self.ended = ""
        for answer in ask(home, commands.QueryHistory(id=commands.new_id())):
            if isinstance(answer, TrainingHistory):
                self.state = apply(self.state, answer)
        self._closed = threading.Event()

    def start(self) -> None:
        """Follow it from now on."""
        threading.Thread(target=self._follow, name="follow", daemon=True).start()

    def close(self) -> None:
        """Follow no longer."""
        self._closed.set()

    def _follow(self) -> None:
        try:
            if not self._read_events():
                self._poll()
        except WaggleError as error:
            self.ended = f"{error.title} {error.advice}".strip()
        except OSError:
            self.ended = "The engine has ended."

    def _read_events(self) -> bool:
        """Fold events until the connection ends; return False if a window has this engine, which nobody else may follow."""
        with server.connect(self._home, server.CONNECT_SECONDS) as connection:
            connection.settimeout(None)
            connection.sendall(json_lines.line(commands.Follow(id="top")))
            for line in connection.makefile("rb"):
                event = json_lines.event(line)
                if isinstance(event, CommandRefused):
                    return False
                self.state = self._with_history(event.state) if isinstance(event, Snapshot) else apply(self.state, event)
                if isinstance(event, EngineFailed):
                    raise EngineError(event.title, event.advice)
                if self._closed.is_set():
                    return True
        raise EngineError("The engine has ended.")

    def _poll(self) -> None:
        while not self._closed.wait(POLL_SECONDS):
            self.state = self._with_history(status(self._home))

    def _with_history(self, state: State) -> State:
        """A State of the engine, which has no long history, with the one from before if it is of the same model."""
        before = self.state
        if (state.ready and state.ready.base) != (before.ready and before.ready.base):
            return state
        return replace(state, history=before.history, history_scores=before.history_scores)
