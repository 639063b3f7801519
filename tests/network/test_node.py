"""Nodes and a seed on loopback: groups of one node arrive, judged, at the other."""

import asyncio
import hashlib
import logging
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from network.loopback import SOON, Ear, Start, answered, fresh_identity, judged, options, question_ids, serving, share
from waggle.core.peer_id import PEER_ID_PREFIX, short_id, text_of
from waggle.network.exchange.verification import VerifiedRecord
from waggle.network.identity.keys import Identity, name_of
from waggle.network.limits.rate_limits import AddressRangeRateLimit
from waggle.network.limits.reputation import MAX_PEERS
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.events import GroupsArrived, NetworkRestarted, ReachChanged, RecordRejected, TrafficMeasured
from waggle.network.messages.faults import Fault
from waggle.network.messages.rollout_record import RolloutRecord, encode
from waggle.network.open_node import open_node
from waggle.network.transport import peer_cache
from waggle.network.transport.hivemind.call_limits import CALLS_BURST, RANGE, CallLimits, CallRefused
from waggle.network.transport.hivemind.network import open_network
from waggle.network.transport.hivemind.transport import HivemindTransport
from waggle.network.transport.interface import ConnectedPeer, Services
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, epoch_at
from waggle.tasks.rollout_group import Completion, Verdict
from waggle.tasks.sandbox.verifier import Verifier


async def test_groups_made_by_one_node_arrive_judged_at_the_other(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier
) -> None:
    node = await start("one", seeds=(seed_address,))
    other = await start("other", seeds=(seed_address,))
    await other.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    ids = question_ids(charter, verifier, node.identity.peer_id, 3)
    groups = answered(charter, verifier, node.identity.peer_id, ids)

    travelled, size = share(node.node, groups, round_number=7)
    arrived = await other.ear.hear(GroupsArrived)

    assert (travelled, size > 0) == (3, True)
    assert (arrived.origin, arrived.round, arrived.model) == (node.identity.peer_id, 7, "starter")
    assert [each.group for each in arrived.groups] == groups
    for each in arrived.groups:
        assert each.question == verifier.questions([each.group.id.key(charter.digest, node.identity.peer_id)])[0]
        assert each.rewards[0] == 1.0
        assert max(each.rewards[1:]) < 0.2
    assert other.node.waiting() == arrived.groups


async def test_sharing_is_counted_on_both_sides(start: Start, seed_address: str, charter: Charter, verifier: Verifier) -> None:
    node = await start("one", seeds=(seed_address,))
    other = await start("other", seeds=(seed_address,))
    ids = question_ids(charter, verifier, node.identity.peer_id, 2)
    _, size = share(node.node, answered(charter, verifier, node.identity.peer_id, ids))
    arrived = await other.ear.hear(GroupsArrived)

    other.node.take(arrived.groups[:1])
    assert other.node.waiting() == arrived.groups[1:]
    other.node.discard(arrived.groups[1:])
    assert other.node.waiting() == ()

    there = await other.ear.peer(node.identity.peer_id, lambda news: (news.peer.used, news.peer.idle) == (1, 1))
    assert (there.peer.received, there.peer.useful, there.peer.rejected, there.peer.model) == (2, 2, 0, "starter")
    assert there.peer.mean_reward == pytest.approx(1 / 3, abs=0.1)
    await node.ear.peer(other.identity.peer_id, lambda news: news.peer.taken == 2)
    assert (await node.ear.hear(TrafficMeasured, lambda news: news.up > 0)).up == pytest.approx(size / 5)
    assert (await other.ear.hear(TrafficMeasured, lambda news: news.down > 0)).down == pytest.approx(size / 5)
    connected = await other.ear.peer(node.identity.peer_id, lambda news: news.peer.delay_ms is not None)
    assert connected.peer.connection == "lan", "both are on this computer"


