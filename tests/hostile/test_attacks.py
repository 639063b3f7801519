"""Hostile peers against a live node over real hivemind: each defence refuses its attack, and honest groups still arrive."""

import asyncio
import dataclasses
import functools
import math
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from hostile.conftest import StartAttacker, honest_one
from network.loopback import SOON, Live, Start, answered, be_of_use, fresh_identity, question_ids, share
from waggle.core import paths
from waggle.core.errors import BadRecord, VerifierKilled
from waggle.models.tokenizer import load as load_tokenizer
from waggle.network.exchange import collector
from waggle.network.exchange.collector import MAX_PULL_BYTES
from waggle.network.limits.rate_limits import TOGETHER, WORK_RATE, JointRateLimit, Payers
from waggle.network.limits.reputation import DOUBT_S, TRUSTED_PART, trusted_peers
from waggle.network.messages import directory, rollout_record
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.events import GroupsArrived, ReachChanged, RecordRejected
from waggle.network.messages.faults import Fault
from waggle.network.messages.handshake import Handshake
from waggle.network.messages.rollout_record import MAX_BLOB
from waggle.network.transport.hivemind import call_limits
from waggle.network.transport.hivemind.call_limits import CALLS_BURST
from waggle.network.transport.interface import PeerAway
from waggle.rl.advantage import teaches
from waggle.sapo.fakes import plain_prompter
from waggle.sapo.stages import RoundSettings
from waggle.sapo.training_groups import encode_external
from waggle.tasks.charter import PROTOCOL, Charter
from waggle.tasks.questions import QuestionKey
from waggle.tasks.rollout_group import NEWCOMERS, RIGHT, Completion
from waggle.tasks.sandbox import child_process
from waggle.tasks.sandbox import verifier as verifying
from waggle.tasks.sandbox.mended_datasets import CRUMB
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security import attacks
from waggle_lab.security.attacker import Attacker
from waggle_lab.security.attacks import HARMLESS, REFUSED, Payload, Scene

SceneOf = Callable[[Attacker], Scene]
Arrives = Callable[[], Awaitable[Live]]


def slow_answers(scene: Scene) -> Payload:
    """As much work as texts can cause a scorer."""
    slow = ["<answer>{truth}</answer>", *[f"<answer>[[{'1,' * 180}1]]</answer>"] * 15]
    return attacks.wire(scene, attacks.answering(scene, "binary_matrix", slow, count=10))


@pytest.fixture
async def victim(start: Start, seed_address: str) -> Live:
    node = await start("victim", seeds=(seed_address,))
    await node.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    return node


@pytest.fixture
def honest_arrives(start: Start, seed_address: str, charter: Charter, verifier: Verifier, victim: Live) -> Arrives:
    return functools.partial(honest_one, start, seed_address, charter, verifier, victim)


async def test_every_bad_payload_is_refused_for_its_own_reason_and_its_sender_not_asked_again(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, honest_arrives: Arrives
) -> None:
    hostile = {name: await attacker(name) for name in REFUSED}
    began = time.time()
    await asyncio.gather(*(each.attack(REFUSED[name][0], scene_of(each)) for name, each in hostile.items()))

    for name, each in hostile.items():
        dropped = await victim.ear.hear(RecordRejected, lambda news, each=each: news.origin == each.identity.peer_id)
        assert dropped.reason == REFUSED[name][1], name
        assert victim.node._reputations.of(each.identity.peer_id).doubted_until >= began + DOUBT_S

    await honest_arrives()
    assert {judged.group.origin for judged in victim.node.waiting()}.isdisjoint(
        each.identity.peer_id for each in hostile.values()
    )
    assert len(victim.ear.all(RecordRejected)) == len(REFUSED)


async def test_code_and_lies_in_answers_are_judged_and_of_no_effect(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, tmp_path: Path
) -> None:
    for name in ("code in answers", "wrong answers"):
        hostile = await attacker(name)
        await hostile.attack(HARMLESS[name], scene_of(hostile))
        arrived = await victim.ear.hear(GroupsArrived, lambda news, author=hostile: news.origin == author.identity.peer_id)
        for judged in arrived.groups:
            lies = judged.rewards[:4]
            assert max(lies) < RIGHT, (name, judged)
    assert not (tmp_path / "canary").exists()


