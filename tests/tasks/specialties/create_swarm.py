"""Run in a copy of the product with the dataset of docs/adding/: create a swarm with it, and judge answers in two verifiers."""

import asyncio
from contextlib import closing
from pathlib import Path

from waggle.core import paths
from waggle.core.settings import Settings
from waggle.engine.services.swarms.swarms import SwarmService
from waggle.gui.application.main import application
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.pages.swarms.create_form import CreateSwarmForm
from waggle.gui.theme.theme import Theme
from waggle.protocol.commands import CreateSwarm, ListSwarms
from waggle.tasks import charter as charters
from waggle.tasks.questions import QuestionKey, split_of
from waggle.tasks.rollout_group import Completion
from waggle.tasks.sandbox.exam import exam_of
from waggle.tasks.sandbox.verifier import Verifier

NAME = "roman_numerals"


def nothing(*_):
    raise AssertionError("no restart and no change of settings")


home = paths.Home(Path("home")).prepare()
service = SwarmService(home, Settings(), nothing, nothing)
(listed,) = asyncio.run(service.obey(ListSwarms(id="1")))
offer = next(offer for offer in listed.offers if offer.dataset == NAME)
assert list(offer.samples) == ["easy", "standard", "hard"], offer
assert "Roman numerals?" in offer.samples["easy"], offer

application()
theme = Theme("light")
form = CreateSwarmForm(theme, EngineClient())
form._specialties.show_offers(listed.offers)
assert "Roman numerals  \u00b7  not verified" in [item.text() for item in form._specialties._items()]

created, *_ = asyncio.run(service.obey(CreateSwarm(id="2", name="Rome", specialties=((NAME, "easy"), ("bf", "easy")))))
assert created.swarm.specialties[0].levels == ("easy",)
assert created.swarm.specialties[0].sample == offer.samples["easy"]
charter = charters.read(home.charters / f"{created.swarm.charter}.json", expected=bytes.fromhex(created.swarm.charter))

with closing(Verifier(charter)) as here, closing(Verifier(charter)) as peer:
    here.check_charter()
    peer.check_charter()
    seeds = [QuestionKey(NAME, (1 << 63) - 1 - number) for number in range(20)]
    questions, answers = here.questions(seeds), peer.answers(seeds)
    assert questions == peer.questions(seeds)
    assert len({question.text for question in questions}) == 20
    texts = [f"<answer>{answer.lower()}</answer>" for answer in answers]
    judged = peer.judge((question, Completion(text=text, ended=True)) for question, text in zip(questions, texts, strict=True))
    assert all(verdict.reward == 1 and verdict.exact for verdict in judged), judged
    wrong = peer.judge((question, Completion(text="<answer>MMM</answer>", ended=True)) for question in questions)
    assert all(verdict.reward == 0 for verdict in wrong), wrong
    reserved = here.held_out(NAME, "test", 8)
    assert len(reserved) == 8
    assert all(split_of(NAME, question.text) == "test" for question in reserved)
    assert sum(question.dataset == NAME for question in exam_of(here, charter, 7).questions) == 8
