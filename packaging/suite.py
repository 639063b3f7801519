"""Runs the tests for `dev.py test`: in two parts, and again the tests that a lost worker did not run. Standard library only.

Window tests have their own worker processes: Qt's objects must be freed on their own thread, and other tests start many threads,
any of which may free the remains of a window. So pytest runs twice, first for tests/gui, then for everything else.

A crashed worker is not replaced, because xdist 3.8 may then wait for ever (its issues 1323, 1327 and 1378). A new pytest with
new workers runs its remaining tests after the others of their part.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHER = Path(__file__).with_name("suite_part.py")
PARTS = {"window": "Window tests", "others": "All other tests"}

# Most tests wait for other processes, so two workers take little more than half the time, even on two cores. The order is kept,
# so that the longest files (end_to_end) run early and no worker is alone with one at the end.
WORKERS = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0")

OK, TESTS_FAILED, NO_TESTS = 0, 1, 5  # exit codes of pytest; the others end the suite
STOPPED = (2, 3, 4)  # by Ctrl+C or an error of collection, an internal error, a wrong argument


@dataclass(frozen=True, kw_only=True)
class SuiteRun:
    """The result of one pytest command."""

    code: int
    outcomes: dict[str, str]  # node id of each test that ran -> passed, failed or skipped
    lost_workers: int
    not_run: list[str] | None  # node ids that a lost worker left; None: all, as it was lost before they were known


Python = Callable[..., int]  # runs Python with these arguments; returns its exit code


def run(arguments: Sequence[str], python: Python) -> int:
    """Run both parts with these arguments of pytest; returns pytest's exit code for the two together."""
    began = time.monotonic()
    runs: list[SuiteRun] = []
    for part in PARTS:
        for finished in run_part(part, arguments, python):
            runs.append(finished)
        if runs[-1].code in STOPPED:
            break
    print(summary(runs, time.monotonic() - began), flush=True)
    return exit_code(runs)


def run_part(part: str, arguments: Sequence[str], python: Python) -> Iterator[SuiteRun]:
    """Run a part, then the tests that lost workers did not run, as long as each run leaves fewer."""
    print(f"{PARTS[part]}:", flush=True)
    latest = run_once(part, arguments, python, only=None)
    yield latest
    while latest.lost_workers and latest.not_run != [] and latest.code not in STOPPED:
        remaining = latest.not_run
        print(
            f"{'All' if remaining is None else len(remaining)} tests were not run because a worker was lost. Running them now:",
            flush=True,
        )
        latest = run_once(part, arguments, python, only=remaining)
        yield latest
        if latest.not_run == remaining:
            print("Not run, as workers were lost before any test began:", *(remaining or [PARTS[part]]), sep="\n    ", flush=True)
            return


def run_once(part: str, arguments: Sequence[str], python: Python, *, only: list[str] | None) -> SuiteRun:
    """Run pytest for a part, or only for some of its tests."""
    with tempfile.TemporaryDirectory() as folder:
        report, selection = Path(folder, "report.json"), Path(folder, "selection.json")
        options = [f"--suite-part={part}", f"--suite-report={report}"]  # with `=`: a separate path would change pytest's root
        if only is not None:
            selection.write_text(json.dumps(only), encoding="utf-8")
            options.append(f"--suite-only={selection}")
        code = python(str(LAUNCHER), *WORKERS, *options, *arguments)
        if not report.exists():  # pytest ended early: on purpose if no argument chooses this part
            print("none chosen" if code == NO_TESTS else f"pytest ended with {code}", flush=True)
            return SuiteRun(code=code, outcomes={}, lost_workers=0, not_run=[])
        content = json.loads(report.read_text(encoding="utf-8"))
    collected, ended = content["collected"], frozenset(content["ended"])
    not_run = only if collected is None else [test for test in collected if test not in ended]
    return SuiteRun(
        code=code, outcomes=content["outcomes"], lost_workers=content["lost_workers"],
        not_run=not_run if content["lost_workers"] else [],
    )  # fmt: skip


def summary(runs: Sequence[SuiteRun], seconds: float) -> str:
    """The last line of the suite: the totals of all its runs."""
    outcomes = Counter(outcome for run in runs for outcome in run.outcomes.values())
    figures = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))
    return f"Suite: {figures}, {sum(run.lost_workers for run in runs)} workers lost in {seconds:.0f} s"


def exit_code(runs: Sequence[SuiteRun]) -> int:
    """A part without tests is no failure if the other one has some; a lost worker always is."""
    codes = [run.code for run in runs if run.code != NO_TESTS]
    if any(codes):
        return next(code for code in codes if code)
    if any(run.lost_workers for run in runs):
        return TESTS_FAILED
    return OK if codes else NO_TESTS
