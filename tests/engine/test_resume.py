"""Test that a node that was stopped and started again continues bit for bit."""

import numpy as np
import pytest

from waggle.core import paths
from waggle.models.backend import OpenedPolicy, open_policy
from waggle.models.storage import checkpoint
from waggle.models.storage.checkpoint import CheckpointState
from waggle.rl import update_rules
from waggle.sapo.fakes import FakeSwarm
from waggle.sapo.round import play
from waggle.sapo.stages import Judged, Learned, Node, RoundSettings
from waggle.tasks.charter import first_swarm
from waggle.tasks.questions import QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup

CHARTER = first_swarm()
PEER, ME = b"p" * 38, b"m" * 38
EPOCH = 1000


def peers_groups(verifier, number: int) -> list[JudgedGroup]:
    """Four groups with one right completion each, so that every round learns something."""
    groups = []
    for index in range(4):
        question_id = QuestionId("binary_matrix", EPOCH, 100 * number + index)
        key = ("binary_matrix", question_id.key(CHARTER.digest, PEER).seed)
        (question,), (answer,) = verifier.questions([key]), verifier.answers([key])
        texts = (f"<answer>{answer}</answer>", answer, "1", "2")
        group = Group(origin=PEER, id=question_id, completions=tuple(Completion(text=text, ended=True) for text in texts))
        verdicts = tuple(verifier.judge([(question, completion) for completion in group.completions]))
        groups.append(JudgedGroup(group=group, question=question, verdicts=verdicts))
    return groups


def play_one(opened: OpenedPolicy, verifier, number: int, rule: str) -> tuple[Judged, Learned]:
    node = Node(
        policy=opened.policy,
        tokenizer=opened.tokenizer,
        swarm=FakeSwarm(peers_groups(verifier, number)),
        verifier=verifier,
        charter=CHARTER,
        origin=ME,
        seed=7,
    )
    stages = list(play(number, EPOCH, node, RoundSettings(warmup_steps=1, rule=update_rules.rule(rule))))
    return stages[1], stages[-1]


def opened() -> OpenedPolicy:
    return open_policy(paths.starter(), device="cpu", threads=1)


@pytest.mark.parametrize("rule", ["grpo", "ppo"])
def test_the_round_after_a_restart_is_the_round_that_would_have_been(verifier, tmp_path, rule):
    straight = opened()
    for number in range(2):
        _, learned = play_one(straight, verifier, number, rule)
        assert learned.metrics is not None
    base = checkpoint.base_of(paths.starter())
    saved = CheckpointState(round=2, step=straight.policy.steps, epoch=EPOCH, charter=CHARTER.digest.hex(), base=base)
    checkpoint.save(tmp_path, straight.policy, saved)

    reopened = opened()
    assert checkpoint.load_newest(tmp_path, reopened.policy, base) == (saved, [])
    first, second = (play_one(each, verifier, saved.round, rule) for each in (straight, reopened))
    assert first[0] == second[0], "it drew or answered otherwise"
    for name, array in straight.policy.state()[0].items():
        assert np.array_equal(array, reopened.policy.state()[0][name]), name
    assert straight.policy.state()[1].keys() == reopened.policy.state()[1].keys()
    for name, array in straight.policy.state()[1].items():
        assert np.array_equal(array, reopened.policy.state()[1][name]), name
