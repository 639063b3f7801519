"""`waggle history` prints every round, beside a running engine too."""

import csv
import io
import json
import sys
from contextlib import closing

import pytest

from waggle.cli import main
from waggle.core import paths
from waggle.engine.storage.history import ROUNDS_AT_ONCE, History
from waggle.protocol.events import HeldOutScore, RoundSummary

COUNT = 1000


def summary(number: int) -> RoundSummary:
    return RoundSummary(round=number, at=1e9 + number, reward=0.5, solved=0.25, seconds=1.0)


@pytest.fixture
def history(tmp_path):
    home = paths.Home(tmp_path)
    home.model.history.parent.mkdir(parents=True, exist_ok=True)
    with closing(History(home.model.history)) as opened:
        with opened.transaction():
            for number in range(COUNT):
                opened.save_round(summary(number))
        opened.save_score(HeldOutScore(round=500, at=1e9, right=7, total=30))
        yield opened


def test_every_round_is_in_the_table(history, tmp_path, capsys):
    assert main.main(["history", "--home", str(tmp_path)]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out, newline="")))
    assert [int(row["round"]) for row in rows] == list(range(COUNT))
    assert rows[499]["held_out_right"] == "7"


def test_every_round_is_a_line(history, tmp_path, capsys):
    assert main.main(["history", "--jsonl", "--home", str(tmp_path)]) == 0
    assert [json.loads(line)["round"] for line in capsys.readouterr().out.splitlines()] == list(range(COUNT))


def test_where_nothing_was_played_that_is_said(tmp_path, capsys):
    assert main.main(["history", "--home", str(tmp_path)]) == 1
    assert "No round has been played here yet." in capsys.readouterr().err


def test_an_engine_answers_some_rounds_at_a_time(history):
    pages, after = [], -1
    while True:
        pages.append(history.rounds_after(after))
        after = pages[-1].last
        if not pages[-1].more:
            break
    assert [len(page.rounds) for page in pages] == [ROUNDS_AT_ONCE, COUNT - ROUNDS_AT_ONCE]
    assert [each.round for page in pages for each in page.rounds] == list(range(COUNT))
    assert [score.round for page in pages for score in page.held_out] == [500], "once, though two pages touch it"
    assert history.rounds_after(COUNT).rounds == ()


def test_a_parquet_file_has_every_round_as_numbers(history, tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet", reason="not part of Waggle (core/research_library.py)")
    words = ["history", "--parquet", str(tmp_path / "rounds.parquet"), "--home", str(tmp_path)]
    assert main.main(words) == 0
    table = parquet.read_table(tmp_path / "rounds.parquet")
    assert table["round"].to_pylist() == list(range(COUNT))
    assert (table["held_out"].to_pylist()[499], str(table.schema.field("reward").type)) == (7 / 30, "double")
    assert str(table.schema.field("external_reward").type) == "double", "no round had one, and another run may have some"
    assert main.main(words) == 1
    assert "is there already" in capsys.readouterr().err


def test_without_pyarrow_a_parquet_file_is_refused_in_words(history, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main.main(["history", "--parquet", str(tmp_path / "rounds.parquet"), "--home", str(tmp_path)]) == 1
    assert "A Parquet file needs pyarrow" in capsys.readouterr().err
