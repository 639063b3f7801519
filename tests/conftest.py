"""What every test may ask for, and the rule that a warning in the log fails a test."""

import logging
from collections.abc import Iterator

import pytest
from hypothesis import settings

from waggle.tasks.charter import first_swarm
from waggle.tasks.verifier import Verifier

# The same examples in every run, however slow the computer: looking for new ones is the fuzzer's work (`waggle lab fuzz`).
settings.register_profile("waggle", derandomize=True, deadline=None)
settings.load_profile("waggle")


@pytest.fixture(scope="session")
def verifier() -> Iterator[Verifier]:
    """The real one, under the charter that ships with Waggle."""
    made = Verifier(first_swarm())
    yield made
    made.close()


@pytest.fixture(autouse=True)
def quiet_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A log line at WARNING or above fails the test that caused it."""
    yield
    loud = [record for record in caplog.get_records("call") if record.levelno >= logging.WARNING and record.name != "asyncio"]
    assert not loud, [record.getMessage() for record in loud]
