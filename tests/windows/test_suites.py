"""What applies on Windows of Waggle's own tests, run there under Wine. What has a result already is not run again."""

import subprocess
import time

import pytest

from windows.reasons import OURS, reason
from windows.remaining import BEGAN, FAILED, PASSED, VARIABLE, Results, names
from windows.rig import PYTHON_PROGRAM

pytestmark = [pytest.mark.windows, pytest.mark.timeout(1800)]

SUITES = (
    "rl", "protocol", "core", "network/identity", "cli", "packaging", "engine/control", "engine/storage", "engine/runtime",
    "engine/system", "engine/services", "gui/i18n", "gui/state", "gui/theme", "gui/charts", "gui/engine_client", "gui/widgets",
    "gui/application", "gui/pages",
)  # fmt: skip
SUITE_SECONDS = 600.0  # most of a suite at a time; what is not finished is said, and goes on the next time


@pytest.mark.parametrize("suite", SUITES)
def test_what_applies_of_a_suite_passes_there(rig, results_folder, figures, suite):
    name = f"{suite.replace('/', '-')}.jsonl"
    results = Results(results_folder / name)
    run(rig, results, suite)
    noted = results.read()
    failed = sorted({short(test) for test in names(noted, FAILED, BEGAN)})
    figures["tests_passed"] = figures.get("tests_passed", 0) + len(list(names(noted, PASSED)))
    figures["tests_failed"] = figures.get("tests_failed", 0) + len(failed)
    for failure in failed:
        figures[f"failed {failure}"] = reason(failure) or OURS
    if not results.are_whole:
        figures[f"not finished {suite}"] = f"after {SUITE_SECONDS:.0f} s"
    assert noted
    assert not [failure for failure in failed if reason(failure) is None]


def run(rig, results: Results, suite: str) -> None:
    """Run what has no result yet, within the time; on behind a test that ended the process, as its time limit does there."""
    deadline = time.monotonic() + SUITE_SECONDS
    reporting = ("-vv", "-p", "no:cacheprovider", "-p", "windows.remaining", "--tb", "short", "--timeout", "300")
    places = ("--rootdir", r"C:\waggle", "-c", r"C:\waggle\pyproject.toml", "--basetemp", r"C:\temporary")
    whatever_fails = "--continue-on-collection-errors"
    command = (PYTHON_PROGRAM, "-m", "pytest", *reporting, whatever_fails, *places, rf"C:\waggle\tests\{suite}")
    environment = {"QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": r"C:\waggle\app;C:\waggle\tests"}
    environment[VARIABLE] = rf"C:\{results.path.relative_to(rig.drive)}"
    with (rig.root / f"{suite.replace('/', '-')}.txt").open("a", encoding="utf-8", errors="replace") as output:
        while not results.are_whole:
            before = results.read()
            testing = rig.start(*command, output=output, **environment)
            try:
                testing.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                rig.end_programs()
                testing.kill()
                testing.wait()
                results.forget_begun()
                return
            if results.read() == before:
                pytest.fail(f"pytest ended with {testing.returncode} before any test: see {output.name}")


def short(name: str) -> str:
    return name.replace("\\", "/").rpartition("tests/")[2]
