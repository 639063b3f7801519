"""Every round is saved, however long the run was."""

import asyncio
import csv
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.pages.progress.rounds_export import save_rounds
from waggle.protocol.commands import AnyCommand, QueryRounds
from waggle.protocol.events import CommandDone, CommandRefused, HeldOutScore, RoundsRead, RoundSummary
from waggle.protocol.state import AnyEvent, State

ROUNDS = tuple(RoundSummary(round=number, at=1e9 + number, reward=0.5, solved=0.25, seconds=1.0) for number in range(1160))
SCORES = tuple(HeldOutScore(round=number, at=1e9 + number, right=number // 100, total=270) for number in range(0, 1160, 100))
THINNED = State(history=ROUNDS[::2], history_scores=SCORES, rounds=ROUNDS[-40:])


class Engine:
    """An engine with 1,160 rounds, of which it sends some at a time, unless it `refuses` from one of its answers on."""

    def __init__(self, refuses: int = 99) -> None:
        self.queried_after = list[int]()
        self.client = EngineClient(self._send)
        self._refuses = refuses

    def _send(self, command: AnyCommand) -> bool:
        assert isinstance(command, QueryRounds)
        self.queried_after.append(command.after)
        asyncio.get_running_loop().call_soon(self._answer, command)
        return True

    def _answer(self, command: QueryRounds) -> None:
        if len(self.queried_after) > self._refuses:
            self._tell(CommandRefused(id=command.id, title="Not now."))
            return
        page = ROUNDS[command.after + 1 : command.after + 501]
        scores = tuple(score for score in SCORES if command.after < score.round <= page[-1].round + 1)
        self._tell(
            RoundsRead(after=command.after, last=page[-1].round, rounds=page, held_out=scores, more=page[-1] != ROUNDS[-1])
        )
        self._tell(CommandDone(id="another"))
        self._tell(CommandDone(id=command.id))

    def _tell(self, event: AnyEvent) -> None:
        self.client.take(event, State())


def saved(path: Path, state: State, engine: Engine, qtbot: QtBot) -> bool:
    """Save the rounds; returns whether all are in the file."""
    saving = asyncio.get_running_loop().create_task(save_rounds(path, state, engine.client))
    qtbot.waitUntil(saving.done)
    return saving.result()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_long_run_is_asked_for_and_saved_whole(tmp_path: Path, qtbot: QtBot) -> None:
    engine = Engine()
    assert saved(tmp_path / "x.csv", THINNED, engine, qtbot)
    assert engine.queried_after == [-1, 499, 999]
    written = rows(tmp_path / "x.csv")
    assert [row["round"] for row in written] == [str(number) for number in range(1160)]
    scored = {row["round"]: row["held_out_right"] for row in written if row["held_out_total"]}
    assert scored == {str(max(0, score.round - 1)): str(score.right) for score in SCORES}


def test_a_short_run_is_saved_without_asking(tmp_path: Path, qtbot: QtBot) -> None:
    engine = Engine()
    assert saved(tmp_path / "x.csv", State(rounds=ROUNDS[:40]), engine, qtbot)
    assert (engine.queried_after, len(rows(tmp_path / "x.csv"))) == ([], 40)


@pytest.mark.parametrize("refuses", [0, 1])
def test_where_an_engine_refuses_what_is_here_is_saved_and_said(tmp_path: Path, qtbot: QtBot, refuses: int) -> None:
    assert not saved(tmp_path / "x.csv", THINNED, Engine(refuses), qtbot)
    assert 600 <= len(rows(tmp_path / "x.csv")) < 1160


def test_where_no_engine_runs_what_is_here_is_saved(tmp_path: Path, qtbot: QtBot) -> None:
    engine = Engine()
    engine.client = EngineClient()
    assert not saved(tmp_path / "x.csv", THINNED, engine, qtbot)
    assert 600 <= len(rows(tmp_path / "x.csv")) < 1160
