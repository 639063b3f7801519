"""Every place in docs/what-strangers-can-cost.md names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/what-strangers-can-cost.md").read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
PLACES = [row for row in ROWS if row[0] != "what grows"]
TEST = re.compile(r"`(tests/[a-z_/]+\.py)::(test_[a-z_0-9]+)`")


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])
def test_every_place_has_a_bound_and_tests_that_exist(place: list[str]) -> None:
    assert len(place) == 4
    assert all(place)
    named = TEST.findall(place[3])
    assert named, "no test holds this bound"
    assert TEST.sub("", place[3]).replace(",", "").strip() == ""
    for path, test in named:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert test in functions, f"{path} has no {test}"


def test_the_table_was_read() -> None:
    assert len(PLACES) > 30
