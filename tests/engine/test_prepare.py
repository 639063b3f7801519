"""What a person chose reaches the round."""

import asyncio
import typing
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import pytest

from waggle import paths
from waggle.engine.gate import Gate
from waggle.engine.prepare import Prepared, prepare
from waggle.engine.teller import Teller
from waggle.errors import SettingsError
from waggle.rl.rules import RULES
from waggle.settings import Learning, Settings, Swarm


async def prepared(folder, learning: Learning) -> Prepared:
    home = paths.Home(folder).prepare()
    chosen = Settings(swarm=Swarm(solo=True), learning=learning)
    async with AsyncExitStack() as stack:
        teller = Teller(home.events)
        stack.callback(teller.close)
        threads = stack.enter_context(ThreadPoolExecutor(1))
        return await prepare(home, chosen, teller, threads, stack, gate=Gate(lambda: None), stopped=asyncio.Event())


async def test_the_rule_and_the_specialties_that_were_chosen_are_played_by(tmp_path):
    made = await prepared(tmp_path, Learning(rule="dr_grpo", specialties=("bf", "arc_1d"), held_out_questions=1))
    assert made.rules.rule is RULES["dr_grpo"]
    assert made.node.specialties == ("bf", "arc_1d")
    assert {question.dataset for question in made.held_out} > {"bf", "arc_1d"}, "the honest score covers the whole charter"


async def test_a_specialty_the_swarm_does_not_have_is_answered_with_those_it_has(tmp_path):
    with pytest.raises(SettingsError, match="has no specialty chess") as caught:
        await prepared(tmp_path, Learning(specialties=("bf", "chess")))
    assert "base_conversion" in caught.value.advice
    assert not paths.Home(tmp_path).identity.exists(), "refused before anything was made"


def test_the_settings_offer_exactly_the_rules_there_are():
    assert set(typing.get_args(typing.get_type_hints(Learning)["rule"])) == set(RULES)
