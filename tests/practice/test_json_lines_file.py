"""Test that a file of JSON lines survives a torn line, and that other files are left alone."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from waggle.core.errors import LabError
from waggle.practice import json_lines_file
from waggle.practice.results import Run
from waggle_lab.benchmark import report
from waggle_lab.reliability import churn, torture
from waggle_lab.security import fuzz

ONES = {
    "runs.jsonl": ({"cell": "tiny", "side": "trl", "commit": "c", "machine": "m", "rounds": [{"round": 1.0}]}, report.read),
    "churn.jsonl": (
        churn.ChurnRun(
            seconds=90, nodes=16, joined=30, departed=20, stuck=1, groups=9, files=0, processes=0, commit="c", machine="m"
        ),
        churn.read,
    ),
    "log.jsonl": (
        fuzz.FuzzRun(
            decoder="invite", ended="then", seconds=1.0, executions=1, coverage=1, corpus=1, findings=(), commit="c", machine="m"
        ),
        fuzz.read,
    ),
    "kills.jsonl": (torture.Kill(target="engine", phase="preparing"), lambda path: torture.read_kills(path.parent)),
}


@pytest.mark.parametrize("name", ONES)
def test_a_torn_line_is_passed_over_and_gives_way_to_the_next(tmp_path, name):
    (line, read), path = ONES[name], tmp_path / "deep" / name
    json_lines_file.append(path, line)
    whole = path.read_bytes()
    for torn in (b"", b"{", whole[:-20], whole[:-1]):
        path.write_bytes(whole + torn)
        assert len(read(path)) == 1
        assert path.read_bytes() == whole + torn, "to read changes nothing: it may be in the middle of being written"
        json_lines_file.append(path, line)
        assert path.read_bytes() == whole * 2


def test_what_another_program_writes_meanwhile_stays(tmp_path):
    path, done = tmp_path / "log.jsonl", Event()
    path.write_bytes(b"0\n" * 2_000_000)  # to be read takes a while

    def write() -> int:
        with path.open("ab", buffering=0) as file:
            return sum(file.write(b"1\n") // 2 for _ in iter(done.is_set, True))

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(write)
        for _ in range(200):
            json_lines_file.append(path, 2)
        done.set()
    assert path.read_bytes().count(b"1\n") == other.result()


@pytest.mark.parametrize("name", ONES)
@pytest.mark.parametrize("content", [b"{}\n", b"\xff\n", b"no book", b'{"keys"'])
def test_what_is_no_such_book_is_refused_and_left_alone(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LabError, match="is not a "):
        ONES[name][1](tmp_path / name)
    assert (tmp_path / name).read_bytes() == content


def test_a_folder_is_no_book(tmp_path):
    with pytest.raises(LabError, match="cannot be read"):
        json_lines_file.read(tmp_path, Run, "a finished run", "--out")
