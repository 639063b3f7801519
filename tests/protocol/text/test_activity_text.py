"""Test the activity text."""

import pytest

from gui.recorded import ready
from waggle.protocol import events
from waggle.protocol.events_swarms import SwarmUndecided
from waggle.protocol.state import MINUTES, State, apply
from waggle.protocol.text.activity_text import weather

NOW = 6000.0 * 60
READY = ready(at=NOW - 3600)
PEERS = {
    name: events.PeerInfo(id=name, name=name, received=3) for name in ("a", "b", "c")
} | {"seed": events.PeerInfo(id="seed", name="seed")}  # fmt: skip


def connected(*arrivals: tuple[int, int], **changes: object) -> State:
    """A State of a connected node. Arrivals are (minutes ago, groups)."""
    by_minute = tuple((6000 - ago, groups) for ago, groups in arrivals)
    known: dict[str, object] = {
        "ready": READY, "phase": "contributing", "reach": "connected", "peers": PEERS, "arrivals": by_minute,
    }  # fmt: skip
    return State(**{**known, **changes})  # type: ignore[arg-type]


TABLE = [
    (State(), "No forecast yet: the engine is still starting."),
    (State(undecided=SwarmUndecided(why="unknown")), "No forecast yet: the engine waits for your choice."),
    (State(phase="stopped"), "No forecast: the engine is not running."),
    (connected(phase="problem"), "No forecast: the engine is not running."),
    (connected(reach="solo"), "No weather: this swarm is this computer only."),
    (connected(reach="connecting"), "No forecast yet: still looking for peers."),
    (connected(reach="alone"), "You are the only one here."),
    (connected(reach="alone", seeds_tried=1), "Nobody answers."),
    (connected(peers={}), "Calm: you are connected, but nobody has shared anything yet."),
    (connected(ready=ready(at=NOW - 90)), "3 peers online."),
    (connected(), "Calm: 3 peers, hardly anything new arrives."),
    (connected(*((i, 40) for i in range(10, 0, -1))), "Busy: 3 peers, about 40 groups a minute, steady."),
    (connected(*((i, 2) for i in range(10, 5, -1)), *((i, 8) for i in range(5, 0, -1))),
     "Lively: 3 peers, about 5 groups a minute, and rising."),
    (connected(*((i, 8) for i in range(10, 5, -1)), (3, 2)), "Lively: 3 peers, about 4 groups a minute, and falling."),
    (connected((5, 6), (4, 4)), "Lively: 3 peers, about one group a minute, and rising."),
    (connected((9, 2), (4, 2)), "Quiet: 3 peers, less than one group a minute, steady."),
    (connected((3, 20), (2, 20), ready=ready(at=NOW - 300), peers={"a": PEERS["a"]}), "Lively: 1 peer, about 8 groups a minute."),
    (connected((0, 500)), "Calm: 3 peers, hardly anything new arrives."),
]  # fmt: skip


@pytest.mark.parametrize(("state", "words"), TABLE)
def test_the_weather_is_one_honest_sentence(state, words):
    assert weather(state, NOW) == words


def test_arrivals_are_added_up_by_the_minute_and_bounded():
    state = State()
    for i in range(3 * MINUTES):
        groups = (events.ShownGroup(key=str(i), specialty="Logic", question="q"),)
        state = apply(state, events.PeerGroupsArrived(at=30.0 * i, origin="a", name="a", round=1, model="m", groups=groups))
    assert len(state.arrivals) == MINUTES
    assert {groups for _, groups in state.arrivals} == {2}
    assert state.arrivals[-1][0] == 44
