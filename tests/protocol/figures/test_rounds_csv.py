"""Rounds as a table and as JSON lines."""

import csv
import io
import json

from waggle.protocol.events import HeldOutScore, Metrics, RoundSummary
from waggle.protocol.figures import rounds_csv

FIRST = RoundSummary(
    round=3, at=1e9, reward=0.5, solved=0.25, seconds=2.0, completions=64, by_specialty={"Logic": 0.75},
    metrics=Metrics(loss=-0.01, entropy=1.5, external_share=0.4, learning_rate=2e-5),
)  # fmt: skip
SECOND = RoundSummary(round=4, at=1e9 + 60, reward=1.0, solved=1.0, seconds=2.0, by_specialty={"=HYPERLINK(1)": 1.0}, taught=8)
SCORE = HeldOutScore(round=4, at=1e9, right=7, total=30)


def text(form: rounds_csv.Form) -> str:
    file = io.StringIO(newline="")
    rounds_csv.write(file, [FIRST, SECOND], [SCORE], form)
    return file.getvalue()


def test_a_table_has_a_column_for_each_number_and_each_specialty():
    rows = list(csv.DictReader(io.StringIO(text("csv"), newline="")))
    assert [row["round"] for row in rows] == ["3", "4"]
    assert (rows[0]["held_out_right"], rows[0]["held_out_total"], rows[1]["held_out_right"]) == ("7", "30", "")
    assert (rows[0]["loss"], rows[0]["external_share"], rows[0]["learning_rate"]) == ("-0.01", "0.4", "2e-05")
    assert (rows[0]["reward Logic"], rows[1]["reward Logic"]) == ("0.75", "")
    assert rows[0]["finished"].startswith("2001-09-")


def test_every_value_is_of_the_kind_of_its_column():
    kinds = {"words": str, "whole": int, "number": int | float}
    for row in rounds_csv.every_row([FIRST, SECOND], [SCORE]):
        for column, value in row.items():
            assert value is None or isinstance(value, kinds[rounds_csv.kind_of(column)]), column


def test_a_title_that_a_stranger_chose_is_no_formula():
    assert not any(line.startswith("=") or ",=" in line for line in text("csv").splitlines())


def test_each_line_is_an_object_with_numbers():
    first, second = map(json.loads, text("jsonl").splitlines())
    assert (first["reward"], first["held_out_right"], first["groups_learned_from"]) == (0.5, 7, None)
    assert (second["groups_learned_from"], second["reward =HYPERLINK(1)"]) == (8, 1.0)


def test_without_rounds_there_is_nothing():
    file = io.StringIO()
    rounds_csv.write(file, [], [])
    assert file.getvalue() == ""
