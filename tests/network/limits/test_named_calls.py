"""How often a peer that others name is called."""

from collections.abc import Sequence

import pytest

from waggle.network.limits.bandwidth import BandwidthLimiter
from waggle.network.limits.named_calls import (
    CALLS_BURST,
    CALLS_RATE,
    CLIENTS,
    LONGEST_REST_S,
    OWN,
    REST_S,
    UNMET_BURST,
    UNMET_RATE,
    NamedCalls,
    UnmetCalls,
)
from waggle.network.limits.rate_limits import REMEMBERED
from waggle.network.transport.interface import PeerAway, fetch


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_peer_has_one_budget_whoever_names_it() -> None:
    clock = Clock()
    calls = NamedCalls(clock)
    assert sum(calls.begin(b"one") for _ in range(1000)) == CALLS_BURST
    assert calls.begin(b"another")
    clock.now += 1.0
    assert sum(calls.begin(b"one") for _ in range(1000)) == CALLS_RATE


def test_a_peer_whose_calls_fail_rests_ever_longer_until_it_answers() -> None:
    clock, rests = Clock(), list[float]()
    calls = NamedCalls(clock)
    for _ in range(9):
        assert calls.begin(b"one")
        for _ in range(5):  # calls at the same time
            calls.end(b"one", answered=False)
        began = clock.now
        while not calls.may(b"one"):
            clock.now += REST_S
        rests.append(clock.now - began)
    assert rests == [min(LONGEST_REST_S, REST_S * 2**i) for i in range(9)]
    calls.end(b"one", answered=True)
    calls.end(b"one", answered=False)
    clock.now += REST_S
    assert calls.may(b"one")


def test_calls_in_vain_to_those_who_are_not_connected_have_one_budget_and_clients_their_own() -> None:
    clock = Clock()
    calls = UnmetCalls(clock)
    assert sum(calls.begin(CLIENTS) for _ in range(1000)) == UNMET_BURST
    assert not calls.may(CLIENTS)
    assert sum(calls.begin(OWN) for _ in range(1000)) == UNMET_BURST, "what clients ask for uses up nothing of ours"
    calls.gave(OWN)
    assert calls.begin(OWN)
    clock.now += 5.0
    assert sum(calls.begin(OWN) for _ in range(1000)) == 5 * UNMET_RATE


def test_of_many_that_rest_the_oldest_are_forgotten() -> None:
    calls = NamedCalls(Clock())
    for number in range(REMEMBERED + 1):
        calls.end(number.to_bytes(4, "big"), answered=False)
    assert len(calls._rests) == REMEMBERED
    assert [calls.may(number.to_bytes(4, "big")) for number in (0, 1, REMEMBERED)] == [True, False, False]


class Network:
    """Answers from `blobs`; whoever is not in there is away."""

    def __init__(self, blobs: dict[bytes, bytes]) -> None:
        self.network, self.calls, self._blobs = self, list[bytes](), blobs

    async def pull(self, peer_id: bytes, *_: object) -> bytes:
        self.calls.append(peer_id)
        if peer_id not in self._blobs:
            raise PeerAway("gone")
        return self._blobs[peer_id]


@pytest.mark.parametrize(
    ("blobs", "rests"),
    [({}, True), ({b"holder": b"made up"}, True), ({b"holder": b""}, False)],
    ids=["away", "lies", "has nothing"],
)
async def test_a_failed_call_rests_who_was_called_for_all_announcements(blobs: dict[bytes, bytes], rests: bool) -> None:
    """A holder that has nothing has answered: a hostile client could leave nothing with an honest gateway."""
    network, named = Network(blobs), NamedCalls(Clock())

    async def ask(origin: bytes, via: Sequence[bytes]) -> bytes:
        return await fetch(
            network, BandwidthLimiter(), origin=origin, via=via, sha256=bytes(32), seconds=1.0, certificate=b"", named=named,  # type: ignore[arg-type]
        )  # fmt: skip

    assert await ask(b"first", (b"holder",)) == b""
    assert await ask(b"second", (b"holder",)) == b""
    assert network.calls == [b"holder"] * (1 if rests else 2)
    await ask(b"origin", ())
    await ask(b"origin", ())
    assert network.calls[-2:] == [b"origin"] * 2, "an origin names itself alone, and rests by other rules"
