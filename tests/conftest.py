"""Fixtures for all tests, and the rule that a warning in the log fails a test."""

import contextlib
import json
import logging
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from waggle.core.errors import SwarmError
from waggle.network.transport.availability import has_hivemind
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

# Tests must not depend on the settings of this computer: its language, a proxy, another hub.
for name in tuple(os.environ):
    if name.lower().endswith("_proxy") or name.startswith("HF_"):
        del os.environ[name]
os.environ["LC_ALL"] = "C.UTF-8"

# A script that runs tests in the background has them ignore Ctrl+C, and so would all programs to which tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Some tests import peft as a user of an export does. It imports bitsandbytes, which warns then; the app imports both quietly.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

# The same examples in every run, on a computer of any speed: the fuzzer looks for new ones (`waggle-lab fuzz`).
settings.register_profile("waggle", derandomize=True, deadline=None)
settings.load_profile("waggle")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", type=Path, help="write what the tests measured to this file, as JSON")


@pytest.fixture(scope="session", autouse=True)
def isolated_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep tests that name no home away from the developer's own home."""
    os.environ["WAGGLE_HOME"] = str(tmp_path_factory.mktemp("unused") / "home")


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> Iterator[dict[str, float | str]]:
    """Tests put their measurements here."""
    measured: dict[str, float | str] = {}
    yield measured
    if path := pytestconfig.getoption("--figures"):
        path.write_text(json.dumps(measured, indent=2))


@pytest.fixture(scope="session")
def verifier() -> Iterator[Verifier]:
    """A real verifier under the charter that ships with Waggle."""
    own_verifier = Verifier(first_swarm())
    yield own_verifier
    own_verifier.close()


@pytest.fixture(autouse=True)
def quiet_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test that logs at WARNING or above."""
    yield
    loud = [record for record in caplog.get_records("call") if record.levelno >= logging.WARNING and record.name != "asyncio"]
    assert not loud, [record.getMessage() for record in loud]


@pytest.fixture(autouse=True)
def same_priority() -> Iterator[None]:
    """Fail a test that changes the priority of this process, because all later tests would run with it."""
    before = psutil.Process().nice()
    yield
    after = psutil.Process().nice()
    if after != before:
        with contextlib.suppress(psutil.AccessDenied):
            psutil.Process().nice(before)
    assert after == before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Skip tests that need hivemind where it is not installed: there a node uses gateways."""
    yield from _skipping_without_hivemind()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """The same during the test itself."""
    yield from _skipping_without_hivemind()


def _skipping_without_hivemind() -> Generator[None]:
    try:
        return (yield)
    except SwarmError as missing:
        if has_hivemind() or "network part is missing" not in missing.title:
            raise
        pytest.skip("hivemind is not installed here")