async def test_groups_that_teach_nothing_take_no_place_and_cost_their_sender_its_trust(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, honest_arrives: Arrives
) -> None:
    hostile, trust = await attacker("idler"), victim.node._reputations
    who = hostile.identity.peer_id
    be_of_use(trust, who)
    useful, rounds = trust.of(who).useful, 0
    while who in trusted_peers(trust):
        rounds += 1
        await hostile.attack(attacks.useless, dataclasses.replace(scene_of(hostile), round=rounds))
        arrived = await victim.ear.hear(GroupsArrived, lambda news: news.origin == who, after=len(victim.ear.news))
        assert len(arrived.groups) == rollout_record.MAX_GROUPS
    assert rounds == math.ceil(useful * TRUSTED_PART / rollout_record.MAX_GROUPS)
    assert (trust.of(who).useful, trust.of(who).rejected) == (useful, 0)
    assert victim.node.waiting() == ()
    await honest_arrives()


async def test_nothing_of_a_nearly_right_answer_is_taught(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, verifier: Verifier, charter: Charter
) -> None:
    hostile = await attacker("nearly right answers")
    await hostile.attack(attacks.nearly_right, scene_of(hostile))
    arrived = await victim.ear.hear(GroupsArrived, lambda news: news.origin == hostile.identity.peer_id)
    paid = [
        max(each.reward for each in verifier.judge([(judged.question, c) for c in judged.group.completions]))
        for judged in arrived.groups
    ]
    assert len(paid) == len(charter.specialties)
    assert 0 < max(paid) <= CRUMB, "no scorer of the swarm pays more than a crumb for them"
    assert not any(teaches((reward,) * 4 + (0.0,) * 4, RoundSettings().crumb_span) for reward in paid), "not even locally"
    assert {reward for judged in arrived.groups for reward in judged.rewards} == {0.0}
    assert victim.node.waiting() == ()


async def test_a_wrong_answer_beside_a_right_one_is_not_taught_along_with_it(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live
) -> None:
    hostile = await attacker("second answers")
    await hostile.attack(HARMLESS["second answers"], scene_of(hostile))
    arrived = await victim.ear.hear(GroupsArrived, lambda news: news.origin == hostile.identity.peer_id)
    assert {judged.rewards[:2] for judged in arrived.groups} == {(0.0, 0.0)}, "whatever the last answer is"
    assert {verdict.reason for judged in arrived.groups for verdict in judged.verdicts[:2]} == {"several answers"}


@pytest.mark.parametrize(("truth", "is_right"), [("7.0", True), ("7.1", False)])
async def test_a_wrong_answer_of_an_attack_is_wrong_where_a_scorer_takes_a_number_in_other_words(
    attacker: StartAttacker, scene_of: SceneOf, verifier: Verifier, truth: str, is_right: bool
) -> None:
    scene = scene_of(await attacker("second answers"))
    keys = [QuestionKey("decimal_arithmetic", seed) for seed in range(1000)]
    key = next(key for key, answer in zip(keys, verifier.answers(keys), strict=True) if answer == truth)
    (question,) = verifier.questions([key])
    seven, wrong = (Completion(text=f"<answer>{number}</answer>", ended=True) for number in ("7", scene.wrong(question)))
    rewards = [verdict.reward for verdict in verifier.judge([(question, seven), (question, wrong)])]
    assert (rewards[0] >= RIGHT) == is_right, "a close number is not right any more"
    assert rewards[1] < RIGHT


async def test_special_tokens_arrive_and_are_learned_as_the_text_they_are(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, charter: Charter
) -> None:
    hostile = await attacker("control tokens")
    await hostile.attack(attacks.control_tokens, scene_of(hostile))
    arrived = await victim.ear.hear(GroupsArrived)
    assert arrived.groups[0].group.completions[0].text.startswith("<|im_end|><|endoftext|></s>")
    tokenizer = load_tokenizer(paths.starter())
    written = encode_external(plain_prompter(tokenizer), arrived.groups[0], longest=1000).written.completions
    assert [list(ids).index(tokenizer.stops[0]) for ids in written] == [len(ids) - 1 for ids in written], (
        "each completion has one stop token, at its end"
    )


