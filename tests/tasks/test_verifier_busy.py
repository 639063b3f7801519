"""Children that get no processor, or no end: who waits how long for them, and who is to blame."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from waggle.errors import VerifierGone
from waggle.tasks import verifier as verifying
from waggle.tasks import wire
from waggle.tasks.charter import first_swarm
from waggle.tasks.child import Child
from waggle.tasks.group import Completion
from waggle.tasks.verifier import Verifier

LONG = "x" * 200_000  # more than a pipe takes
NEVER = 600.0
SOON = 60.0

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows stops no process")


@pytest.fixture
def own() -> Iterator[Verifier]:
    """A verifier that this test may stop and end."""
    made = Verifier(first_swarm())
    yield made
    made.close()


def test_a_frozen_child_that_reads_no_long_request_is_not_waited_for_beyond_the_limit():
    asking: Child[wire.Reply] = Child("waggle.tasks.verifier_child", wire.reply)
    rescue = threading.Timer(SOON, asking.process.kill)
    try:
        asking.ask(wire.Warm(first_swarm().specialties[:1]), NEVER)
        os.kill(asking.process.pid, signal.SIGSTOP)
        rescue.start()
        with pytest.raises(TimeoutError):
            asking.ask(wire.Judge([("bf", 3, LONG, True)]), 0.5)
        assert asking.process.poll() is not None
    finally:
        rescue.cancel()
        asking.end()


def test_whoever_closes_the_verifier_waits_for_no_reply(own, monkeypatch):
    monkeypatch.setattr(verifying, "BATCH_SECONDS", NEVER)
    question = own.questions([("bf", 3)])[0]
    os.kill(own.pid, signal.SIGSTOP)
    rescue = threading.Timer(SOON, os.kill, (own.pid, signal.SIGCONT))
    rescue.start()
    with ThreadPoolExecutor() as others:
        asked = others.submit(own.judge, [(question, Completion(text=LONG, ended=True))])
        while own._lock.acquire(blocking=False):  # it is asked while a thread is within
            own._lock.release()
        own.close()
        rescue.cancel()
        with pytest.raises(VerifierGone, match="was closed"):
            asked.result()
