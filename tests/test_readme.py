"""The README keeps up with the code."""

import ast
import gc
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def without_collections() -> Iterator[None]:
    """Python 3.11 takes a finalizer that runs in the middle of `ast.parse` for its own recursion and raises SystemError."""
    gc.disable()
    yield
    gc.enable()


def test_the_tree_names_every_file_with_its_own_first_sentence():
    writer = runpy.run_path(str(ROOT / "packaging/tree.py"))
    assert writer["README"].read_text(encoding="utf-8") == writer["written"](), "run: python3 packaging/tree.py"


def test_every_room_keeps_its_files_and_functions_small():
    for path in (ROOT / "app").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 400, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno - node.lineno < 60, f"{path}: {node.name}"


def test_no_file_of_the_repository_is_large():
    assert [path for path in (ROOT / "resources").rglob("*") if path.is_file() and path.stat().st_size > 6_000_000] == []
