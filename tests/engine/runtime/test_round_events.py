"""The events made of what a round yields."""

from waggle.core.peer_id import text_of
from waggle.engine.runtime import round_events
from waggle.sapo.stages import Gathered

OTTER, WREN = b"o" * 38, b"w" * 38


def test_refusals_of_a_round_are_told_for_each_peer_and_in_all():
    refusals = {OTTER: {"teaches_nothing": 5}, WREN: {"teaches_nothing": 2, "too_long": 1}}
    event = round_events.groups_gathered_event(Gathered(4, local=1, external=2, waiting=3, refusals=refusals))
    assert event.refused_by_peer == {text_of(OTTER): refusals[OTTER], text_of(WREN): refusals[WREN]}
    assert event.refused == {"teaches_nothing": 7, "too_long": 1}
    assert (event.local, event.external, event.waiting) == (1, 2, 3)