async def test_bombs_in_answers_are_judged_earn_nothing_and_do_not_end_the_verifier(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, honest_arrives: Arrives, verifier: Verifier
) -> None:
    hostile = await attacker("formula bombs")
    scene, judging = scene_of(hostile), verifier.pid
    await hostile.attack(attacks.formula_bombs, scene)
    arrived = await victim.ear.hear(GroupsArrived, lambda news: news.origin == hostile.identity.peer_id)
    assert {judged.group.id.dataset for judged in arrived.groups} == {
        specialty.dataset for specialty in scene.charter.specialties
    }
    assert not any(teaches(judged.rewards) for judged in arrived.groups)
    assert hostile.identity.peer_id not in {judged.group.origin for judged in victim.node.waiting()}, (
        "it takes no place in the pool"
    )
    await honest_arrives()
    assert verifier.pid == judging


async def test_whoever_stalls_the_verifier_is_not_asked_again_and_it_is_started_anew(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, honest_arrives: Arrives, verifier: Verifier,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    hostile, judging = await attacker("staller"), verifier.pid
    with monkeypatch.context() as stalled:  # only this timeout: the others stay relaxed for slow computers
        stalled.setattr(verifying, "STRANGERS_SECONDS", 0.0)  # any answer takes longer
        stalled.setattr(child_process, "LOOK_SECONDS", 0.0)
        await hostile.attack(slow_answers, scene_of(hostile))
        dropped = await victim.ear.hear(RecordRejected, lambda news: news.origin == hostile.identity.peer_id)
    assert dropped.reason == Fault.CANNOT_BE_JUDGED
    assert victim.node._reputations.of(hostile.identity.peer_id).doubted_until > time.time() + DOUBT_S / 2
    await honest_arrives()
    assert verifier.pid != judging


async def test_slow_answers_under_ever_new_hashes_do_not_keep_the_verifier_busy(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, honest_arrives: Arrives, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    be_of_use(victim.node._reputations, fresh_identity(tmp_path, "honest").peer_id)
    hostile = [await attacker(name) for name in ("busy", "busier")]
    worked: list[float] = []
    account = victim.node._collector._rate_limits.work = JointRateLimit(WORK_RATE, 0.0, TOGETHER)
    count = account.charge

    def charge(payers: Payers, seconds: float) -> None:
        count(payers, seconds)
        if payers[1] == NEWCOMERS:
            worked.append(seconds)

    monkeypatch.setattr(account, "charge", charge)

    def slow_payload(each: Attacker, number: int) -> Payload:
        return slow_answers(dataclasses.replace(scene_of(each), round=number))

    payloads = [(each, await asyncio.to_thread(slow_payload, each, number)) for number in range(12) for each in hostile]

    async def go_on() -> None:
        for each, payload in payloads:
            before = each.pulled[victim.identity.peer_id]
            each.offer(payload)
            while each.pulled[victim.identity.peer_id] == before:
                await asyncio.sleep(0.01)

    flood = asyncio.create_task(go_on())
    try:
        async with asyncio.timeout(SOON):
            while not worked:
                await asyncio.sleep(0.01)
        began = time.monotonic()
        await honest_arrives()
        await asyncio.sleep(8.0)
    finally:
        flood.cancel()
    assert sum(worked[1:]) < (time.monotonic() - began) * TOGETHER * WORK_RATE + max(worked), (
        "the last judgement is charged afterwards"
    )


@pytest.mark.parametrize(("name", "most"), [("slow drip", 100), ("oversize", MAX_PULL_BYTES)])
async def test_what_drips_or_never_ends_is_cut_off_and_holds_nobody_up(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, honest_arrives: Arrives, name: str, most: int
) -> None:
    hostile = await attacker(name)
    await hostile.attack(HARMLESS[name], scene_of(hostile))
    async with asyncio.timeout(SOON):
        while not hostile.pulled[victim.identity.peer_id]:  # until it waits for the payload
            await asyncio.sleep(0.01)
    await honest_arrives()
    async with asyncio.timeout(SOON):
        while not hostile.cut_off[victim.identity.peer_id]:
            await asyncio.sleep(0.01)
    assert 0 < hostile.written / hostile.pulled.total() < most


async def test_what_only_claims_to_be_large_does_not_use_up_what_a_person_allows(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, honest_arrives: Arrives
) -> None:
    victim.node.limit(MAX_BLOB / 1000)
    hostile = await attacker("boaster")
    small = attacks.slow_drip(scene_of(hostile))
    hostile.offer(dataclasses.replace(small, pace_s=0.0, changes={"size": MAX_BLOB}))
    async with asyncio.timeout(SOON):
        while not hostile.pulled[victim.identity.peer_id]:
            await asyncio.sleep(0.01)
    await honest_arrives()


async def test_junk_under_ever_new_names_is_pulled_until_their_part_is_used_up_and_no_trusted_peer_pays_for_it(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, honest_arrives: Arrives, tmp_path: Path
) -> None:
    looking = victim.node._collector
    looking._rate_limits.pulls = JointRateLimit(rate=0.0, burst=1e6, times=1.0)
    be_of_use(victim.node._reputations, fresh_identity(tmp_path, "honest").peer_id)
    first, second = await attacker("first name"), await attacker("second name")
    first.offer(Payload(os.urandom(1_500_000), epoch=scene_of(first).epoch, changes={"size": 1}))
    await victim.ear.hear(RecordRejected, lambda news: news.origin == first.identity.peer_id)

    tell, directory_read = looking._on_announcements, asyncio.Event()

    def hear(announced: Mapping[bytes, Announcement]) -> None:
        tell(announced)
        if second.identity.peer_id in announced:
            directory_read.set()

    looking._on_announcements = hear
    second.offer(Payload(os.urandom(1000), epoch=scene_of(second).epoch))
    await asyncio.wait_for(directory_read.wait(), SOON)
    await honest_arrives()
    assert [each.pulled[victim.identity.peer_id] for each in (first, second)] == [1, 0], "the honest node pulled it, too"


async def test_a_flood_of_groups_fills_a_quarter_of_the_pool_at_most_and_ends_no_looking(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, honest_arrives: Arrives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "SLOWER", math.inf)
    hostile = await attacker("flood")
    await hostile.attack(attacks.flood, scene_of(hostile))
    arrived = await victim.ear.hear(GroupsArrived)
    assert len(arrived.groups) == 128
    assert len(victim.node.waiting()) == 64
    await honest_arrives()


async def test_new_names_on_one_computer_fill_a_quarter_of_the_pool_together(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live
) -> None:
    for name in ("first name", "second name"):
        hostile = await attacker(name)
        await hostile.attack(attacks.flood, scene_of(hostile))
        await victim.ear.hear(GroupsArrived, lambda news, origin=hostile.identity.peer_id: news.origin == origin)
    assert {group.source for group in victim.node.waiting()} == {NEWCOMERS}
    assert len(victim.node.waiting()) == 64


async def test_what_waits_of_a_stranger_is_gone_with_its_first_offence(
    attacker: StartAttacker, scene_of: SceneOf, victim: Live, honest_arrives: Arrives
) -> None:
    hostile = await attacker("false friend")
    await hostile.attack(attacks.flood, scene_of(hostile))
    await victim.ear.hear(GroupsArrived, lambda news: news.origin == hostile.identity.peer_id)
    honest = await honest_arrives()
    await hostile.attack(attacks.control_characters, dataclasses.replace(scene_of(hostile), round=2))
    await victim.ear.hear(RecordRejected, lambda news: news.origin == hostile.identity.peer_id)
    assert {group.group.origin for group in victim.node.waiting()} == {honest.identity.peer_id}


async def test_a_flood_of_calls_by_several_at_once_is_cut_off_for_its_senders_alone(
    start: Start, attacker: StartAttacker, seed_address: str, charter: Charter, verifier: Verifier,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(call_limits, "CALLS_RATE", 0.0)  # or a slow computer would never reach the limit
        victim = await start("victim", seeds=(seed_address,))
    await victim.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    hostile = [await attacker(f"caller {number}") for number in range(3)]
    address = (await victim.node.transport.network.addresses())[0]
    await asyncio.gather(*(each.network.connect(address) for each in hostile))

    floods = [asyncio.create_task(each.flood([victim.identity.peer_id], int(2 * CALLS_BURST))) for each in hostile]
    await honest_one(start, seed_address, charter, verifier, victim)

    assert max(await asyncio.gather(*floods)) <= CALLS_BURST


async def test_a_verifier_that_was_killed_from_outside_is_not_the_senders_offence(
    attacker: StartAttacker, scene_of: SceneOf, verifier: Verifier
) -> None:
    hostile = await attacker("unlucky")
    scene = scene_of(hostile)
    ((_, question),) = scene.questions("bf")
    os.kill(verifier.pid, signal.SIGKILL)
    with pytest.raises(VerifierKilled):
        verifier.judge_strangers([(question, Completion(text="<answer>1</answer>", ended=True))])
    assert verifier.judge_strangers([(question, Completion(text="<answer>1</answer>", ended=True))])


async def test_a_greeting_may_not_carry_what_another_announced(attacker: StartAttacker, scene_of: SceneOf, victim: Live) -> None:
    author, thief = await attacker("one"), await attacker("thief")
    author.offer(attacks.wire(scene_of(author), []))
    thief._announced = author._announced

    dropped = await victim.ear.hear(RecordRejected, lambda news: news.origin == thief.identity.peer_id)

    assert dropped.reason == Fault.FORGED_ANNOUNCEMENT


@pytest.mark.parametrize(
    ("theirs", "says"),
    [
        (Handshake(PROTOCOL + 1, "9.0", bytes(32)), "update this Waggle"),
        (Handshake(PROTOCOL - 1, "0.0.1", bytes(32)), "it must be updated"),
        (Handshake(PROTOCOL, "0.1", bytes(32)), "another charter"),
    ],
)
async def test_a_node_of_another_kind_is_refused_with_a_sentence(
    attacker: StartAttacker, victim: Live, theirs: Handshake, says: str
) -> None:
    other = await attacker("other")
    other.greeting = msgspec.msgpack.encode(theirs)
    peer_news = await victim.ear.peer(other.identity.peer_id, lambda news: bool(news.peer.refusal))
    assert says in peer_news.peer.refusal
    assert other.identity.peer_id in victim.node._reputations.avoided()


async def test_a_muted_peer_is_not_learned_from_and_a_blocked_one_gets_nothing_either(
    charter: Charter, verifier: Verifier, victim: Live, honest_arrives: Arrives
) -> None:
    honest = await honest_arrives()
    peer_id = honest.identity.peer_id
    ids = question_ids(charter, verifier, victim.identity.peer_id, 1)
    share(victim.node, answered(charter, verifier, victim.identity.peer_id, ids))
    await honest.ear.hear(GroupsArrived)

    victim.node.choose(peer_id, "muted")

    assert victim.node.waiting() == ()
    assert peer_id in victim.node._reputations.avoided()
    dht = honest.node.transport.network
    assert await dht.fetch_handshake(victim.identity.peer_id)

    victim.node.choose(peer_id, "blocked")

    with pytest.raises(PeerAway):
        await dht.fetch_handshake(victim.identity.peer_id)

    victim.node.choose(peer_id, "")

    assert await dht.fetch_handshake(victim.identity.peer_id)


async def test_a_crowd_of_made_up_names_in_the_directory_keeps_nobody_from_being_heard(
    attacker: StartAttacker, charter: Charter, victim: Live, honest_arrives: Arrives, tmp_path: Path
) -> None:
    hostile = [await attacker(f"crowd {number}") for number in range(2)]
    names = [fresh_identity(tmp_path, f"name {number}") for number in range(2 * 160)]  # more than their share of a shard
    await asyncio.gather(*(each.announce_crowd(names[i::2]) for i, each in enumerate(hostile)))
    shard = await victim.node.transport.network.read_directory(directory.key_of(charter.digest, 0, 0))
    assert len(shard) > 200, "each replica holds SHARD_CAP of them at most; a read puts several together"

    await honest_arrives()


def test_every_attack_of_the_table_makes_a_payload(charter: Charter, verifier: Verifier, identity, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    scene = Scene(charter=charter, verifier=verifier, identity=identity, now=time.time(), canary=str(tmp_path / "canary"))
    for name, attack in attacks.ATTACKS.items():
        assert isinstance(attack(scene), Payload), name


def test_whoever_presents_anothers_groups_is_never_that_other(charter: Charter, verifier: Verifier) -> None:
    for last in (b"\0", b"\1"):
        me: Any = SimpleNamespace(peer_id=bytes(37) + last)
        scene = Scene(charter=charter, verifier=verifier, identity=me, now=time.time(), canary="")
        with pytest.raises(BadRecord, match=Fault.OTHER_ORIGIN):
            rollout_record.decode(attacks.anothers_groups(scene).blob, charter, origin=me.peer_id, now=scene.now)
