"""Test that a node that was stopped and started again continues bit for bit."""

from pathlib import Path

import numpy as np
import pytest

from waggle.core import paths
from waggle.engine.storage.round_saver import RecordingPolicy
from waggle.models.backend import OpenedPolicy, open_policy
from waggle.models.storage import checkpoint, training_journal
from waggle.models.storage.checkpoint import CheckpointState
from waggle.rl import update_rules
from waggle.sapo.fakes import FakeSwarm
from waggle.sapo.interfaces import Policy
from waggle.sapo.question_mix import QuestionMix
from waggle.sapo.round import play
from waggle.sapo.stages import Judged, Learned, Node, RoundSettings
from waggle.tasks.questions import QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup
from waggle.tasks.shipped_swarms import first_swarm

CHARTER = first_swarm()
PEER, ME = b"p" * 38, b"m" * 38
EPOCH = 1000
LEARNED_MIX = {f"{specialty.dataset}/0": 0.01 for specialty in CHARTER.specialties} | {"binary_matrix/0": 0.9}


def peers_groups(verifier, number: int) -> list[JudgedGroup]:
    """Four groups with one right completion each, so that every round learns something."""
    groups = []
    for index in range(4):
        question_id = QuestionId("binary_matrix", EPOCH, 100 * number + index)
        key = question_id.key(CHARTER.digest, PEER)
        (question,), (answer,) = verifier.questions([key]), verifier.answers([key])
        texts = (f"<answer>{answer}</answer>", answer, "1", "2")
        group = Group(origin=PEER, id=question_id, completions=tuple(Completion(text=text, ended=True) for text in texts))
        verdicts = tuple(verifier.judge([(question, completion) for completion in group.completions]))
        groups.append(JudgedGroup(group=group, question=question, verdicts=verdicts))
    return groups


def play_one(
    opened: OpenedPolicy, verifier, number: int, rule: str, mix: QuestionMix, updates: int = 1, policy: Policy | None = None
) -> tuple[Judged, Learned]:
    node = Node(
        policy=policy or opened.policy,
        tokenizer=opened.tokenizer,
        swarm=FakeSwarm(peers_groups(verifier, number)),
        verifier=verifier,
        charter=CHARTER,
        origin=ME,
        seed=7,
        mix=mix,
    )
    settings = RoundSettings(warmup_steps=1, rule=update_rules.rule(rule), updates=updates)
    *_, judged, _, _, learned = play(number, EPOCH, node, settings)
    return judged, learned


def opened() -> OpenedPolicy:
    return open_policy(paths.starter(), device="cpu", threads=1)


def reopened_again(folder: Path, base: str) -> OpenedPolicy:
    policy = opened()
    checkpoint.load_newest(folder, policy.policy, base)
    return policy


@pytest.mark.parametrize("rule", ["grpo", "dapo", "gspo", "ppo"])
def test_rounds_of_several_steps_are_learned_again_bit_for_bit(verifier, tmp_path, rule):
    """The journal has what the clip of later steps refers to, of own completions and of peers' ones."""
    straight, replayed, mix = opened(), opened(), QuestionMix(LEARNED_MIX)
    recording, clipped = RecordingPolicy(straight.policy), []
    for number in range(2):
        _, learned = play_one(straight, verifier, number, rule, mix, 4, recording)
        clipped.append(learned.metrics.clip_fraction)
        saved = CheckpointState(round=number + 1, step=straight.policy.steps, epoch=EPOCH, charter="", base="b")
        training_journal.append(tmp_path, 0, training_journal.entry_of(saved, recording.steps_of_round))
    assert straight.policy.steps == 8
    assert max(clipped) > 0.0, "no ratio left its range: the test shows little"
    for entry in training_journal.entries(tmp_path, 0, "b"):
        training_journal.learn_again(replayed.policy.step, entry)
    for mine, theirs in zip(straight.policy.state(), replayed.policy.state(), strict=True):
        assert mine.keys() == theirs.keys()
        for name, array in mine.items():
            assert np.array_equal(array, theirs[name]), name


@pytest.mark.parametrize("rule", ["grpo", "ppo"])
def test_the_round_after_a_restart_is_the_round_that_would_have_been(verifier, tmp_path, rule):
    straight, mix = opened(), QuestionMix(LEARNED_MIX)
    for number in range(2):
        _, learned = play_one(straight, verifier, number, rule, mix)
        assert learned.metrics is not None
    base = checkpoint.base_of(paths.starter())
    saved = CheckpointState(
        round=2, step=straight.policy.steps, epoch=EPOCH, charter=CHARTER.digest.hex(), base=base, mix=mix.state
    )
    assert saved.mix != LEARNED_MIX, "two rounds changed it"
    checkpoint.save(tmp_path, straight.policy, saved)

    reopened = opened()
    restored, damaged = checkpoint.load_newest(tmp_path, reopened.policy, base)
    assert (restored, damaged) == (saved, [])
    first, second = (
        play_one(each, verifier, saved.round, rule, its_mix)
        for each, its_mix in ((straight, mix), (reopened, QuestionMix(restored.mix)))
    )
    forgetful, _ = play_one(reopened_again(tmp_path, base), verifier, saved.round, rule, QuestionMix())
    assert [group.question for group in forgetful.groups] != [group.question for group in first[0].groups], "the mix matters"
    assert first[0] == second[0], "it drew or answered otherwise"
    for name, array in straight.policy.state()[0].items():
        assert np.array_equal(array, reopened.policy.state()[0][name]), name
    assert straight.policy.state()[1].keys() == reopened.policy.state()[1].keys()
    for name, array in straight.policy.state()[1].items():
        assert np.array_equal(array, reopened.policy.state()[1][name]), name
