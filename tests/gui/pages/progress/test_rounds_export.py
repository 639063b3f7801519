"""Every round is saved, however long the run was."""

import csv
from pathlib import Path

import pytest
from msgspec.structs import replace

from waggle.gui.pages.progress.rounds_export import RoundsExport
from waggle.protocol.commands import QueryRounds
from waggle.protocol.events import HeldOutScore, RoundsRead, RoundSummary
from waggle.protocol.state import State

ROUNDS = tuple(RoundSummary(round=number, at=1e9 + number, reward=0.5, solved=0.25, seconds=1.0) for number in range(1160))
SCORES = tuple(HeldOutScore(round=number, at=1e9 + number, right=number // 100, total=270) for number in range(0, 1160, 100))
THINNED = State(history=ROUNDS[::2], history_scores=SCORES, rounds=ROUNDS[-40:])


class Export:
    """One export, and what it asks and says."""

    def __init__(self, path: Path, state: State) -> None:
        self.commands: list[QueryRounds] = []
        self.results: list[bool] = []
        self.state = state
        self.export = RoundsExport(path, state, self.commands.append, self.results.append)
        self.export.begin()

    def answer(self, count: int) -> None:
        after = self.commands[-1].after
        page = ROUNDS[after + 1 : after + 1 + count]
        scores = tuple(score for score in SCORES if after < score.round <= page[-1].round + 1)
        read = RoundsRead(after=after, last=page[-1].round, rounds=page, held_out=scores, more=page[-1] != ROUNDS[-1])
        self.state = replace(self.state, rounds_read=read)
        self.export.show_state(self.state)
        self.export.show_state(self.state)  # other events redraw the page with the same answer


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_long_run_is_asked_for_and_saved_whole(tmp_path: Path) -> None:
    export = Export(tmp_path / "x.csv", THINNED)
    assert export.results == []
    for _ in range(3):
        export.answer(500)
    assert [command.after for command in export.commands] == [-1, 499, 999]
    assert export.results == [True]
    saved = rows(tmp_path / "x.csv")
    assert [row["round"] for row in saved] == [str(number) for number in range(1160)]
    scored = {row["round"]: row["held_out_right"] for row in saved if row["held_out_total"]}
    assert scored == {str(max(0, score.round - 1)): str(score.right) for score in SCORES}


def test_a_short_run_is_saved_without_asking(tmp_path: Path) -> None:
    export = Export(tmp_path / "x.csv", State(rounds=ROUNDS[:40]))
    assert (export.commands, export.results, len(rows(tmp_path / "x.csv"))) == ([], [True], 40)


@pytest.mark.parametrize("everything", [True, False])
def test_where_no_engine_answers_what_is_here_is_saved_and_said(tmp_path: Path, everything: bool) -> None:
    export = Export(tmp_path / "x.csv", THINNED)
    assert not export.export.handle_refusal("another")
    assert export.export.handle_refusal("" if everything else export.commands[0].id)
    assert export.results == [False]
    assert 600 <= len(rows(tmp_path / "x.csv")) < 1160
    assert not export.export.handle_refusal("")


def test_an_answer_to_an_earlier_export_is_not_taken(tmp_path: Path) -> None:
    old = RoundsRead(after=-1, last=3, rounds=ROUNDS[:4], held_out=(), more=False)
    export = Export(tmp_path / "x.csv", replace(THINNED, rounds_read=old))
    export.export.show_state(export.state)
    assert export.results == []
