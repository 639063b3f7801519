"""Children that get no CPU time or never end: how long requests wait, and whose fault it is."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from waggle.core.errors import VerifierGone
from waggle.tasks.questions import QuestionKey
from waggle.tasks.rollout_group import Completion, Verdict
from waggle.tasks.sandbox import messages
from waggle.tasks.sandbox import verifier as verifying
from waggle.tasks.sandbox.child_process import ChildProcess
from waggle.tasks.sandbox.verifier import Verifier, datasets_of
from waggle.tasks.shipped_swarms import first_swarm

LONG = "x" * 200_000  # more than a pipe takes
ENDLESS = """
from waggle.tasks.sandbox import template_process, verifier_process

def endless(*_):
    while True:
        pass

verifier_process.SECONDS = template_process.SECONDS = 0.5
verifier_process.CharterDatasets.answer, template_process.render = endless, endless
verifier_process.main() if {verifier} else template_process.main()
"""
NEVER = 600.0
SOON = 60.0

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows stops no process")


@pytest.fixture
def own() -> Iterator[Verifier]:
    """A verifier that a test may suspend and kill."""
    own_verifier = Verifier(first_swarm())
    yield own_verifier
    own_verifier.close()


@pytest.fixture
def ask(own) -> Callable[[], list[Verdict]]:
    """Judge a right answer of a peer."""
    (question,), (answer,) = own.questions([QuestionKey("bf", 3)]), own.answers([QuestionKey("bf", 3)])
    return lambda: own.judge_strangers([(question, Completion(text=f"<answer>{answer}</answer>", ended=True))])


@pytest.mark.parametrize("verifier", [True, False])
def test_a_child_whose_work_has_no_end_ends_though_nobody_is_left_who_ends_it(verifier):
    requests = (
        [messages.Prepare(()), messages.GenerateAnswers([QuestionKey("bf", 1)])]
        if verifier
        else [messages.RenderTemplate("", {}, ())]
    )
    frames = b"".join(messages.frame_of(request) for request in requests)
    command = [sys.executable, "-c", ENDLESS.format(verifier=verifier)]
    child = subprocess.run(command, input=frames, stdout=subprocess.DEVNULL, check=False, timeout=SOON)
    assert child.returncode == -signal.SIGALRM


def test_a_child_that_gets_no_processor_for_longer_than_a_text_may_work_judges_it_all_the_same(own, ask, monkeypatch):
    monkeypatch.setattr(verifying, "STRANGERS_SECONDS", 0.5)
    first = own.pid
    os.kill(first, signal.SIGSTOP)
    going_on = threading.Timer(1.5, os.kill, (first, signal.SIGCONT))
    going_on.start()
    assert ask()[0].reward == 1.0
    going_on.join()
    assert own.pid == first


def test_nobody_is_to_blame_for_a_child_that_gets_no_processor_at_all(own, ask, monkeypatch):
    first = own.pid
    with monkeypatch.context() as hurried:
        hurried.setattr(verifying, "BATCH_SECONDS", 0.5)
        os.kill(first, signal.SIGSTOP)
        with pytest.raises(VerifierGone, match="no answer within"):
            ask()
    assert ask()[0].reward == 1.0
    assert own.pid != first


def test_a_frozen_child_that_reads_no_long_request_is_not_waited_for_beyond_the_limit():
    asking: ChildProcess[messages.Reply] = ChildProcess("waggle.tasks.sandbox.verifier_process", messages.reply)
    rescue = threading.Timer(SOON, asking.process.kill)
    try:
        asking.ask(messages.Prepare(datasets_of(first_swarm())[:1]), NEVER)
        os.kill(asking.process.pid, signal.SIGSTOP)
        rescue.start()
        with pytest.raises(TimeoutError):
            asking.ask(messages.Judge([(QuestionKey("bf", 3), LONG, True)]), 0.5)
        assert asking.process.poll() is not None
    finally:
        rescue.cancel()
        asking.end()


def test_whoever_closes_the_verifier_waits_for_no_reply(own, monkeypatch):
    monkeypatch.setattr(verifying, "BATCH_SECONDS", NEVER)
    question = own.questions([QuestionKey("bf", 3)])[0]
    os.kill(own.pid, signal.SIGSTOP)
    rescue = threading.Timer(SOON, os.kill, (own.pid, signal.SIGCONT))
    rescue.start()
    with ThreadPoolExecutor() as others:
        pending = others.submit(own.judge, [(question, Completion(text=LONG, ended=True))])
        while own._lock.acquire(blocking=False):  # it is asked while a thread is within
            own._lock.release()
        own.close()
        rescue.cancel()
        with pytest.raises(VerifierGone, match="was closed"):
            pending.result()
