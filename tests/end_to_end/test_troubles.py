"""A home computer sleeps, or loses its network, clock or memory: a real engine reports it and recovers.

`python3 tests/measured/troubles.py` records the sentences that a user reads meanwhile.
"""

import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from end_to_end.programs import WAGGLE, Engine, Seed, running
from hostile.partition import HOST_A, HOST_B, network, why_not
from waggle.protocol import events
from waggle.protocol.text.status_text import sentence

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="stops, disconnects and limits processes with tools of Linux"),
]

SOON = 180.0
SLEEP = 60.0  # seconds
DAYS = 2
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
MEGABYTES = 8  # that the engine may still allocate: less than a round takes


@contextmanager
def two(folder: Path, **environment: str) -> Iterator[tuple[Engine, Engine]]:
    """Two engines that have received groups from each other; `environment` is for the first."""
    with ExitStack() as stack:
        seed = stack.enter_context(running(Seed(folder / "seed")))
        settings = ("swarm.host=127.0.0.1", f'swarm.seeds=["{seed.address()}"]')
        observed = stack.enter_context(running(Engine(folder / "one", *settings, environment=environment)))
        other = stack.enter_context(running(Engine(folder / "other", *settings)))
        hear_each_other(observed, other)
        yield observed, other


def hear_each_other(engine: Engine, other: Engine, starts: tuple[int, int] = (0, 0)) -> float:
    """Wait until each has groups of the other; returns the later time."""
    return max(first_groups_at(engine, other, starts[0]), first_groups_at(other, engine, starts[1]))


def first_groups_at(engine: Engine, peer: Engine, start: int) -> float:
    name = peer.wait(events.Ready, SOON).node
    engine.wait(events.PeerGroupsArrived, SOON, lambda event: event.origin == name, start)
    return next(
        at for at, event in engine.timed()[start:] if isinstance(event, events.PeerGroupsArrived) and event.origin == name
    )


def places(*engines: Engine) -> tuple[int, ...]:
    return tuple(len(engine.lines) for engine in engines)


def says(engine: Engine) -> str:
    current = sentence(engine.state())
    return f"{current.says} {current.detail}"


def plays_on(engine: Engine) -> None:
    """Wait until two rounds end: the first of them may have begun before."""
    start = len(engine.lines)
    played = engine.wait(events.RoundCompleted, SOON, start=start)
    engine.wait(events.RoundCompleted, SOON, lambda event: event.summary.round > played.summary.round, start)
    assert [event for event in engine.all_events if isinstance(event, events.EngineFailed)] == []


def test_a_computer_that_slept_is_back_in_its_swarm(tmp_path, figures):
    with two(tmp_path) as (sleeper, other):
        me = psutil.Process(sleeper.process.pid)
        everything = [me, *me.children(recursive=True)]
        for process in everything:
            process.send_signal(signal.SIGSTOP)
        time.sleep(SLEEP)  # the computer sleeps
        figures["sleep_others_read"] = says(other)
        starts, woke = places(sleeper, other), time.monotonic()
        for process in reversed(everything):
            process.send_signal(signal.SIGCONT)
        figures["sleep_back_s"] = hear_each_other(sleeper, other, starts) - woke
        plays_on(sleeper)
        figures["sleep_reads"] = says(sleeper)


@pytest.mark.privileged
def test_a_node_whose_network_goes_trains_on_alone_and_is_back_when_it_comes_again(tmp_path, figures):
    if reason := why_not():
        pytest.skip(reason)
    with network() as namespaces, ExitStack() as stack:
        inside = {
            host: ("ip", "netns", "exec", f"{namespaces.name}-{side}", *WAGGLE) for side, host in (("a", HOST_A), ("b", HOST_B))
        }
        seed = stack.enter_context(running(Seed(tmp_path / "seed", HOST_A, inside[HOST_A])))
        settings = (f'swarm.seeds=["{seed.address()}"]',)
        here, there = (
            stack.enter_context(running(Engine(tmp_path / host, f"swarm.host={host}", *settings, command=command)))
            for host, command in inside.items()
        )
        hear_each_other(here, there)
        cut = len(there.lines)
        namespaces.plug(False)
        there.wait(events.ReachChanged, SOON, lambda event: event.reach != "connected", cut)
        plays_on(there)
        figures["network_gone_reads"] = says(there)
        starts, repaired = places(here, there), time.monotonic()
        namespaces.plug(True)
        figures["network_back_s"] = hear_each_other(here, there, starts) - repaired
        plays_on(there)
        figures["network_back_reads"] = says(there)


@pytest.mark.skipif(not os.path.exists(FAKETIME), reason="libfaketime is not installed (Debian's package faketime)")
def test_a_clock_that_jumps_is_named_and_costs_no_round(tmp_path, figures):
    offset = tmp_path / "offset"
    offset.write_text("+0")
    faked = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1",
             "FAKETIME_DONT_FAKE_MONOTONIC": "1"}  # fmt: skip
    with two(tmp_path, **faked) as (lost, other):
        for words in (f"+{DAYS}d", "+0"):
            start = len(lost.lines)
            beside = offset.with_name("new")
            beside.write_text(words)
            os.replace(beside, offset)
            if words != "+0":
                warning = lost.wait(events.Warned, SOON, lambda event: "clock" in event.title, start)
                figures["clock_reads"] = f"{warning.title} {warning.advice}"
            plays_on(lost)
        hear_each_other(lost, other, places(lost, other))
        numbers = [round_.round for round_ in lost.rounds()]
        assert numbers == list(range(len(numbers))), "a round was lost"


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="there is no prlimit")
def test_an_engine_that_may_have_no_more_memory_says_so_and_trains_on(tmp_path, figures):
    with running(Engine(tmp_path / "home", "swarm.solo=true", "computer.threads=1")) as engine:
        engine.wait(events.Ready, SOON)
        process = psutil.Process(engine.process.pid)
        start = len(engine.lines)
        process.rlimit(resource.RLIMIT_AS, (process.memory_info().vms + MEGABYTES * 2**20, resource.RLIM_INFINITY))
        warning = engine.wait(events.Warned, SOON, lambda event: "emory" in event.title, start)
        figures["memory_reads"] = f"{warning.title} {warning.advice}"
        plays_on(engine)
        process.rlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        plays_on(engine)
        assert engine.end() == 0
