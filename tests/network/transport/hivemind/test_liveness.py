"""Names in a search are asked first whether they are alive, and one peer's dead names cost only a few questions."""

import asyncio

import pytest

from network.loopback import SOON
from waggle.network.transport.hivemind.liveness import (
    ALIVE_S,
    DEAD_S,
    LONGEST_REST_S,
    REMEMBERED,
    REST_S,
    VAIN_BURST,
    VAIN_RATE,
    NeighbourLiveness,
    SearchBackoff,
)


class Peers:
    """Counts how often each name is asked. Only these names are alive."""

    def __init__(self, *there: int) -> None:
        self.there = set(there)
        self.calls: list[int] = []
        self.now = 0.0
        self.neighbours = NeighbourLiveness(self.is_there, lambda: self.now)

    async def is_there(self, name: int) -> bool:
        self.calls.append(name)
        await asyncio.sleep(0)
        return name in self.there


async def test_names_are_asked_once_for_all_who_name_them_and_again_after_a_while() -> None:
    peers = Peers(1)
    answers = await asyncio.gather(*(peers.neighbours.alive(by, [1, 2]) for by in (b"a", b"b", b"c")))
    assert answers == [{1}] * 3
    assert await peers.neighbours.alive(b"d", [1, 2]) == {1}
    assert peers.calls == [1, 2]
    peers.now = DEAD_S
    peers.there = {2}
    assert await peers.neighbours.alive(b"a", [1, 2]) == {1, 2}
    assert peers.calls == [1, 2, 2]
    peers.now = ALIVE_S
    assert await peers.neighbours.alive(b"a", [1, 2]) == {2}


async def test_who_names_nobodies_is_soon_passed_over_and_nobody_else() -> None:
    peers = Peers(-1, -2)
    for number in range(int(2 * VAIN_BURST)):
        assert await peers.neighbours.alive(b"a", [number]) == set()
    assert peers.calls == list(range(int(VAIN_BURST)))
    assert await peers.neighbours.alive(b"a", [-1]) == set()
    assert await peers.neighbours.alive(b"b", [-1]) == {-1}
    peers.now = 1 / VAIN_RATE
    assert await peers.neighbours.alive(b"a", [-2]) == {-2}


async def test_who_names_those_who_are_there_may_go_on() -> None:
    names = range(int(3 * VAIN_BURST))
    peers = Peers(*names)
    for name in names:
        assert await peers.neighbours.alive(b"a", [name]) == {name}


async def test_no_search_waits_for_a_slow_one_which_is_known_once_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.liveness.WAIT_S", 0.1)
    ready, answered = asyncio.Event(), asyncio.Event()

    async def is_there(name: int) -> bool:
        if name == 1:
            await ready.wait()
            answered.set()
        return True

    neighbours = NeighbourLiveness(is_there)
    async with asyncio.timeout(SOON):
        assert 1 not in await neighbours.alive(b"a", [1, 2])
        ready.set()
        await answered.wait()
        while 1 not in await neighbours.alive(b"a", [1]):
            await asyncio.sleep(0)


async def test_of_many_names_the_oldest_are_forgotten() -> None:
    peers = Peers(*range(REMEMBERED + 100))
    await peers.neighbours.alive(b"a", [0])
    for first in range(1, REMEMBERED + 100, 50):
        await peers.neighbours.alive(b"a", range(first, first + 50))
    assert len(peers.neighbours._results) == REMEMBERED
    assert not peers.neighbours._asking
    assert await peers.neighbours.alive(b"a", [0]) == {0}
    assert peers.calls.count(0) == 2


def test_who_does_not_answer_rests_ever_longer_until_it_does_and_not_all_are_remembered() -> None:
    now = 0.0
    resting, rests = SearchBackoff(lambda: now), []
    for _ in range(9):
        began = now
        resting.register_failure(1)
        resting.register_failure(1)  # by another search, in the meantime
        while 1 in resting:
            now += REST_S
        rests.append(now - began)
    assert rests == [min(REST_S * 2**i, LONGEST_REST_S) for i in range(9)]
    resting.register_success(1)
    resting.register_failure(1)
    assert 1 in resting
    now += REST_S
    assert 1 not in resting
    for name in range(REMEMBERED + 100):
        resting.register_failure(name)
    assert len(resting._failed) == REMEMBERED
