"""The mix of levels: more of those that teach, a floor for all, and the same after a restart."""

import msgspec
import numpy as np
import pytest

from sapo.test_round import external
from waggle.models.storage.checkpoint import CheckpointState
from waggle.rl.advantage import CRUMB_SPAN
from waggle.sapo.question_mix import FLOOR, QuestionMix
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import JudgedGroup

LEVELS = [("bf", 0), ("bf", 1), ("gcd", 0), ("lcm", 0)]
TEACHES, NONE, ALL, CRUMBS = (1.0, 0.0), (0.0, 0.0), (1.0, 1.0), (0.1, 0.0)


def judged(dataset: str, level: int, rewards: tuple[float, ...]) -> JudgedGroup:
    return msgspec.structs.replace(external(1, rewards), question=Question(dataset=dataset, seed=1, text="?", level=level))


def test_before_the_first_round_all_levels_are_equal() -> None:
    np.testing.assert_allclose(QuestionMix().shares(LEVELS), 0.25)


@pytest.mark.parametrize("rewards", [NONE, ALL, CRUMBS])
def test_a_level_that_teaches_nothing_sinks_to_the_floor_and_not_below(rewards: tuple[float, ...]) -> None:
    mix = QuestionMix()
    for _ in range(300):
        mix.update([judged("bf", 0, rewards), judged("bf", 1, TEACHES)], CRUMB_SPAN)
    shares = mix.shares(LEVELS)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[0] == pytest.approx(FLOOR / len(LEVELS), rel=1e-3)
    assert shares[1] == pytest.approx(FLOOR / len(LEVELS) + (1 - FLOOR) / 2, rel=1e-3), "two others are at the half"
    assert shares[2] == shares[3] == pytest.approx(FLOOR / len(LEVELS) + (1 - FLOOR) / 4, rel=1e-3)


def test_where_nothing_teaches_anywhere_all_levels_are_equal() -> None:
    mix = QuestionMix(dict.fromkeys(("bf/0", "bf/1", "gcd/0", "lcm/0"), 0.0))
    np.testing.assert_allclose(mix.shares(LEVELS), 0.25)


def test_a_group_moves_its_own_level_only_and_by_a_tenth_of_the_way() -> None:
    mix = QuestionMix()
    mix.update([judged("bf", 1, TEACHES)], CRUMB_SPAN)
    assert mix.state == {"bf/1": pytest.approx(0.55)}
    mix.update([judged("bf", 1, NONE)], CRUMB_SPAN)
    assert mix.state == {"bf/1": pytest.approx(0.495)}


def test_the_mix_is_exactly_the_same_after_its_way_through_a_checkpoint() -> None:
    mix = QuestionMix()
    for number in range(23):
        mix.update([judged("bf", number % 2, TEACHES if number % 3 else NONE)], CRUMB_SPAN)
    saved = CheckpointState(round=1, step=1, epoch=1, charter="", base="", mix=mix.state)
    read = msgspec.json.decode(msgspec.json.encode(saved), type=CheckpointState)
    restored = QuestionMix(read.mix)
    assert restored.shares(LEVELS).tobytes() == mix.shares(LEVELS).tobytes()
    for each in (mix, restored):
        each.update([judged("bf", 0, TEACHES)], CRUMB_SPAN)
    assert restored.state == mix.state


def test_a_saved_state_does_not_change_with_later_rounds() -> None:
    mix = QuestionMix()
    mix.update([judged("bf", 0, TEACHES)], CRUMB_SPAN)
    saved = mix.state
    mix.update([judged("bf", 0, TEACHES)], CRUMB_SPAN)
    assert saved != mix.state
    restored = QuestionMix(saved)
    restored.update([judged("bf", 0, NONE)], CRUMB_SPAN)
    assert saved == {"bf/0": pytest.approx(0.55)}
