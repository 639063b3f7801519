"""Test that limits hold, and change while the engine runs."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
import torch

import waggle
from waggle.core import paths
from waggle.core.errors import Stopped
from waggle.core.settings import ComputerSettings
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.system import resource_limits
from waggle.models import backend
from waggle.models.backend import open_policy
from waggle.rl.batch import nothing


class Hours:
    """A clock that each reading advances."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def rests(percent: int, step: float, passes: int) -> list[float]:
    """The seconds that a gate makes its caller rest, when each step takes so long."""
    gate, percentages = PauseGate(nothing, clock=Hours(step)), []
    gate.set_percent(percent)
    gate._condition.wait_for = lambda _ends, seconds: percentages.append(seconds)
    for _ in range(passes):
        gate()
    return percentages


@pytest.mark.parametrize(("percent", "rest"), [(50, 1.0), (25, 3.0), (80, 0.25)])
def test_of_the_time_so_many_percent_are_worked(percent, rest):
    assert rests(percent, 1.0, 5) == pytest.approx([rest] * 4)


def test_all_of_the_time_is_no_rest_and_short_rests_are_saved_up():
    assert rests(100, 1.0, 5) == []
    assert rests(50, 0.004, 10) == pytest.approx([0.012] * 3)


def test_nobody_rests_for_an_hour_after_one_long_step():
    assert rests(50, 3600.0, 2) == [60.0]


def test_of_the_time_neither_a_pause_counts_nor_more_than_a_little_of_a_night_asleep():
    waits, clock = threading.Event(), Hours(0.0)
    gate = PauseGate(waits.set, clock=clock)
    gate()
    clock.now = 5.0
    assert gate.worked_seconds == 5.0
    gate.close()
    passing = threading.Thread(target=gate)
    passing.start()
    assert waits.wait(60)
    clock.now = 1000.0
    assert gate.worked_seconds == 5.0, "also while it lasts"
    gate.open()
    passing.join()
    assert gate.worked_seconds == 5.0
    clock.now += 8 * 3600.0
    assert gate.worked_seconds == 605.0
    gate()
    clock.now += 3.0
    assert gate.worked_seconds == 608.0


def test_neither_a_download_nor_waiting_for_a_disk_counts_as_work():
    clock = Hours(0.0)
    gate = PauseGate(nothing, clock=clock)
    gate.wait_until_open()
    clock.now = 100.0
    assert gate.worked_seconds == 0.0
    gate()
    clock.now = 103.0
    gate.sleep(0.0)
    clock.now = 200.0
    assert gate.worked_seconds == 3.0


def test_more_of_the_time_ends_a_rest_that_less_of_it_owed():
    gate = PauseGate(nothing, clock=Hours(50.0))
    gate.set_percent(5)
    gate()
    working = threading.Thread(target=gate)
    working.start()
    working.join(0.1)
    assert working.is_alive(), "it rests for a quarter of an hour"
    gate.set_percent(100)
    working.join(60)
    assert not working.is_alive()


def test_a_stop_ends_a_rest_at_once():
    gate = PauseGate(nothing, clock=Hours(50.0))
    gate.set_percent(5)
    gate()
    stopped = []

    def work() -> None:
        with pytest.raises(Stopped):
            gate()
        stopped.append(True)

    ended = threading.Thread(target=work)
    ended.start()
    gate.stop()
    ended.join(60)
    assert stopped == [True]


@pytest.mark.skipif(sys.platform == "win32", reason="niceness is unix's")
def test_a_priority_holds_for_every_thread_and_child_and_says_where_it_cannot_go_back_up():
    code = """
import os, subprocess, sys, threading
from waggle.engine.system.resource_limits import set_priority
ends = threading.Event()
other = threading.Thread(target=ends.wait); other.start()
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
lowered = set_priority("lowest")
print(lowered, os.getpriority(os.PRIO_PROCESS, other.native_id), os.getpriority(os.PRIO_PROCESS, child.pid))
print(set_priority("normal") == (os.getpriority(os.PRIO_PROCESS, 0) == 0))
child.communicate(b"x"); ends.set()
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(waggle.__file__).parents[1])}
    outcome = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["True", "19", "19", "True"]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is but one core")
@pytest.mark.skipif(sys.platform == "win32", reason="niceness is unix's")
def test_a_thread_that_has_just_ended_keeps_no_other_from_its_priority(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as living:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        monkeypatch.setattr(resource_limits, "_threads", lambda process: [ended.pid, process.pid])
        assert resource_limits._set_niceness(psutil.Process(living.pid), "lowest")
        assert os.getpriority(os.PRIO_PROCESS, living.pid) == resource_limits.NICENESS["lowest"]
        living.kill()


def test_all_is_kept_before_another_number_of_threads_learns(monkeypatch):
    monkeypatch.setattr(backend, "usable_cores", lambda: 2)
    before = torch.get_num_threads()
    opened = open_policy(paths.starter(), device="cpu", threads=1)
    settled: list[int] = []
    limits = resource_limits.ResourceLimits(
        PauseGate(nothing), opened, lambda _: None, lambda: settled.append(torch.get_num_threads())
    )
    limits.computer = ComputerSettings(threads=1)
    limits.before_round()
    assert settled == []
    limits.computer = ComputerSettings(threads=2)
    limits.before_round()
    assert (settled, torch.get_num_threads()) == ([1], 2)
    torch.set_num_threads(before)
