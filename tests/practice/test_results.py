"""Test the file of finished runs: append-only, and a torn last line costs one run."""

import msgspec
import pytest

from waggle.core.errors import LabError
from waggle.practice.results import Aha, Book, Key, Run


def key(seed: int = 1) -> Key:
    return Key(setting="sparse", configuration="8/0", seed=seed, learning_rate=5e-4, rounds=2, split="dev")


def run(seed: int = 1) -> Run:
    return Run(
        key=key(seed), commit="c", cpu_seconds=1.0, models=("starter",), specialties=("bf",), reward=(0.1, 0.2),
        completions=(8, 8), node_reward=((0.15,),), specialty_reward=((0.15,),), external_share=(0.0,), entropy=(1.0,),
        measured_at=(0, 2), held_out=((0.0, 0.1),), specialty_held_out=((0.0, 0.1),),
        ahas=(Aha(node=0, specialty="bf", round=1),),
    )  # fmt: skip


def test_what_is_kept_is_there_again_and_a_new_book_is_empty(tmp_path):
    path = tmp_path / "deep" / "runs.jsonl"
    book = Book(path, Run)
    assert not book.runs
    book.keep(run(1))
    book.keep(run(2))
    reopened = Book(path, Run)
    assert reopened.runs == (run(1), run(2)) == book.runs
    assert key(1) in reopened
    assert key(3) not in reopened
    assert reopened[key(2)] == run(2)


def test_a_line_cut_off_by_a_kill_is_dropped_and_writing_goes_on_behind_it(tmp_path):
    path = tmp_path / "runs.jsonl"
    Book(path, Run).keep(run(1))
    with path.open("ab") as file:
        file.write(msgspec.json.encode(run(2))[:-20])
    book = Book(path, Run)
    assert book.runs == (run(1),)
    book.keep(run(3))
    assert Book(path, Run).runs == (run(1), run(3))


@pytest.mark.parametrize("line", [b"hello", b"{}", b'{"key": 1}', b"\xff\xfe", b'{"commit":"\xff"}', b'{"key":' * 5000])
def test_a_file_of_something_else_is_named_and_left_alone(tmp_path, line):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(LabError, match=r"Line 1 of .* is not a finished run"):
        Book(path, Run)
    assert path.read_bytes() == line + b"\n"


@pytest.mark.parametrize("content", [b"hello", b"hello\nworld", b"[1]", b'{"keys"'])
def test_a_file_of_something_else_is_left_alone_even_where_its_last_line_has_no_end(tmp_path, content):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(content)
    with pytest.raises(LabError, match="is not a finished run"):
        Book(path, Run)
    assert path.read_bytes() == content