async def test_each_node_gets_the_others_groups_and_never_its_own(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier
) -> None:
    nodes = [await start(name, seeds=(seed_address,)) for name in ("one", "two", "three")]
    for each in nodes:
        ids = question_ids(charter, verifier, each.identity.peer_id, 1)
        share(each.node, answered(charter, verifier, each.identity.peer_id, ids))

    for each in nodes:
        others = {other.identity.peer_id for other in nodes} - {each.identity.peer_id}
        for other in others:
            await each.ear.hear(GroupsArrived, lambda news, other=other: news.origin == other)
        assert {judged.group.origin for judged in each.node.waiting()} == others
        assert len(each.ear.all(GroupsArrived)) == 2
        assert each.ear.all(RecordRejected) == []


async def test_round_after_round_arrives_and_a_group_sent_again_counts_once(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier
) -> None:
    node = await start("one", seeds=(seed_address,))
    other = await start("other", seeds=(seed_address,))
    first, second = answered(charter, verifier, node.identity.peer_id, question_ids(charter, verifier, node.identity.peer_id, 2))
    share(node.node, [first], round_number=1)
    await other.ear.hear(GroupsArrived, lambda news: news.round == 1)

    share(node.node, [first, second], round_number=2)

    later = await other.ear.hear(GroupsArrived, lambda news: news.round == 2)
    assert [judged.group for judged in later.groups] == [second]
    assert len(other.node.waiting()) == 2


async def test_reserved_questions_are_refused_and_the_others_of_the_record_kept(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier
) -> None:
    node = await start("one", seeds=(seed_address,))
    other = await start("other", seeds=(seed_address,))
    peer_id = node.identity.peer_id
    epoch = epoch_at(time.time())
    reserved, free = (question_ids(charter, verifier, peer_id, 1, reserved=which, epoch=epoch) for which in (True, False))
    ids = reserved + free
    groups = answered(charter, verifier, peer_id, ids)

    share(node.node, groups)

    dropped = await other.ear.hear(RecordRejected)
    assert (dropped.origin, dropped.reason) == (peer_id, Fault.RESERVED_QUESTION)
    arrived = await other.ear.hear(GroupsArrived)
    assert [judged.group for judged in arrived.groups] == groups[1:]
    await other.ear.peer(peer_id, lambda news: news.peer.rejected == 1 and news.peer.received == 1)


async def test_a_payload_that_is_not_what_was_announced_is_refused_once(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "waggle.network")
    other = await start("other", seeds=(seed_address,))
    liar = fresh_identity(tmp_path, "liar")
    now = time.time()
    announced = Announcement(
        charter=charter.digest, sha256=bytes(32), size=500, round=1, epoch=epoch_at(now), specialties=1, model="m",
        expires=int((now + 200) * 1000),
    )  # fmt: skip

    async def lie(peer_id: bytes, sha256: bytes) -> bytes:
        return b"other"

    dht = await open_network(options(), liar, Services(payload=lie), port=0)
    try:
        await dht.connect(seed_address)
        await dht.find_neighbours()
        signed = announcements.signed(announced, liar)
        await dht.announce(directory.key_of(charter.digest, 0, 0), liar.peer_id, signed, announced.expires_at)
        dropped = await other.ear.hear(RecordRejected)
        await other.ear.peer(liar.peer_id, lambda news: news.peer.rejected == 1)

        # A valid record that arrives later shows that the directory was read since, and that the liar was not asked.
        node = await start("one", seeds=(seed_address,))
        ids = question_ids(charter, verifier, node.identity.peer_id, 1)
        share(node.node, answered(charter, verifier, node.identity.peer_id, ids))
        await other.ear.hear(GroupsArrived)
    finally:
        await dht.close()

    assert (dropped.origin, dropped.reason) == (liar.peer_id, Fault.OTHER_PAYLOAD)
    who = f"{short_id(liar.peer_id)} ({name_of(liar.peer_id)})"
    why = "not the payload that was announced; nothing is pulled from it for 60 s"
    assert f"a message of peer {who} is refused: {why}" in caplog.messages
    assert text_of(liar.peer_id) not in caplog.text
    assert len(other.ear.all(RecordRejected)) == 1


