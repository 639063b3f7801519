"""Test that the policy thread does errands for other threads at the gate, where it passes, waits, rests and sleeps."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from waggle.core.errors import Stopped
from waggle.engine.runtime.pause_gate import MAX_WORK_SECONDS, PauseGate

SOON = 60.0  # seconds


@pytest.fixture
def waits() -> threading.Event:
    return threading.Event()


@pytest.fixture
def gate(waits) -> PauseGate:
    return PauseGate(waits.set)


@pytest.fixture
def policy_thread(gate) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool
        gate.stop()


def passes(gate: PauseGate, ready: threading.Event) -> None:
    """What the policy thread does all the time. Ends with the gate."""
    with suppress(Stopped):
        while True:
            gate()
            ready.set()


def test_an_errand_is_done_by_the_policy_thread_at_its_next_pass(gate, policy_thread):
    name = policy_thread.submit(threading.get_ident).result()
    policy_thread.submit(passes, gate, threading.Event())
    assert gate.submit(threading.get_ident).result(SOON) == name


def test_an_errand_is_done_while_the_gate_is_closed_and_the_gate_stays_closed(gate, waits, policy_thread):
    gate.close()
    passed = threading.Event()
    policy_thread.submit(passes, gate, passed)
    assert waits.wait(SOON)
    for _ in range(3):
        assert gate.submit(lambda: "done").result(SOON) == "done"
    assert not passed.is_set()
    gate.open()
    assert passed.wait(SOON)


def test_an_errand_waits_for_its_moment_at_a_pass_but_not_at_a_closed_gate(gate, waits, policy_thread):
    ready, passed = threading.Event(), threading.Event()
    policy_thread.submit(passes, gate, passed)
    waiting = gate.submit(ready.is_set, ready.is_set)
    assert passed.wait(SOON)
    passed.clear()
    assert passed.wait(SOON), "it goes on passing"
    assert not waiting.done()
    ready.set()
    assert waiting.result(SOON) is True
    ready.clear()
    waiting = gate.submit(ready.is_set, ready.is_set)
    gate.close()
    assert waiting.result(SOON) is False


def test_an_errand_is_done_while_the_thread_rests_and_while_it_sleeps(gate, policy_thread):
    gate.set_percent(5)
    rests, now = threading.Event(), [0.0]
    gate._clock = lambda: now[0]

    def work_and_rest() -> None:
        gate()
        now[0] += MAX_WORK_SECONDS  # work, for which it owes far more rest than a test waits
        rests.set()
        gate()

    resting = policy_thread.submit(work_and_rest)
    assert rests.wait(SOON)
    assert gate.submit(lambda: "done").result(SOON) == "done"
    resting.result(SOON)
    sleeping = policy_thread.submit(gate.sleep, 3600.0)
    assert [gate.submit(partial(int, number)).result(SOON) for number in range(3)] == [0, 1, 2]
    gate.stop()
    with pytest.raises(Stopped):
        sleeping.result(SOON)


def test_a_download_that_waits_at_the_gate_does_no_errand_of_the_policy_thread(gate, waits, policy_thread):
    name = policy_thread.submit(threading.get_ident).result()
    policy_thread.submit(gate).result()
    gate.close()
    with ThreadPoolExecutor(2) as downloads:
        waiting, sleeping = downloads.submit(gate.wait_until_open), downloads.submit(gate.sleep, 0.2)
        assert waits.wait(SOON)
        errand = gate.submit(threading.get_ident)
        sleeping.result(SOON)
        assert not errand.done()
        policy_thread.submit(gate)
        assert errand.result(SOON) == name
        gate.open()
        waiting.result(SOON)


def test_what_fails_in_an_errand_fails_for_the_one_who_asked(gate, policy_thread):
    policy_thread.submit(passes, gate, threading.Event())

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        gate.submit(fail).result(SOON)
    assert gate.submit(lambda: 1).result(SOON) == 1


def test_a_stop_answers_every_errand(gate):
    waiting = gate.submit(lambda: 1)
    gate.stop()
    for errand in (waiting, gate.submit(lambda: 2)):
        with pytest.raises(Stopped):
            errand.result(SOON)
