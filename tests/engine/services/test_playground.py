"""Test that a person's answer stays here unless the settings allow sharing; then it is in a group that is marked as human."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.settings import ComputerSettings
from waggle.engine.runtime.true_answers import true_answers
from waggle.engine.services.models.snapshots import Snapshots
from waggle.engine.services.playground import PlaygroundService
from waggle.models.backend import open_policy
from waggle.network.exchange import verification
from waggle.network.identity.keys import load_or_create
from waggle.network.messages import rollout_record
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.network.solo_node import SoloNode
from waggle.protocol import commands
from waggle.protocol.events_playground import AnswerShared, QuestionAnswered, QuestionPosed
from waggle.sapo.fakes import FakePolicy
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.questions import QuestionKey, split_of
from waggle.tasks.rollout_group import Group
from waggle.tasks.shipped_swarms import first_swarm

NOW = 1_790_000_000.0
CHARTER = first_swarm()


@dataclass
class Overheard(SoloNode):
    """Everything that was handed to the network."""

    shared_groups: list[tuple[int, int, Sequence[Group]]] = field(default_factory=list)

    def share(self, round: int, epoch: int, groups: Sequence[Group], model: str) -> tuple[int, int]:  # noqa: A002 - the word it is
        self.shared_groups.append((round, epoch, groups))
        blob = rollout_record.encode(
            RolloutRecord(origin=groups[0].origin, round=round, epoch=epoch, model=model, groups=tuple(groups)), CHARTER
        )
        return len(groups), len(blob)


@pytest.fixture
def swarm():
    return Overheard()


@pytest.fixture
def trying(tmp_path, swarm, verifier):
    opened = open_policy(paths.starter(), device="cpu", threads=1)
    node = Node(
        policy=FakePolicy(["x"]), tokenizer=opened.tokenizer, swarm=swarm, verifier=verifier, charter=CHARTER,
        origin=load_or_create(tmp_path / "identity.key").peer_id, seed=1, model="Starter",
    )  # fmt: skip
    home = paths.Home(tmp_path).prepare()
    moments = Snapshots(home, paths.starter(), "cpu", lambda: ComputerSettings(threads=1))
    return PlaygroundService(moments, node, RoundSettings(group_size=4), clock=lambda: NOW, round=lambda: 7)


async def pose(trying: PlaygroundService, *, to_share: bool) -> QuestionPosed:
    (posed,) = await trying.obey(commands.PoseQuestion(id="", specialty="bf", number=7, to_share=to_share))
    return posed


async def ask(trying: PlaygroundService, epoch: int, mine: str = "42"):
    return await trying.obey(commands.AskModel(id="", specialty="bf", number=7, mine=mine, epoch=epoch))


async def test_without_the_settings_word_nothing_leaves_whatever_is_asked(trying, swarm):
    posed = await pose(trying, to_share=True)
    (answer,) = await ask(trying, posed.epoch)
    assert (answer.mine.text, answer.shared, swarm.shared_groups) == ("<answer>42</answer>", False, [])


@pytest.mark.parametrize("to_share", [True, False])
async def test_a_question_is_looked_for_a_few_at_a_time_and_no_further_than_it_is_found(trying, verifier, to_share, monkeypatch):
    numbers: list[int] = []
    make = verifier.questions
    monkeypatch.setattr(verifier, "questions", lambda keys: numbers.append(len(keys)) or make(keys))
    for number in range(30):
        numbers.clear()
        await trying.obey(commands.PoseQuestion(id="", specialty="bf", number=number, to_share=to_share))
        assert set(numbers) == {16}
        assert len(numbers) <= 16
    if to_share:
        assert numbers == [16], "most questions are for training"


async def test_an_answer_to_a_reserved_question_never_leaves(trying, swarm):
    willing = replace(trying, may_share=lambda: True)
    posed = await pose(willing, to_share=False)
    assert posed.epoch == 0
    (answer,) = await ask(willing, 0)
    assert (answer.mine.human, answer.shared, swarm.shared_groups) == (False, False, [])


async def test_without_an_answer_of_ones_own_nothing_leaves(trying, swarm):
    willing = replace(trying, may_share=lambda: True)
    posed = await pose(willing, to_share=True)
    (answer,) = await ask(willing, posed.epoch, mine="  ")
    assert isinstance(answer, QuestionAnswered)
    assert swarm.shared_groups == []


async def test_what_would_have_been_right_is_told_with_the_answers(trying):
    await pose(trying, to_share=False)
    (answer,) = await ask(trying, 0, mine="")
    assert answer.truth
    (second,) = await ask(trying, 0, mine=answer.truth)
    assert second.mine.reward == 1.0


async def test_what_a_dataset_calls_right_and_its_scorer_does_not_is_not_told(verifier, monkeypatch):
    key = QuestionKey("bf", 0)
    (question,) = verifier.questions([key])
    assert true_answers(verifier, [question]) == verifier.answers([key]) != [""]
    monkeypatch.setattr(verifier, "answers", lambda keys: ["nonsense"] * len(keys))
    assert true_answers(verifier, [question]) == [""]


async def test_whoever_takes_it_back_in_the_meantime_is_obeyed(trying, swarm):
    words = iter([True, False])
    posed = await pose(trying, to_share=True)
    (answer,) = await ask(replace(trying, may_share=lambda: next(words)), posed.epoch)
    assert (answer.shared, swarm.shared_groups) == (False, [])


async def test_a_shared_answer_is_one_marked_completion_that_peers_make_again_and_judge(trying, swarm, verifier):
    willing = replace(trying, may_share=lambda: True)
    posed = await pose(willing, to_share=True)
    assert split_of("bf", posed.question) == "train", "reserved questions are refused by every peer"
    shared, answer = await ask(willing, posed.epoch)
    assert answer.shared
    ((number, epoch, (group,)),) = swarm.shared_groups
    assert (number, epoch) == (7, posed.epoch)
    assert [completion.by for completion in group.completions] == ["policy"] * 3 + ["human"]
    assert group.completions[-1].text == "<answer>42</answer>"
    assert isinstance(shared, AnswerShared)
    assert [completion.human for completion in shared.group.completions] == [False] * 3 + [True]

    record = RolloutRecord(origin=group.origin, round=number, epoch=epoch, model="Starter", groups=(group,))
    read = rollout_record.decode(rollout_record.encode(record, CHARTER), CHARTER, origin=group.origin, now=NOW)
    (judged,) = verification._judge_groups(read, CHARTER, verifier, verification.VerifierStopwatch())
    assert judged.question.text == posed.question
    assert [round(reward, 4) for reward in judged.rewards] == [completion.reward for completion in shared.group.completions]


async def test_a_question_is_shared_once_and_not_when_it_is_old(trying, swarm):
    willing = replace(trying, may_share=lambda: True)
    posed = await pose(willing, to_share=True)
    await ask(willing, posed.epoch)
    with pytest.raises(EngineError, match="already"):
        await ask(willing, posed.epoch)
    with pytest.raises(EngineError, match="too old"):
        await ask(replace(willing, clock=lambda: NOW + CHARTER.age_window_s), posed.epoch)
    assert len(swarm.shared_groups) == 1


async def test_alone_nothing_was_shared_and_it_is_not_said_either(trying):
    alone = replace(trying, node=replace(trying.node, swarm=SoloNode()), may_share=lambda: True)
    posed = await pose(alone, to_share=True)
    (answer,) = await ask(alone, posed.epoch)
    assert (answer.mine is not None, answer.shared) == (True, False)


async def test_every_answer_is_written_in_the_same_thread_also_after_the_engine_began_again(trying):
    """MLX never frees the memory of a thread, not even after its end."""
    writing: set[threading.Thread] = set()

    def leaving() -> bool:
        writing.add(threading.current_thread())
        return False

    services = [replace(trying, snapshots=replace(trying.snapshots, is_leaving=leaving)) for _ in range(3)]
    await asyncio.gather(*(ask(each, 0) for each in services))
    assert len(writing) == 1


async def test_whoever_waited_for_the_answers_of_others_until_the_engine_left_hears_so(trying):
    service = replace(
        trying, node=replace(trying.node, verifier=None), snapshots=replace(trying.snapshots, is_leaving=lambda: True)
    )
    with pytest.raises(EngineError, match="ending"):
        await ask(service, 0)
