"""Whom gathering leaves alone, and in which order it judges. What it gathers is shown by nodes that run, in test_node.py."""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from swarm.live import Ear, answered, be_of_use, fresh_identity, judged, options, question_ids
from waggle.lab import attacks
from waggle.lab.attacks import Scene
from waggle.swarm import effort, record
from waggle.swarm.announcement import Announcement
from waggle.swarm.gathering import Gathering, promising, resters
from waggle.swarm.identity import Identity
from waggle.swarm.news import GroupsArrived
from waggle.swarm.node import SwarmNode
from waggle.swarm.record import Record
from waggle.tasks.charter import Charter
from waggle.tasks.group import NEWCOMERS
from waggle.tasks.questions import epoch_at
from waggle.tasks.verifier import Verifier

SLOW = f"<answer>{'¬' * 32}{'P' * 68}</answer>"  # the slowest there is: hundreds of times what an honest answer takes
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


class Listener:
    """A node that is not started: what it pulls is here already."""

    def __init__(self, folder: Path, charter: Charter, verifier: Verifier) -> None:
        self.folder, self.charter, self.verifier, self.ear, self.held = folder, charter, verifier, Ear(), False
        own = fresh_identity(folder, "own")
        self.node = SwarmNode(options(), charter, own, verifier, self.ear, held=lambda: self.held)
        self.blobs: dict[bytes, bytes] = {}
        self.gathering._lodged = lambda sha256: self.blobs[sha256]

    @property
    def gathering(self) -> Gathering:
        return self.node._gathering

    @property
    def heard(self) -> list[bytes]:
        return [news.origin for news in self.ear.all(GroupsArrived)]

    def met(self, name: str, source: str) -> Identity:
        """A peer that is connected from there."""
        peer = fresh_identity(self.folder, name)
        known = {each.id: (each.connection, each.source) for each in self.node._trust.all()}
        self.node._trust.connected({**known, peer.peer_id: ("direct", source)})
        return peer

    async def pull(self, origin: bytes, blob: bytes) -> None:
        sha256, now = hashlib.sha256(blob).digest(), time.time()
        self.blobs[sha256] = blob
        announced = Announcement(
            charter=self.charter.digest, sha256=sha256, size=len(blob), round=1, epoch=epoch_at(now), specialties=1, model="m",
            expires=1,
        )  # fmt: skip
        await self.gathering._pull_one(self.node._connection, origin, announced, now)

    def honest(self, peer: Identity) -> bytes:
        origin = peer.peer_id
        groups = tuple(answered(self.charter, self.verifier, origin, question_ids(self.charter, self.verifier, origin, 1)))
        return record.encode(Record(origin=origin, round=1, epoch=groups[0].id.epoch, model="m", groups=groups), self.charter)

    def slow(self, peer: Identity, number: int = 1, texts: Sequence[str] = (SLOW,) * 15, count: int = 4) -> bytes:
        """Slow formulas, and the true answer beside them: so every group teaches."""
        scene = Scene(self.charter, self.verifier, peer, time.time(), canary="", round=number)
        groups = attacks.answering(scene, "propositional_logic", ["<answer>{truth}</answer>", *texts], count=count)
        return attacks.wire(scene, groups, round=1).blob


@pytest.fixture
def listener(tmp_path: Path, charter: Charter, verifier: Verifier) -> Listener:
    return Listener(tmp_path, charter, verifier)


@pytest.mark.parametrize("source", ["", "8.8.4.0/24"])
async def test_slow_answers_of_ever_new_names_are_judged_once_and_then_all_that_come_from_there_rest(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setattr(effort, "SAVED_S", 1.0)
    hostile = [listener.met(f"hostile {number}", source) for number in range(4)]
    for number, peer in enumerate([*hostile, *hostile]):
        await listener.pull(peer.peer_id, listener.slow(peer, number))
    assert listener.heard == [hostile[0].peer_id], "of what each sent twice"

    honest = listener.met("honest", "8.8.8.0/24")
    await listener.pull(honest.peer_id, listener.honest(honest))
    assert listener.heard[1:] == [honest.peer_id]


async def test_a_trusted_peer_answers_for_itself_alone_whoever_else_comes_from_there(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "SAVED_S", 1.0)
    hostile, friend = listener.met("hostile", "relay"), listener.met("friend", "relay")
    be_of_use(listener.node._trust, friend.peer_id)
    await listener.pull(hostile.peer_id, listener.slow(hostile))
    await listener.pull(friend.peer_id, listener.honest(friend))
    assert listener.heard == [hostile.peer_id, friend.peer_id]

    await listener.pull(friend.peer_id, listener.slow(friend))
    await listener.pull(friend.peer_id, listener.slow(friend, 2))
    assert listener.heard[2:] == [friend.peer_id], "its own slow record counts"


async def test_a_trusted_peer_waits_for_two_records_of_others_at_most(listener: Listener) -> None:
    hostile = [listener.met(f"hostile {number}", f"8.8.{number}.0/24") for number in range(8)]
    friend = listener.met("friend", "8.9.0.0/24")
    be_of_use(listener.node._trust, friend.peer_id)
    line = [(peer.peer_id, listener.slow(peer, count=1)) for peer in hostile] + [(friend.peer_id, listener.honest(friend))]

    await asyncio.gather(*(listener.pull(origin, blob) for origin, blob in line))

    assert len(listener.heard) == 9
    assert friend.peer_id in listener.heard[:3]


async def test_while_the_computer_is_to_rest_nothing_is_judged_and_afterwards_it_is(listener: Listener) -> None:
    peer = listener.met("peer", "")
    blob = listener.honest(peer)
    listener.held = True
    await listener.pull(peer.peer_id, blob)
    assert listener.heard == []
    assert not listener.gathering._tried

    listener.held = False
    await listener.pull(peer.peer_id, blob)
    assert listener.heard == [peer.peer_id]
