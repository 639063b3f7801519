"""What every test may ask for, and the rule that a warning in the log fails a test."""

import contextlib
import json
import logging
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from waggle.core.errors import SwarmError
from waggle.network.transport.availability import has_hivemind
from waggle.tasks.charter import first_swarm
from waggle.tasks.sandbox.verifier import Verifier

# What this computer is set to is no part of a test: its language, a way out through a proxy, a hub of one's own.
for name in tuple(os.environ):
    if name.lower().endswith("_proxy") or name.startswith("HF_"):
        del os.environ[name]
os.environ["LC_ALL"] = "C.UTF-8"

# The same examples in every run, however slow the computer: looking for new ones is the fuzzer's work (`waggle-lab fuzz`).
settings.register_profile("waggle", derandomize=True, deadline=None)
settings.load_profile("waggle")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", type=Path, help="write what the tests measured to this file, as JSON")


@pytest.fixture(scope="session", autouse=True)
def nobodys_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A test that names no home has not that of whoever runs it: their settings would hold, and their files be touched."""
    os.environ["WAGGLE_HOME"] = str(tmp_path_factory.mktemp("nobody") / "home")


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> Iterator[dict[str, float | str]]:
    """Tests put their figures here."""
    measured: dict[str, float | str] = {}
    yield measured
    if path := pytestconfig.getoption("--figures"):
        path.write_text(json.dumps(measured, indent=2))


@pytest.fixture(scope="session")
def verifier() -> Iterator[Verifier]:
    """The real one, under the charter that ships with Waggle."""
    own_verifier = Verifier(first_swarm())
    yield own_verifier
    own_verifier.close()


@pytest.fixture(autouse=True)
def quiet_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A log line at WARNING or above fails the test that caused it."""
    yield
    loud = [record for record in caplog.get_records("call") if record.levelno >= logging.WARNING and record.name != "asyncio"]
    assert not loud, [record.getMessage() for record in loud]


@pytest.fixture(autouse=True)
def same_priority() -> Iterator[None]:
    """A test that gives way, as an engine does, would have all that come after it give way."""
    before = psutil.Process().nice()
    yield
    after = psutil.Process().nice()
    if after != before:
        with contextlib.suppress(psutil.AccessDenied):
            psutil.Process().nice(before)
    assert after == before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Where hivemind is not installed, what needs it is skipped: there, a node takes part through gateways."""
    yield from _skipping_without_hivemind()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """The same within the test."""
    yield from _skipping_without_hivemind()


def _skipping_without_hivemind() -> Generator[None]:
    try:
        return (yield)
    except SwarmError as missing:
        if has_hivemind() or "network part is missing" not in missing.title:
            raise
        pytest.skip("hivemind is not installed here")
