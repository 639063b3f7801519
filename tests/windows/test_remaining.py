"""The plugin with which a suite is finished in several processes. It runs on every system."""

import os
import subprocess
import sys

from windows.remaining import BEGAN, FAILED, PASSED, SKIPPED, VARIABLE, WHOLE, Results
from windows.rig import REPOSITORY

SUITE = """
import os, pytest
def test_passes(): pass
def test_ends_its_process(): os._exit(1)
@pytest.mark.parametrize("word", ["a b", "c"])
def test_fails(word): assert word == "c"
@pytest.fixture
def broken():
    yield
    raise ValueError
def test_cannot_be_cleaned_up(broken): pass
def test_is_left_out(): pytest.skip("here")
"""


def run_suite(suite, results):
    environment = {**os.environ, VARIABLE: str(results.path), "PYTHONPATH": str(REPOSITORY / "tests")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "windows.remaining", str(suite)]
    return subprocess.run(command, cwd=suite.parent, env=environment, capture_output=True, text=True, check=False).stdout


def test_the_next_process_goes_on_behind_a_test_that_ended_the_first(tmp_path):
    suite, results = tmp_path / "test_suite.py", Results(tmp_path / "results.jsonl")
    suite.write_text(SUITE, encoding="utf-8")
    run_suite(suite, results)
    assert results.read() == {"test_suite.py::test_passes": PASSED, "test_suite.py::test_ends_its_process": BEGAN}
    assert not results.are_whole
    assert "2 deselected" in run_suite(suite, results)
    assert results.are_whole
    of_suite = {name.removeprefix("test_suite.py::"): result for name, result in results.read().items()}
    assert of_suite == {
        "test_passes": PASSED, "test_ends_its_process": BEGAN, "test_fails[a b]": FAILED, "test_fails[c]": PASSED,
        "test_cannot_be_cleaned_up": FAILED, "test_is_left_out": SKIPPED, WHOLE: WHOLE,
    }  # fmt: skip
    results.forget_begun()
    assert "test_suite.py::test_ends_its_process" not in results.read()
    assert results.are_whole
    results.forget_failed()
    assert not results.are_whole
    assert set(results.read().values()) == {PASSED, SKIPPED}
