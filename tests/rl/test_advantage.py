"""Advantages against numbers worked by hand."""

import numpy as np
import pytest

from waggle.rl.advantage import gate_external, group_advantages, teaches


def test_a_single_success_among_four_stands_out():
    # mean 1/4, standard deviation sqrt(3)/4: the success gets (3/4) / (sqrt(3)/4) = sqrt(3), the others -1/sqrt(3)
    advantages = group_advantages([1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(advantages, [3**0.5, *[-(3**-0.5)] * 3], rtol=1e-3)


def test_half_right_and_half_wrong_gives_plus_and_minus_one():
    np.testing.assert_allclose(group_advantages([1.0, 1.0, 0.0, 0.0]), [1, 1, -1, -1], rtol=1e-3)


@pytest.mark.parametrize("rewards", [[0.0] * 8, [1.0] * 8, [0.05, 0.0, 0.01, 0.05], [0.9, 1.0], [1.0]])
def test_equal_rewards_and_crumbs_teach_nothing(rewards):
    assert not teaches(rewards)
    assert not group_advantages(rewards).any()


def test_the_gate_keeps_others_successes_and_drops_their_misses():
    np.testing.assert_array_equal(gate_external(np.array([1.5, -0.5, 0.0], np.float32), (1, 1, 1)), [1.5, 0.0, 0.0])


def test_the_gate_asks_how_a_whole_completion_did_where_its_tokens_differ():
    advantages = np.array([0.4, -0.1, 0.2, -0.5], np.float32)
    np.testing.assert_array_equal(gate_external(advantages, (2, 2)), np.array([0.4, 0.0, 0.0, 0.0], np.float32))


def test_a_spread_of_just_the_span_teaches_though_its_difference_is_a_little_less():
    assert teaches([1.0, 0.8])  # 1.0 - 0.8 is a little less than 0.2 in floating point
    assert not teaches([1.0, 0.801])
