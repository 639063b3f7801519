"""The update rules against numbers worked by hand."""

import numpy as np
import pytest

from waggle.core.errors import SettingsError
from waggle.rl.advantage import CRUMB_SPAN
from waggle.rl.objective import Clip
from waggle.rl.update_rules import dapo, dr_grpo, grpo, gspo, ppo, rule, table
from waggle.rl.update_rules.interface import ScoredGroup

GROUPED = (grpo, dr_grpo, dapo, gspo)  # rules that compare a completion with its group


def scored(rewards, lengths, **also) -> ScoredGroup:
    shared = {"groups": 8, "tokens": 100, "longest": 24, "crumb_span": CRUMB_SPAN}
    return ScoredGroup(rewards=tuple(rewards), lengths=tuple(lengths), **(shared | also))


@pytest.mark.parametrize("module", [grpo, dr_grpo, dapo, gspo, ppo], ids=lambda module: module.RULE.name)
def test_a_rule_names_its_source(module):
    assert "arXiv" in module.__doc__


@pytest.mark.parametrize("module", GROUPED, ids=lambda module: module.RULE.name)
@pytest.mark.parametrize("rewards", [[0.0] * 4, [1.0] * 4, [0.05, 0.0, 0.01, 0.05], [0.9, 1.0, 1.0, 0.95]])
def test_equal_rewards_and_crumbs_pull_at_no_token(module, rewards):
    assert not module.teach(scored(rewards, [1, 2, 3, 4])).advantage.any()


def test_a_single_success_under_grpo_dapo_and_gspo_is_root_three_at_each_of_its_tokens():
    # mean 1/4, standard deviation sqrt(3)/4
    expected = [3**0.5] * 3 + [-(3**-0.5)] * 4
    for module in (grpo, dapo, gspo):
        np.testing.assert_allclose(module.teach(scored([1, 0, 0, 0], [3, 1, 1, 2])).advantage, expected, rtol=1e-3)


def test_a_single_success_under_dr_grpo_is_its_distance_from_the_mean():
    advantage = dr_grpo.teach(scored([1, 0, 0, 0], [3, 1, 1, 2])).advantage
    np.testing.assert_allclose(advantage, [0.75] * 3 + [-0.25] * 4)


def test_a_smaller_span_lets_crumbs_teach():
    assert grpo.teach(scored([0.05, 0.0], [1, 1], crumb_span=0.0)).advantage.any()


def test_grpo_takes_the_mean_over_tokens_then_completions_then_groups():
    # 8 groups of 2 completions: a completion weighs 1/16, its tokens share that
    weight = grpo.teach(scored([1, 0], [2, 10])).weight
    np.testing.assert_allclose(weight, [1 / 32] * 2 + [1 / 160] * 10)
    assert grpo.teach(scored([1, 0, 0, 1], [3, 3, 3, 3])).weight.sum() == pytest.approx(1 / 8)


def test_dr_grpo_divides_by_a_constant_whatever_the_length():
    # 8 groups, 2 completions, 24 tokens at most: 1 / 384 a token
    np.testing.assert_allclose(dr_grpo.teach(scored([1, 0], [2, 10])).weight, [1 / 384] * 12)


def test_dapo_weighs_every_token_of_the_training_set_alike():
    np.testing.assert_allclose(dapo.teach(scored([1, 0], [2, 10])).weight, [1 / 100] * 12)
    parts = [dapo.teach(scored([1, 0], lengths, tokens=20)).weight.sum() for lengths in ([2, 10], [3, 5])]
    assert sum(parts) == pytest.approx(1.0)


def test_the_last_fifth_of_the_tokens_costs_up_to_a_whole_reward_under_dapo():
    # longest 40: a buffer of 8 from token 32 on. 35 tokens cost 3/8, 40 cost 1
    penalty = dapo.overlong_penalty(np.array([1, 32, 33, 35, 36, 40]), 40)
    np.testing.assert_allclose(penalty, [0, 0, -0.125, -0.375, -0.5, -1])
    with_papers_numbers = dapo.overlong_penalty(np.array([16_384, 18_432, 20_480]), 20_480)
    np.testing.assert_allclose(with_papers_numbers, [0, -0.5, -1], atol=1e-6)


def test_a_long_right_answer_counts_less_than_a_short_one_under_dapo():
    # rewards 1 - .5, 1, 0, 0 - 1: mean 1/8, squared distances 9/64, 49/64, 1/64, 81/64: std sqrt(35)/8
    teaching = dapo.teach(scored([1, 1, 0, 0], [36, 2, 2, 40], longest=40))
    by_completion = teaching.advantage[[0, 36, 38, 40]]
    np.testing.assert_allclose(by_completion, np.array([3, 7, -1, -9]) / 35**0.5, rtol=1e-3)


