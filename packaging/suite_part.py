#!/usr/bin/env python3
"""Runs one part of the tests and writes their outcomes: `suite_part.py --suite-part window [arguments of pytest]`.

It launches pytest and is its plugin, which deselects the tests of the other part, also in the workers. `suite.py` calls it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

WINDOW_TESTS = "tests/gui"  # below pytest's root: all tests that create Qt objects in their process
SEVERITY = ("passed", "skipped", "failed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--suite-part", choices=("window", "others"), help=f"only what is in {WINDOW_TESTS}, or all else")
    parser.addoption("--suite-only", type=Path, help="only the node ids in this JSON file")
    parser.addoption("--suite-report", type=Path, help="write what was collected, run and lost to this JSON file")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Keep the arguments of this part; without any, start no worker."""
    config.args = list(_arguments_of_part(config))
    return None if config.args else pytest.ExitCode.NO_TESTS_COLLECTED


def _arguments_of_part(config: pytest.Config) -> Iterable[str]:
    window, is_window = config.rootpath / WINDOW_TESTS, config.getoption("suite_part") == "window"
    for argument in config.args:
        path = Path(os.path.normpath(config.invocation_params.dir / argument.split("::")[0]))
        if path.is_relative_to(window):
            yield from [argument] if is_window else []
        elif not is_window:
            yield argument
        elif window.is_relative_to(path) and window.exists():
            yield str(window)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Keep the workers of other tests from importing window tests."""
    return (collection_path == config.rootpath / WINDOW_TESTS and config.getoption("suite_part") == "others") or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if selection := config.getoption("suite_only"):
        names = frozenset(json.loads(selection.read_text(encoding="utf-8")))
        items[:] = [item for item in items if item.nodeid in names]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail a test of the other part that starts Qt: all later tests of its worker would share the process with it."""
    qt = sys.modules.get("PySide6.QtCore")
    if item.config.getoption("suite_part") == "others" and qt is not None and qt.QCoreApplication.instance() is not None:
        pytest.fail(f"A Qt application was started in this process; such a test belongs in {WINDOW_TESTS}.", pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    if (path := config.getoption("suite_report")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Report(path))


class Report:
    """Records, in the main process of pytest, which tests were collected, which ended, and how."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._collected: list[str] | None = None
        self._ended: dict[str, None] = {}
        self._outcomes: dict[str, str] = {}
        self._lost_workers = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Called only without workers."""
        self._collected = [item.nodeid for item in session.items]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._collected = list(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst of a test's reports: three in general, one after a crash."""
        before = self._outcomes.get(report.nodeid, "passed")
        self._outcomes[report.nodeid] = max(before, report.outcome, key=SEVERITY.index)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._ended[nodeid] = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str) -> None:
        """The test that crashed its worker has ended, too: xdist reports it as failed."""
        self._ended[crashitem] = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object | None) -> None:
        if error not in (None, "keyboard-interrupt"):
            self._lost_workers += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        ended = (self._collected or []) if session.config.getoption("maxfail") else self._ended  # -x: one is enough
        content = {
            "collected": self._collected, "ended": list(ended), "outcomes": self._outcomes, "lost_workers": self._lost_workers,
        }  # fmt: skip
        self._path.write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(pytest.main(["-p", Path(__file__).stem, *sys.argv[1:]]))
