"""Whom gathering leaves alone. What it gathers is shown by nodes that run, in test_node.py."""

import msgspec
import pytest

from swarm.live import judged
from waggle.swarm.announcement import Announcement
from waggle.swarm.gathering import promising, resters
from waggle.tasks.group import NEWCOMERS

UNANSWERED = {b"peer": (100.0, b"1" * 32)}  # until when it rests, and for which payload


@pytest.mark.parametrize(
    ("now", "here", "offers", "rests"),
    [
        (99.0, {b"peer"}, b"2" * 32, True),
        (101.0, {b"peer"}, b"1" * 32, False),
        (101.0, set(), b"2" * 32, False),
        (101.0, set(), b"1" * 32, True),
    ],
)
def test_a_peer_that_did_not_answer_rests_and_then_waits_to_be_connected_or_to_offer_something_else(
    now: float, here: set[bytes], offers: bytes, rests: bool
) -> None:
    current = {
        b"peer": Announcement(charter=bytes(32), sha256=offers, size=1, round=1, epoch=1, specialties=1, model="", expires=1)
    }
    assert (resters(UNANSWERED, current, here, now) == [b"peer"]) == rests


def test_neither_newcomers_nor_those_of_no_use_promise_anything() -> None:
    known, fresh, barren = judged(1, 1), msgspec.structs.replace(judged(2, 1), source=NEWCOMERS), judged(3, 1)
    assert promising([known, fresh, barren], {barren.group.origin}) == [known]
