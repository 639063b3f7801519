"""Polls of connected peers take at most a tenth of the time, however many strangers connect."""

import asyncio
import gc
import time
from contextlib import suppress

import pytest

from network.loopback import callbacks, options
from waggle.network.identity.keys import Identity
from waggle.network.transport.hivemind import peer_polling as looking
from waggle.network.transport.hivemind.peer_polling import CpuTimer, ThrottledRefresh
from waggle.network.transport.hivemind.transport import HivemindTransport
from waggle.network.transport.interface import PeerAway, Services


class World:
    """A world whose wall clock and CPU clock the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, busy: float, waiting: float) -> None:
        self.now, self.worked, self.each = 0.0, 0.0, (busy, waiting)
        self.looked: list[float] = []
        self.fails = False
        monkeypatch.setattr(looking.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += max(0.0, seconds)

    async def look(self) -> None:
        busy, waiting = self.each
        self.looked.append(self.now)
        self.worked += busy
        self.now += busy + waiting
        if self.fails:
            raise OSError

    async def looks(self) -> list[float]:
        """When it was looked, where somebody asks for it at all times."""
        looks = ThrottledRefresh(self.look, 0.1, clock=lambda: self.now, cpu_clock=lambda: self.worked)
        for _ in range(4):
            with suppress(OSError):
                await looks.later_than(self.now)
        return self.looked


async def test_a_look_that_took_long_is_not_made_again_for_nine_times_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, busy=0.2, waiting=0.0)
    assert await world.looks() == pytest.approx([0.0, 2.0, 4.0, 6.0])


async def test_nor_is_one_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, busy=0.2, waiting=0.0)
    world.fails = True
    assert await world.looks() == pytest.approx([0.0, 2.0, 4.0, 6.0])


async def test_quick_looks_and_those_that_only_waited_are_made_after_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await World(monkeypatch, busy=0.001, waiting=0.0).looks() == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert await World(monkeypatch, busy=0.0, waiting=5.0).looks() == pytest.approx([0.0, 5.0, 10.0, 15.0])


async def test_whoever_asks_for_a_look_and_leaves_ends_it_for_nobody_else() -> None:
    looked, looked_event = list[str](), asyncio.Event()

    async def look() -> None:
        looked.append("began")
        await looked_event.wait()
        looked.append("ended")

    looks = ThrottledRefresh(look, 0.1)
    requests = time.monotonic()
    first, second = (asyncio.create_task(looks.later_than(requests)) for _ in range(2))
    while not looked:
        await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    looked_event.set()
    await second
    assert looked == ["began", "ended"]


async def test_a_look_that_fails_when_all_have_left_is_no_error_of_anybody(caplog: pytest.LogCaptureFixture) -> None:
    looked, remaining = asyncio.Event(), asyncio.Event()

    async def look() -> None:
        looked.set()
        await remaining.wait()
        raise PeerAway

    asking = asyncio.create_task(ThrottledRefresh(look, 0.1).later_than(time.monotonic()))
    await looked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    del asking
    remaining.set()
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    assert caplog.records == []


async def test_a_look_that_fails_tells_all_who_wait_and_the_next_one_looks_anew() -> None:
    looked, may = list[bool](), asyncio.Event()

    async def look() -> None:
        looked.append(may.is_set())
        await asyncio.sleep(0)
        if not may.is_set():
            raise PeerAway

    looks = ThrottledRefresh(look, 0.01)
    requests = time.monotonic()
    news = await asyncio.gather(*(looks.later_than(requests) for _ in range(3)), return_exceptions=True)
    assert ([type(result) for result in news], looked) == ([PeerAway] * 3, [False])
    may.set()
    await looks.later_than(time.monotonic())
    assert looked == [False, True]


async def test_a_node_with_many_connections_looks_at_them_less_often(identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = HivemindTransport(options(), identity, callbacks(identity, services=Services()))
    ticks, slept = iter([0.0, 7.0]), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        raise asyncio.CancelledError

    async def look() -> None:
        """Takes 7 seconds, by that clock."""

    monkeypatch.setattr("waggle.network.transport.hivemind.transport.CpuTimer", lambda: CpuTimer(lambda: next(ticks)))
    monkeypatch.setattr(transport, "_check_peers", look)
    with monkeypatch.context() as still:
        still.setattr(asyncio, "sleep", sleep)
        with pytest.raises(asyncio.CancelledError):
            await transport._stay_joined()
    assert slept == pytest.approx([63.0])


async def test_what_is_measured_gives_and_raises_what_it_would_and_can_be_cancelled() -> None:
    async def three() -> int:
        await asyncio.sleep(0)
        return sum(await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2)))

    async def refused() -> None:
        await asyncio.sleep(0)
        raise KeyError

    async def patient() -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        return "went on"

    effort = CpuTimer()
    assert await effort.measure(three()) == 3
    with pytest.raises(KeyError):
        await effort.measure(refused())
    assert await effort.measure(patient()) == "went on"
    waiting = asyncio.ensure_future(effort.measure(asyncio.Event().wait()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