async def test_sharing_goes_on_after_the_network_process_was_killed(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier
) -> None:
    node = await start("one", seeds=(seed_address,))
    other = await start("other", seeds=(seed_address,))
    first, second = answered(charter, verifier, node.identity.peer_id, question_ids(charter, verifier, node.identity.peer_id, 2))
    share(node.node, [first], round_number=1)
    await other.ear.hear(GroupsArrived)

    os.kill(node.node.transport.pid, signal.SIGKILL)
    await node.ear.hear(NetworkRestarted)
    share(node.node, [second], round_number=2)

    arrived = await other.ear.hear(GroupsArrived, lambda news: news.round == 2)
    assert [judged.group for judged in arrived.groups] == [second]
    assert arrived.origin == node.identity.peer_id


async def test_the_round_may_share_from_its_own_thread(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier
) -> None:
    node = await start("one", seeds=(seed_address,))
    other = await start("other", seeds=(seed_address,))
    groups = answered(charter, verifier, node.identity.peer_id, question_ids(charter, verifier, node.identity.peer_id, 1))

    await asyncio.to_thread(share, node.node, groups)

    assert (await other.ear.hear(GroupsArrived)).groups[0].group == groups[0]


async def test_a_node_that_left_shares_nothing_and_fails_nothing(start: Start, charter: Charter, verifier: Verifier) -> None:
    node = await start("one")
    running = asyncio.create_task(node.node.run())
    groups = answered(charter, verifier, node.identity.peer_id, question_ids(charter, verifier, node.identity.peer_id, 1))
    await node.node.close()
    await node.node.close()

    assert share(node.node, groups) == (0, 0)
    await running


async def test_a_fault_in_the_background_is_raised_where_the_node_is_watched(start: Start, charter: Charter) -> None:
    node = await start("one")

    def fail(news: object) -> None:
        raise ZeroDivisionError

    node.node._context = replace(node.node._context, report=fail)  # called for traffic and reputations
    node.node._reputations.record_rejection(b"peer", "noise")
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(node.node.run(), SOON)


async def test_groups_that_may_not_travel_stay_here(start: Start, charter: Charter, verifier: Verifier) -> None:
    node = await start("one")
    (group,) = answered(charter, verifier, node.identity.peer_id, question_ids(charter, verifier, node.identity.peer_id, 1))
    broken = msgspec.structs.replace(group, completions=(Completion(text="\ufffd", ended=True),) * 3)

    assert share(node.node, [broken]) == (0, 0)
    assert share(node.node, [group, broken]) == share(node.node, [group])
    assert share(node.node, [group])[0] == 1


async def test_one_source_gets_its_share_of_our_upload_and_another_its_own(
    start: Start, charter: Charter, verifier: Verifier
) -> None:
    node = await start("one")
    groups = answered(charter, verifier, node.identity.peer_id, question_ids(charter, verifier, node.identity.peer_id, 1))
    _, size = share(node.node, groups)
    async with asyncio.timeout(SOON):
        while not node.node._publisher._published:
            await asyncio.sleep(0.01)
    (sha256,) = node.node._publisher._published
    node.node._upload_limit = AddressRangeRateLimit(rate=0.0, burst=2.5 * size)
    node.node._reputations.update_connections(
        {b"a": ("direct", "8.8.4.0/24"), b"b": ("direct", "8.8.4.0/24"), b"c": ("direct", "")}
    )

    payloads = [bool(await node.node._give_payload(peer, sha256)) for peer in (b"a", b"b", b"b", b"c")]

    assert payloads == [True, True, False, True]


