"""Noise is a function of its key and of nothing else."""

import numpy as np

from waggle.rl.random_streams import STREAMS, generator, uniforms


def test_equal_keys_give_equal_noise():
    np.testing.assert_array_equal(uniforms(7, "sample", 3, 2, 4, 16), uniforms(7, "sample", 3, 2, 4, 16))


def test_each_completion_has_noise_of_its_own_that_does_not_depend_on_how_many_there_are():
    few, many = uniforms(7, "sample", 3, 2, 4, 16), uniforms(7, "sample", 3, 5, 4, 16)
    np.testing.assert_array_equal(few, many[:8])
    assert len({row.tobytes() for row in many}) == 20


def test_rounds_nodes_and_purposes_have_different_noise():
    first = generator(7, "draw", 1).random()
    assert first not in {generator(7, "draw", 2).random(), generator(8, "draw", 1).random(), generator(7, "choose", 1).random()}


def test_no_two_purposes_share_their_noise():
    assert len({generator(7, stream, 1).random() for stream in STREAMS}) == len(STREAMS)
