"""Saves every round as a table: the window itself has too few points for that after a long run, so it asks the engine."""

import contextlib
from pathlib import Path

from waggle.core.errors import EngineError
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.state import chart_series
from waggle.protocol.commands import QueryRounds, new_id
from waggle.protocol.events import HeldOutScore, RoundsRead, RoundSummary
from waggle.protocol.figures import rounds_csv
from waggle.protocol.state import State


async def save_rounds(path: Path, state: State, client: EngineClient) -> bool:
    """Save every round; without an engine, only those in the window. Returns whether all are in the file. Raises OSError."""
    rounds, scores = chart_series.rounds(state), chart_series.scores(state)
    whole = [summary.round for summary in rounds] == list(range(len(rounds)))
    if not whole:
        with contextlib.suppress(EngineError):
            rounds, scores = await _all_rounds(client)
            whole = True
    with path.open("w", newline="", encoding="utf-8") as file:
        rounds_csv.write(file, rounds, scores)
    return whole


async def _all_rounds(client: EngineClient) -> tuple[list[RoundSummary], list[HeldOutScore]]:
    """All stored rounds and scores, which the engine sends some at a time. Raises EngineError."""
    rounds, scores, after, more = list[RoundSummary](), list[HeldOutScore](), -1, True
    while more:
        read = await client.ask(QueryRounds(id=new_id(), after=after), RoundsRead)
        rounds += read.rounds
        scores += read.held_out
        after, more = read.last, read.more
    return rounds, scores