async def test_also_peers_beyond_those_whose_standing_is_kept_share_the_calls_of_their_range(
    charter: Charter, identity: Identity, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.transport.hivemind.call_limits.CALLS_RATE", 0.0)
    node = open_node(options(), charter, identity, verifier, Ear())
    assert isinstance(node.transport, HivemindTransport)
    limits, request = CallLimits(node.transport._callbacks.services), SimpleNamespace(ByteSize=lambda: 2)
    crowd = [
        ConnectedPeer(PEER_ID_PREFIX + i.to_bytes(32, "big"), "/ip4/8.8.4.1/tcp/1", relayed=False) for i in range(MAX_PEERS + 20)
    ]
    node._update_connections(crowd, {})
    answered = 0
    with suppress(CallRefused):
        for peer in crowd[MAX_PEERS:]:
            for _ in range(int(CALLS_BURST)):
                await limits.admit(peer.peer_id, request)
                answered += 1
    assert answered == RANGE * CALLS_BURST


async def test_what_arrives_from_a_peer_that_was_just_muted_is_not_kept(
    start: Start, charter: Charter, verifier: Verifier
) -> None:
    node, origin = await start("one"), judged(1, 1).group.origin
    arrived = VerifiedRecord(RolloutRecord(origin=origin, round=1, epoch=1, model="m", groups=()), (judged(1, 1),), reserved=0)
    node.node.choose(origin, "muted")
    node.node._collector._add_to_pool(origin, arrived)
    assert node.ear.all(GroupsArrived) == []


async def test_while_a_node_is_held_it_pulls_nothing_and_then_goes_on(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier
) -> None:
    node, other = await start("one", seeds=(seed_address,)), await start("other", seeds=(seed_address,))
    resting = asyncio.Event()
    collector = other.node._collector
    collector._context = replace(collector._context, is_paused=lambda: not resting.is_set())
    groups = answered(charter, verifier, node.identity.peer_id, question_ids(charter, verifier, node.identity.peer_id, 1))
    share(node.node, groups)
    received = asyncio.Event()
    other.node._collector._on_announcements = lambda announced: received.set() if node.identity.peer_id in announced else None
    async with asyncio.timeout(SOON):
        for _ in range(3):  # it keeps reading the directory, and pulls nothing
            received.clear()
            await received.wait()
    assert other.ear.all(GroupsArrived) == []
    assert not node.node._reputations.of(other.identity.peer_id).taken

    resting.set()
    await other.ear.hear(GroupsArrived)


async def test_a_verifier_killed_over_a_record_is_nobodys_offence(tmp_path: Path, charter: Charter) -> None:
    class Dying(Verifier):
        """A verifier that is killed from outside when it gets a peer's text."""

        def judge_strangers(self, items: Iterable[tuple[Question, Completion]]) -> list[Verdict]:
            os.kill(self.pid, signal.SIGKILL)
            return super().judge_strangers(items)

    dying, peer = Dying(charter), fresh_identity(tmp_path, "peer")
    try:
        node = open_node(options(), charter, fresh_identity(tmp_path, "own"), dying, Ear())
        now = time.time()
        groups = tuple(answered(charter, dying, peer.peer_id, question_ids(charter, dying, peer.peer_id, 1)))
        blob = encode(RolloutRecord(origin=peer.peer_id, round=1, epoch=epoch_at(now), model="m", groups=groups), charter)
        announced = Announcement(
            charter=charter.digest, sha256=hashlib.sha256(blob).digest(), size=len(blob), round=1, epoch=epoch_at(now),
            specialties=1, model="m", expires=1,
        )  # fmt: skip
        await node._collector._accept(node.transport, peer.peer_id, announced, blob, now)
        assert node._reputations.of(peer.peer_id).rejected == 0
        assert node.waiting() == ()
    finally:
        dying.close()


async def test_a_swarm_goes_on_when_its_only_seed_is_gone_and_who_was_away_finds_it_by_peers_remembered(
    start: Start, charter: Charter, verifier: Verifier, tmp_path: Path
) -> None:
    remembered = tmp_path / "known_peers.json"
    async with serving(fresh_identity(tmp_path, "seed"), charter) as seed:
        node = await start("one", seeds=(seed,))
        other = await start("other", seeds=(seed,))
        away = await start("away", seeds=(seed,), known_peers=remembered)
        for live in (node, other, away):
            await live.ear.hear(ReachChanged, lambda news: news.peers >= 3)
        async with asyncio.timeout(SOON):
            while len(peer_cache.read(remembered)) < 3:
                await asyncio.sleep(0.1)
        await away.node.close()

    first, second = answered(charter, verifier, node.identity.peer_id, question_ids(charter, verifier, node.identity.peer_id, 2))
    share(node.node, [first], round_number=1)
    await other.ear.hear(GroupsArrived, lambda news: news.round == 1)

    back = await start("away", seeds=(seed,), known_peers=remembered)
    share(node.node, [second], round_number=2)
    await back.ear.hear(GroupsArrived, lambda news: news.origin == node.identity.peer_id)