def test_a_group_that_is_all_wrong_or_all_right_teaches_dapo_no_length():
    for rewards in ([0, 0], [1, 1], [0.05, 0]):
        assert not dapo.teach(scored(rewards, [2, 40], longest=40)).advantage.any()


def test_gspo_gives_a_completion_the_weight_of_grpo():
    np.testing.assert_allclose(gspo.teach(scored([1, 0], [2, 10])).weight, [1 / 32] * 2 + [1 / 160] * 10)


def test_a_large_group_counts_like_a_small_one_under_grpo_and_more_under_dapo():
    small, large = scored([1, 0], [3, 3]), scored([1, 0] * 8, [3] * 16)
    assert grpo.teach(small).weight.sum() == pytest.approx(grpo.teach(large).weight.sum())
    assert dapo.teach(large).weight.sum() == pytest.approx(8 * dapo.teach(small).weight.sum())


def test_gae_of_three_tokens_by_hand():
    # values .2 .4 .5, reward 1: deltas .2, .1, .5
    # A_3 = .5, A_2 = .1 + .95 * .5 = .575, A_1 = .2 + .95 * .575 = .74625
    advantage = ppo.advantages(1.0, np.array([0.2, 0.4, 0.5], np.float32))
    np.testing.assert_allclose(advantage, [0.74625, 0.575, 0.5], rtol=1e-6)


def test_gae_without_a_critic_is_the_reward_faded_towards_the_start():
    np.testing.assert_allclose(ppo.advantages(1.0, np.zeros(3, np.float32)), [0.95**2, 0.95, 1.0], rtol=1e-6)


def test_ppo_keeps_completions_apart_and_gives_the_critic_what_it_should_have_foretold():
    values = np.array([0.5, 0.5, 0.0, 0.25, 0.5], np.float32)
    teaching = ppo.teach(scored([1, 0], [2, 3], values=values))
    # first: deltas 0, .5; second, reward 0: deltas .25, .25, -.5
    first = [0.95 * 0.5, 0.5]
    second = [0.25 + 0.95 * (0.25 - 0.95 * 0.5), 0.25 - 0.95 * 0.5, -0.5]
    np.testing.assert_allclose(teaching.advantage, [*first, *second], rtol=1e-6)
    np.testing.assert_allclose(teaching.returns, values + teaching.advantage, rtol=1e-6)
    np.testing.assert_allclose(teaching.returns[[1, 4]], [1.0, 0.0], atol=1e-7)  # at the last token: the reward itself
    np.testing.assert_allclose(teaching.weight, [1 / 32] * 2 + [1 / 48] * 3)


def test_ppo_learns_from_equal_rewards_because_it_compares_with_what_was_expected():
    teaching = ppo.teach(scored([1, 1], [1, 1], values=np.array([0.25, 0.75], np.float32)))
    np.testing.assert_allclose(teaching.advantage, [0.75, 0.25])


def test_crumbs_of_a_group_count_as_their_mean_under_ppo():
    teaching = ppo.teach(scored([0.06, 0.0], [1, 1], values=np.array([0.01, 0.01], np.float32)))
    np.testing.assert_allclose(teaching.advantage, [0.02, 0.02], rtol=1e-5)
    np.testing.assert_allclose(teaching.returns, [0.03, 0.03], rtol=1e-5)


def test_ppo_and_gspo_have_the_clips_of_their_papers_and_the_others_that_of_sapo():
    assert {name: each.clip for name, each in table().items()} == {
        "grpo": Clip(0.2, 0.28),
        "dr_grpo": Clip(0.2, 0.28),
        "dapo": Clip(0.2, 0.28),
        "gspo": Clip(3e-4, 4e-4),
        "ppo": Clip(0.2, 0.2),
    }
    assert [name for name, each in table().items() if each.critic] == ["ppo"]
    assert [name for name, each in table().items() if each.ratio == "sequence"] == ["gspo"]
    assert [(name, each.lots) for name, each in table().items() if each.lots > 1] == [("dapo", 3)]
    assert [(name, each.value_clip) for name, each in table().items() if each.value_clip] == [("ppo", 0.2)]


def test_every_rule_has_the_name_of_its_file():
    assert {name: each.name for name, each in table().items()} == {name: name for name in table()}


def test_an_unknown_rule_is_answered_with_those_there_are():
    assert rule("dapo") is dapo.RULE
    with pytest.raises(SettingsError, match=r"There are .*dapo, .*ppo"):
        rule("reinforce")
