"""Saves every round as a table: the window itself has too few points for that after a long run, so it asks the engine."""

from collections.abc import Callable
from pathlib import Path

from waggle.gui.state import chart_series
from waggle.protocol import rounds_csv
from waggle.protocol.commands import QueryRounds, new_id
from waggle.protocol.events import HeldOutScore, RoundSummary
from waggle.protocol.state import State


class RoundsExport:
    """Saves one table. `ask` sends a command; `written` is called when the file is complete, with whether it has every round.

    Without an engine, only the rounds in the window are saved.
    """

    def __init__(self, path: Path, state: State, ask: Callable[[QueryRounds], None], written: Callable[[bool], None]) -> None:
        self._path, self._state, self._ask, self._written = path, state, ask, written
        self._rounds: list[RoundSummary] = []
        self._scores: list[HeldOutScore] = []
        self._awaited, self._after = "", -1
        self._before = state.rounds_read

    @property
    def is_waiting(self) -> bool:
        """Whether rounds are still to come."""
        return bool(self._awaited)

    def begin(self) -> None:
        """Write the file, or ask for the rounds that are missing. Raises OSError."""
        numbers = [summary.round for summary in chart_series.rounds(self._state)]
        if numbers == list(range(len(numbers))):
            self._write_known(whole=True)
        else:
            self._request(-1)

    def show_state(self, state: State) -> None:
        """Take what the engine answered. Raises OSError when the file is written."""
        read = state.rounds_read
        if not self._awaited or read is None or read is self._before or read.after != self._after:
            return
        self._before = read
        self._rounds += read.rounds
        self._scores += read.held_out
        if read.more:
            self._request(read.last)
        else:
            self._awaited = ""
            self._write(self._rounds, self._scores, whole=True)

    def handle_refusal(self, command: str) -> bool:
        """The command with this id, or (empty) every command, was refused: save what is here. Raises OSError."""
        if not self._awaited or command not in ("", self._awaited):
            return False
        self._awaited = ""
        self._write_known(whole=False)
        return True

    def _request(self, after: int) -> None:
        self._awaited, self._after = new_id(), after
        self._ask(QueryRounds(id=self._awaited, after=after))

    def _write_known(self, *, whole: bool) -> None:
        self._write(chart_series.rounds(self._state), chart_series.scores(self._state), whole=whole)

    def _write(self, rounds: list[RoundSummary], scores: list[HeldOutScore], *, whole: bool) -> None:
        with self._path.open("w", newline="", encoding="utf-8") as file:
            rounds_csv.write(file, rounds, scores)
        self._written(whole)
