"""The test command runs window tests in their own processes, and loses no test with a worker."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import suite

WRITES = """
import os, signal, pytest

@pytest.fixture(autouse=True)
def write_down(request):
    with open("ran", "a") as ran:
        print(os.getpid(), request.node.nodeid, file=ran)
"""
PASSES = "def test_{}(): pass\n"
EXITS = "def test_exits(): os._exit(0)\n"  # the worker counts as lost, although it exits with 0
CRASHES = "def test_crashes(): os.kill(os.getpid(), signal.SIGSEGV)\n"


class Tree:
    """A temporary project with tests; `run` is `dev.py test` in it, without set-up and lint."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.output = ""
        (root / "pytest.ini").write_text("[pytest]\ntestpaths = tests\naddopts = -q -p no:cacheprovider -p xdist\n")

    def add(self, name: str, *tests: str) -> None:
        path = self.root / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WRITES + "".join(PASSES.format(test) if test.isidentifier() else test for test in tests))

    def run(self, *arguments: str) -> int:
        return suite.run(arguments, self._python)

    def _python(self, *arguments: str) -> int:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # only xdist is needed, and the other plugins take seconds to load
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=240, check=False)
        self.output += done.stdout
        return done.returncode

    def ran(self) -> list[tuple[str, str]]:
        """Process and test, in order."""
        lines = (self.root / "ran").read_text().splitlines() if (self.root / "ran").exists() else []
        return [(process, test) for process, _, test in (line.partition(" ") for line in lines)]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="signals do not end processes there")
def test_a_lost_worker_fails_the_run_and_every_other_test_is_run(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("gui/test_window.py", "first", EXITS, "last")
    tree.add("gui/test_page.py", "page")
    tree.add("test_crashing.py", "before", CRASHES, "after")
    for number in range(5):
        tree.add(f"test_{number}.py", *(f"{word}_{number}" for word in ("one", "two", "three")))

    assert tree.run() == suite.TESTS_FAILED

    times = Counter(test for _, test in tree.ran())
    crashed = {"tests/gui/test_window.py::test_exits", "tests/test_crashing.py::test_crashes"}
    assert len(times) == 4 + 3 + 15
    assert {test for test, count in times.items() if count > 1} <= crashed
    for test in crashed:
        assert f"crashed while running '{test}'" in tree.output
    assert "Suite: 20 passed, 2 failed, 0 skipped, " in capsys.readouterr().out.splitlines()[-1]


def test_no_process_runs_window_tests_and_others(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        tree.add(f"gui/test_{number}.py", "one", "two")
        tree.add(f"other/test_{number}.py", "one", "two")

    assert tree.run() == suite.OK

    window, others = (
        {process for process, test in tree.ran() if test.startswith("tests/gui/") == part} for part in (True, False)
    )
    assert window
    assert others
    assert window.isdisjoint(others)
    assert capsys.readouterr().out.splitlines()[-1].startswith("Suite: 12 passed, 0 failed, 0 skipped, 0 workers lost in ")


def test_workers_lost_before_any_test_began_fail_the_run_and_the_other_part_is_run(
    tree: Tree, capsys: pytest.CaptureFixture[str]
) -> None:
    tree.add("gui/test_window.py", "os._exit(0)\n")
    tree.add("test_other.py", "other")
    assert tree.run() == suite.TESTS_FAILED
    assert [test for _, test in tree.ran()] == ["tests/test_other.py::test_other"]
    assert "Not run, as workers were lost before any test began:\n    Window tests\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "ran", "code"),
    [
        (["tests/gui/test_window.py::test_one"], ["tests/gui/test_window.py::test_one"], suite.OK),
        (["tests/test_other.py"], ["tests/test_other.py::test_one", "tests/test_other.py::test_two"], suite.OK),
        (["-k", "two", "tests"], ["tests/gui/test_window.py::test_two", "tests/test_other.py::test_two"], suite.OK),
        (["-k", "three"], ["tests/gui/test_window.py::test_three"], suite.OK),
        (["-k", "four"], [], suite.NO_TESTS),
    ],
)
def test_what_arguments_choose_is_run_in_whichever_part_it_is(
    tree: Tree, arguments: list[str], ran: list[str], code: int
) -> None:
    tree.add("gui/test_window.py", "one", "two", "three")
    tree.add("test_other.py", "one", "two")
    assert tree.run("-n", "0", *arguments) == code
    assert [test for _, test in tree.ran()] == ran


def test_a_wrong_argument_ends_the_suite_at_once(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("gui/test_window.py", "one")
    tree.add("test_other.py", "one")
    assert tree.run("--no-such-option") == 4
    assert suite.PARTS["others"] not in capsys.readouterr().out


def test_a_test_that_starts_qt_belongs_to_the_window_s(tree: Tree) -> None:
    starts = "def test_starts():\n    from PySide6.QtCore import QCoreApplication\n    QCoreApplication([])\n"
    tree.add("gui/test_window.py", starts)
    tree.add("test_other.py", starts)
    assert tree.run("-n", "0") == suite.TESTS_FAILED
    assert "A Qt application was started in this process; such a test belongs in tests/gui." in tree.output
    assert "ERROR tests/test_other.py::test_starts" in tree.output
    assert "ERROR tests/gui" not in tree.output
