"""What holds something back for more than a minute is said where a person looks, with what would end it."""

import asyncio

import pytest

from waggle.cli.control.status import describe
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.services.guards import QUIET_S, SILENT_S, Guards
from waggle.gui.state.notifications import recent_warnings, warning_words
from waggle.network.limits.bandwidth import BandwidthLimiter
from waggle.protocol import events
from waggle.protocol.state import apply

NOTHING = {"parts": 1, "limit_kb": 0, "has_gap": False}
ACTS = {
    "memory": ({"parts": 4}, "in 4 parts", "larger parts"),
    "traffic": ({"limit_kb": 5}, "5 kB/s", "in Settings"),
    "record": ({"has_gap": True}, "record of events", "Make room"),
    "disk": (
        {"disk_gb": 2.5, "unmet_bytes": 3_400_000_000},
        "take 3.4 GB, above the limit of 2.5 GB",
        "more of the disk in Settings",
    ),
    "network": ({"is_away": True}, "does not keep running", "waggle log"),
}


class Engine:
    def __init__(self, folder):
        self.now = 0.0
        self.publisher = EventPublisher(folder)
        self.guards = Guards(self.publisher, lambda: self.now)

    def passes(self, seconds, **changed):
        for _ in range(int(seconds / 2)):
            self.now += 2.0
            self.guards.observe(**NOTHING | changed)
        return self.publisher.state


@pytest.fixture
async def engine(tmp_path):
    engine = Engine(tmp_path)
    yield engine
    engine.publisher.close()


@pytest.mark.parametrize("name", ACTS)
async def test_a_guard_says_so_after_a_minute_and_until_it_ends(engine, name):
    acts, says, ends = ACTS[name]
    assert engine.passes(SILENT_S, **acts).guards == ()
    state = engine.passes(10, **acts)
    (guard,) = state.guards
    assert (guard.name, says in guard.says, ends in guard.ends) == (name, True, True)
    assert any(says in warning_words(each) for each in recent_warnings(state, guard.since + 1e6)), "Home shows it while it acts"
    assert says in describe(state, guard.since)
    assert engine.passes(QUIET_S + 10).guards == ()
    await asyncio.sleep(0)


async def test_what_is_over_within_a_minute_needs_no_words(engine):
    for _ in range(5):
        assert engine.passes(SILENT_S / 2, has_gap=True).guards == ()
        assert engine.passes(4).guards == ()


async def test_a_limit_that_is_reached_again_and_again_is_one_guard(engine):
    for _ in range(10):
        engine.passes(4, limit_kb=5)
        state = engine.passes(20)
    engine.passes(2, limit_kb=5)
    assert [guard.name for guard in state.guards] == ["traffic"]


async def test_a_network_process_that_ends_after_each_rest_is_one_guard(engine):
    for _ in range(3):
        engine.passes(50, is_away=True)
        state = engine.passes(8)
    assert [guard.name for guard in state.guards] == ["network"]


@pytest.mark.parametrize("disk_gb", [0.0, 3.5])
async def test_a_limit_of_the_disk_that_was_raised_or_removed_ends_at_once(engine, disk_gb):
    assert engine.passes(SILENT_S + 4, disk_gb=2.5, unmet_bytes=3_400_000_000).guards
    assert engine.passes(2, disk_gb=disk_gb, unmet_bytes=3_400_000_000).guards == ()


async def test_what_is_above_a_small_limit_is_not_called_nothing(engine):
    (guard,) = engine.passes(SILENT_S + 4, disk_gb=0.001, unmet_bytes=9_430_000).guards
    assert "take 0.00943 GB, above the limit of 0.001 GB" in guard.says


@pytest.mark.parametrize(("reach", "shared", "is_said"), [("connected", 0, True), ("connected", 3, False), ("alone", 0, False)])
async def test_answers_of_which_none_may_travel_are_said(engine, reach, shared, is_said):
    state = apply(engine.publisher.state, events.ReachChanged(reach=reach, peers=1))
    state = apply(state, events.GroupsShared(round=1, groups=shared, bytes=0))
    state = apply(state, events.GroupsGathered(round=1, local=4, external=0, waiting=0))
    engine.publisher.state = state
    assert [guard.name for guard in engine.passes(SILENT_S + 4).guards] == (["sharing"] if is_said else [])


async def test_an_engine_that_ended_holds_nothing_back(engine):
    state = engine.passes(SILENT_S + 4, has_gap=True)
    assert state.guards
    assert apply(state, events.EngineGone(code=1, restarts=0)).guards == ()


def test_a_limit_that_nothing_waits_for_is_silent_and_one_that_is_reached_is_not():
    now = [100.0]
    limiter = BandwidthLimiter(clock=lambda: now[0])
    assert not limiter.is_short
    limiter.limit = 1000.0
    assert limiter.may_receive()
    limiter.charge_received(100_000)
    assert not limiter.is_short
    assert not limiter.may_receive()
    assert limiter.is_short
    now[0] += 60.0
    assert not limiter.is_short
