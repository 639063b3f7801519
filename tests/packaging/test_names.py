"""The lint refuses vague names in every place where Python binds one."""

import ast
import subprocess
import sys

import names
import pytest

SAMPLE = """
import json as told
from os import path

SHOWN = 3

class Kept:
    asked: int = 0

    def __init__(self, given, *seen, made=(), **held):
        self._found = self._found = given

    async def wanted(self):
        return [one for one in range(3)], {one: one for one in "ab"}, lambda one: one

def read(rows):
    for heard in rows:
        again = taken = heard
    with open("a") as said, open("b") as left_2:
        pass
    if (shown := rows) and [seen := row for row in shown]:
        pass
    try:
        pass
    except ValueError as left:
        pass
    match rows:
        case [kept, *found]:
            pass
        case {"a": 1, **told}:
            pass
        case ValueError() as made:
            pass

    def count():
        nonlocal again
        again += 1
"""
EXPECTED = {
    "import": ["sample.told"],
    "constant": ["sample.SHOWN"],
    "class": ["sample.Kept"],
    "attribute": ["sample.Kept.asked", "sample.Kept._found"],
    "function": ["sample.Kept.wanted"],
    "parameter": [
        "sample.Kept.__init__.given", "sample.Kept.__init__.seen", "sample.Kept.__init__.made", "sample.Kept.__init__.held",
        "sample.Kept.wanted.<lambda>.one",
    ],
    "comprehension": ["sample.Kept.wanted.one", "sample.Kept.wanted.one"],
    "variable": [f"sample.read.{name}" for name in (
        "heard", "again", "taken", "said", "left_2", "shown", "seen", "left", "kept", "found", "told", "made",
    )],
}  # fmt: skip


@pytest.fixture
def source(tmp_path):
    """A source root with a clean folder and one that is not."""
    for room, line in (("clean", "rows_to_score = []\n"), ("old", "def read(path):\n    found = path\n    return found\n")):
        (tmp_path / "app" / room).mkdir(parents=True)
        (tmp_path / "app" / room / "read.py").write_text(line)
    return tmp_path


def test_every_way_to_bind_a_name_is_seen_once_in_each_scope():
    seen_by_kind = {}
    for binding in names.bindings(ast.parse(SAMPLE), "sample"):
        if names.is_vague(binding.name):
            seen_by_kind.setdefault(binding.kind, []).append(binding.qualified)
    assert {kind: sorted(qualified) for kind, qualified in seen_by_kind.items()} == {
        kind: sorted(qualified) for kind, qualified in EXPECTED.items()
    }


def test_the_place_of_a_name_is_where_an_editor_finds_it():
    lines = SAMPLE.splitlines()
    clauses = ("sample.told", "sample.read.left", "sample.read.found", "sample.read.told", "sample.read.made", "sample")
    for binding in names.bindings(ast.parse(SAMPLE), "sample"):
        if binding.qualified not in clauses:  # for these Python reports where the clause begins
            assert lines[binding.line - 1][binding.column - 1 :].startswith(binding.name), binding


@pytest.mark.parametrize("name", ["one", "_found", "kept_", "ASKED", "Told", "found2", "__made"])
def test_a_vague_word_is_refused_however_it_is_written(name):
    assert names.is_vague(name)


@pytest.mark.parametrize("name", ["found_rows", "stone", "remade", "rows_to_score", "held_out", "_", "self", "everyone"])
def test_a_name_that_says_more_is_allowed(name):
    assert not names.is_vague(name)


def test_a_refusal_says_where_what_and_what_to_do(source):
    lines = names.refusals(source, allowed={})
    assert lines == ["app/old/read.py:2:5 found: does not say what this is; name what it holds"]


def test_a_file_with_a_vague_name_is_refused_and_so_is_a_folder(source):
    (source / "app/clean/kept.py").touch()
    (source / "app/told").mkdir()
    (source / "app/told/__init__.py").touch()
    lines = names.refusals(source, allowed={})
    assert [line.partition(":")[0] for line in lines] == ["app/clean/kept.py", "app/old/read.py", "app/told/__init__.py"]


def test_an_allowed_name_needs_its_whole_place_and_an_entry_without_a_use_is_refused(source):
    assert names.refusals(source, allowed={"read.found": "a test"}) == []
    lines = names.refusals(source, allowed={"write.found": "of another function"})
    assert len(lines) == 2
    assert "`write.found`, which nothing binds any more" in lines[1]


def test_each_allowed_name_has_a_reason():
    assert all(len(reason.split()) > 3 for reason in names.ALLOWED.values())


def test_the_command_ends_with_a_status_that_stops_the_test_command(source):
    for room, status in (("old", 1), ("clean", 0)):
        command = [sys.executable, names.__file__, str(source / "app" / room)]
        assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == status
