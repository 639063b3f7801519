"""A plugin of pytest that runs what has no result yet, and notes each result at once: `pytest -p windows.remaining SUITE`.

The environment names the file of the results. A test that ended its process counts as run: the next process goes on behind it.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

VARIABLE = "WAGGLE_RESULTS"
BEGAN, PASSED, FAILED, SKIPPED = "began", "passed", "failed", "skipped"
WHOLE = "whole"  # in place of a test: all of them were run
ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)  # in order


class Results:
    """The results in a file, with a line for each: the last one of a test counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, test: str, result: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([test, result]) + "\n")

    def read(self) -> dict[str, str]:
        if not self.path.exists():
            return {}
        return dict(map(json.loads, self.path.read_text(encoding="utf-8").splitlines()))

    @property
    def are_whole(self) -> bool:
        return WHOLE in self.read()

    def forget_begun(self) -> None:
        """Let those tests run again that somebody ended in their midst."""
        self._keep({test: result for test, result in self.read().items() if result != BEGAN})

    def forget_failed(self) -> None:
        """Let those tests run again that failed or ended their process."""
        self._keep({test: result for test, result in self.read().items() if result in (PASSED, SKIPPED)})

    def _keep(self, results: dict[str, str]) -> None:
        self.path.unlink(missing_ok=True)
        for test, result in results.items():
            self.add(test, result)


class Plugin:
    """Leaves out of a session what has a result, and adds its results."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        done = self._results.read().keys()
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
        items[:] = [item for item in items if item.nodeid not in done]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._results.add(report.nodeid, FAILED)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._results.add(nodeid, BEGAN)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self._results.path.with_suffix(".txt").open("a", encoding="utf-8") as reasons:
                reasons.write(f"{report.nodeid}, {report.when}:\n{report.longreprtext}\n\n")
        if report.failed or report.skipped:
            self._results.add(report.nodeid, FAILED if report.failed else SKIPPED)
        elif report.when == "call":
            self._results.add(report.nodeid, PASSED)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus in ENDED:
            self._results.add(WHOLE, WHOLE)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Plugin(Results(Path(os.environ[VARIABLE]))))


def names(results: dict[str, str], *kinds: str) -> Iterable[str]:
    """The tests with these results."""
    return (test for test, result in results.items() if result in kinds)
