"""The publisher makes one payload for each epoch and loses none, and announces it where it can."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from network.loopback import node_context
from network.messages.test_rollout_record import CHARTER, EPOCH, small
from waggle.network.exchange.node_context import NodeContext
from waggle.network.exchange.outbox_log import OutboxLog
from waggle.network.exchange.publisher import RolloutPublisher
from waggle.network.identity.keys import load_or_create
from waggle.network.messages import announcement as announcements
from waggle.network.messages.consent import Holder
from waggle.network.messages.directory import DirectoryDepth
from waggle.network.transport.interface import PeerAway
from waggle.tasks.questions import epoch_at
from waggle.tasks.sandbox.verifier import Verifier


@pytest.fixture
def context(tmp_path: Path, verifier: Verifier) -> NodeContext:
    return node_context(load_or_create(tmp_path / "identity.key"), CHARTER, verifier)


@pytest.fixture
def publisher(context: NodeContext) -> RolloutPublisher:
    return RolloutPublisher(replace(context, clock=lambda: 0.0), OutboxLog(lambda: 0.0), DirectoryDepth())


def sealed(publisher: RolloutPublisher) -> list[tuple[int, list[int]]]:
    """The payloads, oldest first: their epochs and questions."""
    return [(offer.record.epoch, [group.id.number for group in offer.record.groups]) for offer in publisher._published.values()]


def test_quick_rounds_of_one_epoch_are_one_payload(publisher: RolloutPublisher) -> None:
    publisher.add(small(4, EPOCH, 1))
    publisher.add(small(5, EPOCH, 2))
    publisher._seal()
    assert sealed(publisher) == [(EPOCH, [1, 2])]
    publisher._due.clear()
    publisher._seal()
    assert not publisher._due.is_set(), "nothing is left to say"


def test_an_older_question_that_was_answered_late_pushes_out_no_round_and_is_pushed_out_by_none(
    publisher: RolloutPublisher,
) -> None:
    publisher.add(small(4, EPOCH, 1))
    publisher.add(small(4, EPOCH - 1, 7))
    publisher.add(small(5, EPOCH, 2))
    publisher._due.clear()
    publisher._seal()
    assert sealed(publisher) == [(EPOCH - 1, [7])]
    assert publisher._due.is_set(), "the rest has its turn next"
    publisher._seal()
    assert sealed(publisher)[-1] == (EPOCH, [1, 2])


class OnlyGroups:
    """A transport whose gateway accepts groups but no answer sheets."""

    def __init__(self, sheet: bytes) -> None:
        self.network, self._sheet = self, sheet
        self.announced: list[bytes] = []

    async def upload(self, _sha256: bytes, blob: bytes) -> tuple[Holder, ...]:
        if blob == self._sheet:
            raise PeerAway("no gateway takes it")
        return ()

    async def announce(self, _key: str, _subkey: bytes, signed: bytes, _expires: float) -> None:
        self.announced.append(signed)


async def test_a_gateway_that_takes_no_answer_sheet_leaves_the_groups_announced(context: NodeContext) -> None:
    sheet, named = b"answers", bytes(32)
    door = OnlyGroups(sheet)
    publisher = RolloutPublisher(context, OutboxLog(time.time), DirectoryDepth(), answer_sheet=lambda: (sheet, named))
    publisher.add(small(4, epoch_at(time.time()), 1))
    publisher._seal()
    await publisher._announce(door)
    assert door.announced
    assert {announcements.parse(signed).sheet for signed in door.announced} == {b""}, "a sheet that nobody has is not named"


@pytest.mark.parametrize("unreached", [{"a"}, {"b", "c"}, {"a", "b", "c"}])
async def test_strangers_near_one_key_of_the_directory_keep_nobody_from_the_others(
    publisher: RolloutPublisher, monkeypatch: pytest.MonkeyPatch, unreached: set[str]
) -> None:
    class Door(OnlyGroups):
        async def announce(self, key: str, subkey: bytes, signed: bytes, expires: float) -> bool:
            if key in unreached:
                raise PeerAway("it took too long")
            self.announced.append(key.encode())
            return key == "c"

    door = Door(b"")
    monkeypatch.setattr(publisher, "places", lambda peer_id: ["a", "b", "c"])
    reached = {"a", "b", "c"} - unreached
    if reached:
        assert await publisher.put(door, bytes(38), b"signed", 1.0) == ("c" in reached)
    else:
        with pytest.raises(PeerAway):
            await publisher.put(door, bytes(38), b"signed", 1.0)
    assert {key.decode() for key in door.announced} == reached


async def test_a_clock_that_was_fast_and_is_put_right_keeps_nobody_out_of_the_directory(
    context: NodeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, true, fast = OnlyGroups(b""), time.time(), 7200.0
    publisher = RolloutPublisher(replace(context, clock=lambda: true), OutboxLog(lambda: true), DirectoryDepth())
    publisher.add(small(4, epoch_at(true), 1))
    publisher._seal()
    for ahead in (0.0, fast, fast, 500.0, 0.0, 0.0):
        monkeypatch.setattr("waggle.network.exchange.publisher.time.time", lambda ahead=ahead: true + ahead)
        await publisher._announce(door)
    messages = [announcements.parse(signed).expires_at - true for signed in door.announced]
    assert messages == pytest.approx([300, fast + 300, fast + 300, 800, 800, 800], abs=0.01)
    assert messages[3] < messages[4] < messages[5], "what others hold gives way to what expires later alone"
