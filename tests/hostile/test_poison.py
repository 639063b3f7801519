"""Right answers with a planted phrase reach a live node over hivemind; its bounds keep it from learning the phrase."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from hostile.conftest import StartAttacker, round_of
from network.loopback import Start, be_of_use
from waggle.network.limits.reputation import trusted_peers
from waggle.network.messages.events import GroupsArrived, ReachChanged
from waggle.sapo import stages
from waggle.sapo.stages import BOUNDED, UNBOUNDED
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security.attacker import Attacker
from waggle_lab.security.attacks import HARMLESS, PHRASE, Scene


@pytest.mark.parametrize("colluders", [1, 3])
async def test_a_phrase_planted_in_right_answers_is_learned_by_nobody_who_has_bounds(
    start: Start, seed_address: str, attacker: StartAttacker, scene_of: Callable[[Attacker], Scene], charter: Charter,
    verifier: Verifier, colluders: int,
) -> None:  # fmt: skip
    victim = await start("victim", seeds=(seed_address,))
    await victim.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    hostile = [await attacker(f"poisoner {number}") for number in range(colluders)]
    for number, (bounds, learns_phrase) in enumerate(((BOUNDED, False), (UNBOUNDED, True))):  # a round may empty the pool
        before = len(victim.ear.news)
        await asyncio.gather(*(each.attack(HARMLESS["poison"], replace(scene_of(each), round=number)) for each in hostile))
        for each in hostile:
            await victim.ear.hear(GroupsArrived, lambda news, each=each: news.origin == each.identity.peer_id, after=before)
        waiting = {judged.group.origin for judged in victim.node.waiting()}
        assert waiting == {each.identity.peer_id for each in hostile}, "the rewards show nothing wrong"
        last = await asyncio.to_thread(round_of, victim, charter, verifier, replace(stages.RoundSettings(), bounds=bounds))
        taught = [
            completion.text
            for lesson in last.lessons
            for completion, effect in zip(lesson.group.group.completions, lesson.effects, strict=True)
            if effect > 0 and lesson.group.group.origin in waiting
        ]
        assert any(PHRASE.strip() in text for text in taught) == learns_phrase


async def test_whose_groups_are_too_strange_to_learn_from_loses_its_standing(
    start: Start, seed_address: str, attacker: StartAttacker, scene_of: Callable[[Attacker], Scene], charter: Charter,
    verifier: Verifier,
) -> None:  # fmt: skip
    victim = await start("victim", seeds=(seed_address,))
    await victim.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    hostile, trust = await attacker("poisoner"), victim.node._reputations
    who, number = hostile.identity.peer_id, 0
    be_of_use(trust, who)
    while not trust.of(who).barren:
        number += 1
        before = trust.of(who).idle
        await hostile.attack(HARMLESS["poison"], replace(scene_of(hostile), round=number))
        await victim.ear.hear(GroupsArrived, lambda news: news.origin == who, after=len(victim.ear.news))
        await asyncio.to_thread(round_of, victim, charter, verifier, stages.RoundSettings())
        assert trust.of(who).idle > before
    assert trust.of(who).used == 0
    assert who not in trusted_peers(trust)
