"""A peer, an address range or a crowd of new names gets only its share of a live node's round, however much it sends."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostile.conftest import StartAttacker, round_of
from network.loopback import SOON, Start, answered, be_of_use, fresh_identity, question_ids, share
from waggle.core.peer_id import text_of
from waggle.network.limits.address_ranges import source_of
from waggle.network.messages import directory
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.directory import OVER_SAMPLE
from waggle.network.messages.events import GroupsArrived, ReachChanged
from waggle.network.messages.rollout_record import MAX_GROUPS
from waggle.network.transport import interface
from waggle.sapo import stages
from waggle.sapo.stages import UNBOUNDED
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security import attacks
from waggle_lab.security.attacker import Attacker
from waggle_lab.security.attacks import Payload, Scene

FRIENDS = 3
NAMES = 100
PLACES = 8  # all of them for external groups
RULES = replace(stages.RoundSettings(), local=0, external=PLACES)
RIGHT, WRONG = "<answer>{truth}</answer>", "<answer>no</answer>"


def _strong(scene: Scene) -> Payload:
    """As many groups as a record can hold, each with the strongest pull."""
    return attacks.wire(scene, attacks.answering(scene, "basic_arithmetic", [RIGHT, WRONG], count=MAX_GROUPS))


def _gentle(scene: Scene) -> Payload:
    """A few groups, each with half as much to learn."""
    return attacks.wire(scene, attacks.answering(scene, "basic_arithmetic", [RIGHT] * 15 + [WRONG], count=3))


@pytest.mark.parametrize(
    ("hostile", "of_use", "one_range"),
    [(1, True, False), (2, True, True), (2, False, False)],
    ids=["one peer", "one address range", "new names"],
)
async def test_of_places_and_gradient_nobody_gets_more_than_a_quarter_however_much_it_sends(
    start: Start, seed_address: str, attacker: StartAttacker, scene_of: Callable[[Attacker], Scene], charter: Charter,
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch, hostile: int, of_use: bool, one_range: bool,
) -> None:  # fmt: skip
    victim = await start("victim", seeds=(seed_address,))
    await victim.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    crowd = [await attacker(f"hostile {number}") for number in range(hostile)]
    friends = [await attacker(f"friend {number}") for number in range(FRIENDS)]
    for each in (*friends, *(crowd if of_use else ())):
        be_of_use(victim.node._reputations, each.identity.peer_id)
    if one_range:
        _come_from_one_range(crowd, monkeypatch)
        await victim.node._refresh_peers()  # those that are connected already come from there, too
    for payload, senders in ((_gentle, friends), (_strong, crowd)):
        await asyncio.gather(*(each.attack(payload, scene_of(each)) for each in senders))
        for each in senders:
            await victim.ear.hear(GroupsArrived, lambda news, each=each: news.origin == each.identity.peer_id)
    names = {each.identity.peer_id for each in crowd}
    assert sum(judged.group.origin in names for judged in victim.node.waiting()) == 64, "a quarter of what waits"

    bounded = await asyncio.to_thread(round_of, victim, charter, verifier, RULES)
    without = await asyncio.to_thread(round_of, victim, charter, verifier, replace(RULES, bounds=UNBOUNDED))

    assert [len(played.lessons) for played in (bounded, without)] == [PLACES, PLACES]
    assert _places(bounded, names) == PLACES / 4
    assert _pull(bounded, names) < 1 / 3, "a quarter of the pull of all, and the others pull no more than before"
    assert _places(without, names) > PLACES / 2 < PLACES * _pull(without, names), "what they sent would have filled the round"


async def test_half_of_those_asked_have_standing_however_many_names_announce(
    start: Start, seed_address: str, attacker: StartAttacker, scene_of: Callable[[Attacker], Scene], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    looks: list[tuple[set[bytes], list[bytes]]] = []  # who had something new, and who was asked for it

    def choose(announced: Mapping[bytes, Announcement], **named: Any) -> list[bytes]:
        chosen = choosing(announced, **named)
        looks.append((set(announced) - set(named["avoid"]), chosen))
        return chosen

    choosing = directory.choose_peers
    monkeypatch.setattr(directory, "choose_peers", choose)
    friends = [await attacker(f"friend {number}") for number in range(FRIENDS)]
    hostile, names = await attacker("hostile"), [fresh_identity(tmp_path, f"name {number}") for number in range(NAMES)]
    assert await hostile.announce_crowd(names) == NAMES
    victim = await start("victim", seeds=(seed_address,), peers_per_pull=2 * FRIENDS - OVER_SAMPLE, tempo=1.0, patience=4.0)
    for friend in friends:
        be_of_use(victim.node._reputations, friend.identity.peer_id)
        await friend.attack(_gentle, scene_of(friend))
    for friend in friends:
        await victim.ear.hear(GroupsArrived, lambda news, friend=friend: news.origin == friend.identity.peer_id)

    crowd, welcome = {name.peer_id for name in names}, {friend.identity.peer_id for friend in friends}
    called = set[bytes]()
    assert max(len(new & crowd) for new, _ in looks) > NAMES / 2, "it was there"
    for new, chosen in looks:
        assert (new & welcome) - called <= set(chosen), "trusted peers do not wait for a crowd"
        called |= set(chosen) & welcome


async def test_under_a_limit_who_asks_for_payloads_all_the_time_leaves_the_others_their_part(
    start: Start, seed_address: str, attacker: StartAttacker, charter: Charter, verifier: Verifier
) -> None:
    victim = await start("victim", seeds=(seed_address,))
    asks = question_ids(charter, verifier, victim.identity.peer_id, 1)
    _, size = share(victim.node, answered(charter, verifier, victim.identity.peer_id, asks))
    greedy, honest = await attacker("greedy"), await attacker("honest")
    for each in (greedy, honest):
        await each.network.connect((await victim.node.addresses())[0])
    async with asyncio.timeout(SOON):
        while not victim.node._publisher._published:
            await asyncio.sleep(0.01)
    (sha256,) = victim.node._publisher._published
    now = 0.0
    victim.node._bandwidth._clock = lambda: now
    victim.node.limit(float(size))  # one payload a second

    async def has_payload(asker: Attacker) -> bool:
        return bool(await asker.network.pull(victim.identity.peer_id, sha256, SOON))

    had = []
    for second in range(8):
        now = float(second)
        had.append((await has_payload(greedy), await has_payload(honest) if second % 2 else False))

    assert had[:4] == [(True, False), (True, False), (False, False), (False, True)], "a peer that has got nothing goes first"
    assert had[4:] == [(True, False)] * 3 + [(False, True)], "a peer that asks rarely gets its quarter, and no share is wasted"


def _come_from_one_range(peers: Iterable[Attacker], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let them appear to call from public addresses, which this computer does not have."""
    texts = [text_of(each.identity.peer_id) for each in peers]

    def source(address: str, *, relayed: bool) -> str:
        return "8.8.4.0/24" if address.endswith(tuple(texts)) else source_of(address, relayed=relayed)

    monkeypatch.setattr(interface, "source_of", source)


def _places(played: stages.Learned, names: set[bytes]) -> int:
    return sum(lesson.group.group.origin in names for lesson in played.lessons)


def _pull(played: stages.Learned, names: set[bytes]) -> float:
    pulls = [(lesson.group.group.origin in names, lesson.pull) for lesson in played.lessons]
    return sum(pull for theirs, pull in pulls if theirs) / sum(pull for _, pull in pulls)
